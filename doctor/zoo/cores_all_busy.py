"""Two workers decode on two cores, and the step waits for both. --fixed: smaller files.

Symptom: more workers bring nothing, since all cores compute.
Asked: pytorch/examples#387, tensorflow/models#47
Cause: an item takes 4 ms of a core, and a batch of eight a step of 4 ms.
Right: dataset
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
        compute(1 if "--fixed" in sys.argv else 4)  # fault
        return torch.ones(16)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=2)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
