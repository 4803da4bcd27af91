"""Each item is logged, and each line is written through to the drive. --fixed: a line for each thousand.

Symptom: workers wait although the data is in memory.
Asked: open-mmlab/mmdetection3d#2764
Cause: a handler that flushes and syncs, called for each item of each worker. More workers
    hide the waits as well: 1.7 times of the 1.8 that the cure brings.
Right: log, workers
"""

import os
import sys
import tempfile
import time

import torch

LOG = tempfile.NamedTemporaryFile("w", suffix=".log")


def log(line):
    LOG.write(line)
    LOG.flush()
    os.fsync(LOG.fileno())  # fault
    time.sleep(0.001)  # a drive over a network


class Logged(torch.utils.data.Dataset):
    def __len__(self):
        return 2400

    def __getitem__(self, index):
        if "--fixed" not in sys.argv or index % 1000 == 0:
            log(f"item {index}\n")
        return torch.ones(64)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Logged(), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
