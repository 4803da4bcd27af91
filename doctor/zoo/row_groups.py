"""Each row is cut from a group that is read whole. --fixed: a group is read once.

Symptom: rows in their order are as slow as rows in any order.
Asked: apache/arrow#39676, AI-Hypercomputer/maxtext#781
Cause: 64 rows are read for each of them.
Right: views
Stage: views, dataset
"""

import hashlib
import sys
import time

import torch

BYTES = bytes(40_000)


def compute(milliseconds):
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        hashlib.sha256(BYTES)


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.number, self.group = -1, None

    def __len__(self):
        return 32 * 250

    def __getitem__(self, index):
        if "--fixed" not in sys.argv or index // 64 != self.number:
            compute(1)  # fault
            self.number, self.group = index // 64, torch.ones(64, 256)
        return self.group[index % 64]


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Rows(), 32, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
