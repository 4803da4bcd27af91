"""A long list of file names is pickled for each worker that is spawned. --fixed: the names are one array.

Symptom: each epoch begins late on macOS, Windows and wherever workers are spawned.
Asked: pytorch/pytorch#13246, #12831
Cause: the dataset holds millions of Python objects, and each new worker gets a copy by pickle.
Right: pickling, persistent
"""

import sys
import time

import numpy as np
import torch


class Files(torch.utils.data.Dataset):
    def __init__(self, count):
        names = [{"path": f"train/{i // 1000:05d}/{i:09d}.jpg", "label": i % 1000} for i in range(count)]
        self.files = np.arange(count) if "--fixed" in sys.argv else names

    def __len__(self):
        return 480

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.ones(64)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Files(300_000), 16, num_workers=2, multiprocessing_context="spawn")
    start = time.perf_counter()
    count = 0
    for _ in (batch for _ in range(2) for batch in loader):
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
