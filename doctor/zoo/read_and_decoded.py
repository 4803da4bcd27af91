"""One worker reads and decodes. --fixed: five workers.

Symptom: the worker is neither always busy nor always waiting, and the loop waits for it.
Asked: NVIDIA/DALI#1524
Cause: an item takes 3 ms of waiting and 1 ms of a core, and the step takes 8 ms.
Right: workers
Stage: dataset
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


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        time.sleep(0.003)  # fault
        compute(1)
        return torch.ones(16)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=5 if "--fixed" in sys.argv else 1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.008)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
