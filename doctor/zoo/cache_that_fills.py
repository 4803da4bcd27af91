"""Items are kept once they were read, so that later passes wait for nothing. Nothing is to be done.

Symptom: the first pass is slow, and no later one.
Asked: mvandenhi/SCBM#6
Cause: a cache fills in the first pass.
Right: none
Stage: not input-bound
"""

import sys
import time

import torch


class Kept(torch.utils.data.Dataset):
    def __init__(self):
        self.known = {}

    def __len__(self):
        return 400

    def __getitem__(self, index):
        if index not in self.known:
            time.sleep(0.006)
            self.known[index] = torch.ones(16)
        return self.known[index]


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Kept(), 8)
    start = time.perf_counter()
    count = 0
    for _ in range(10):
        for _ in loader:
            time.sleep(0.012)  # the training step
            count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
