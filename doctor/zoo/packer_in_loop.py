"""A generator between loader and loop packs sequences. --fixed: the dataset does.

Symptom: workers are idle, and the loop's own thread computes before each step.
Asked: meta-pytorch/torchtune#2180, Victorwz/Open-Qwen2VL#9
Cause: what wraps a loader runs in the training's own thread.
Right: move
Stage: move
"""

import hashlib
import sys
import time

import torch

BYTES = bytes(40_000)
FIXED = "--fixed" in sys.argv


def compute(milliseconds):
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        hashlib.sha256(BYTES)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        time.sleep(0.0005)
        compute(15 / 8 if FIXED else 0)
        return torch.ones(16)


def packed(loader):
    for batch in loader:
        compute(15)  # fault
        yield batch


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=2)
    start = time.perf_counter()
    count = 0
    for _ in loader if "--fixed" in sys.argv else packed(loader):
        time.sleep(0.008)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
