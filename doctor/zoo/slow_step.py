"""The training step computes longer than its batches take. Nothing of the input is at fault.

Symptom: the GPU is busy, and the job is slow.
Asked: batra-mlp-lab/visdial-challenge-starter-pytorch#25
Cause: the step takes 85 ms, a batch 2 ms.
Right: none
Stage: not input-bound
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
        return 800

    def __getitem__(self, index):
        compute(0.2)
        return torch.ones(16)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        compute(85)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
