"""Batches are augmented in the training loop. --fixed: in the workers.

Symptom: workers idle, and one core of the training process is busy.
Asked: huggingface/accelerate#3168, huggingface/transformers#34059
Cause: what stands between the loader and the model runs in one thread, beside nothing.
Right: move
Stage: move
"""

import sys
import time
import zlib

import torch

TEXT = b"starvation " * 20_000


def augment():
    for _ in range(30):
        zlib.compress(TEXT, 1)  # fault


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, index):
        if "--fixed" in sys.argv and index % 16 == 0:
            augment()
        time.sleep(0.0003)
        return torch.ones(64)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        if "--fixed" not in sys.argv:
            augment()
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
