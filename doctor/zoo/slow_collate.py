"""The collate function pads number by number. --fixed: the default one.

Symptom: items are quick, and batches are not.
Asked: yhenon/pytorch-retinanet#104, pyg-team/pytorch_geometric#802
Cause: a collate function in Python takes 12 ms for each batch.
Right: collate
Stage: collate
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
        return 6400

    def __getitem__(self, index):
        compute(0.2)
        return torch.ones(16)


def padded(items):
    compute(12)  # fault
    return torch.stack(items)


if __name__ == "__main__":
    collate = torch.stack if "--fixed" in sys.argv else padded
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=2, collate_fn=collate)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
