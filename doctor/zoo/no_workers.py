"""The loader has no workers, so that the loop prepares each batch itself. --fixed: two workers.

Symptom: the GPU works, waits, works, waits.
Asked: huggingface/transformers#34059
Cause: `num_workers` is 0 unless it is set.
Right: workers
"""

import sys
import time

import torch


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 2400

    def __getitem__(self, index):
        time.sleep(0.002)  # a file system over a network  # fault
        return torch.ones(64)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 16, num_workers=2 if "--fixed" in sys.argv else 0)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.02)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
