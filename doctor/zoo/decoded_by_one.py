"""One process decodes all items. --fixed: two workers.

Symptom: one core is busy, and the others are not.
Asked: ultralytics/yolov3#550, rosinality/style-based-gan-pytorch#108
Cause: without workers the loop decodes, and one worker takes longer for a batch than the step.
Right: workers
Stage: dataset
Also: --workers 1
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
        return 1200

    def __getitem__(self, index):
        compute(3)  # fault
        return torch.ones(16)


if __name__ == "__main__":
    workers = int(sys.argv[sys.argv.index("--workers") + 1]) if "--workers" in sys.argv else 0
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=2 if "--fixed" in sys.argv else workers)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.011)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
