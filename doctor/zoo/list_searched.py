"""For each item a list of broken items is searched. --fixed: a set.

Symptom: it gets slower the longer the list of exceptions is.
Asked: jwyang/faster-rcnn.pytorch#574
Cause: `in` compares with each element of a list, and keeps Python's lock meanwhile.
Right: search
"""

import sys
import time

import torch


class Cleaned(torch.utils.data.Dataset):
    def __init__(self):
        broken = list(range(10_000, 410_000))
        self.broken = set(broken) if "--fixed" in sys.argv else broken

    def __len__(self):
        return 800

    def __getitem__(self, index):
        if index in self.broken:  # fault
            index = 0
        return torch.full((64,), float(index))


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Cleaned(), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
