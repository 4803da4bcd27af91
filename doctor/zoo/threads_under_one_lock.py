"""Threads of one process prepare a batch under one lock. --fixed: two workers.

Symptom: four threads, and one core is busy.
Asked: pytorch/pytorch#161044, Lyken17/Efficient-PyTorch#19
Cause: threads share a lock, as that of Python, and take turns.
Right: workers, processes
Stage: dataset
"""

import hashlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch

BYTES = bytes(40_000)


def compute(milliseconds):
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        hashlib.sha256(BYTES)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 2400

    def __getitems__(self, indices):
        lock = threading.Lock()

        def item(index):
            with lock:
                compute(2)  # fault
                return torch.ones(16)

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(item, indices))


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=2 if "--fixed" in sys.argv else 0)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.008)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
