"""One batch of twelve is late, and the queue is short. --fixed: a queue of four.

Symptom: steps are even, and every twelfth takes longer.
Asked: PaddlePaddle/Paddle#43081, zylo117/Yet-Another-EfficientDet-Pytorch#322
Cause: with `prefetch_factor=1` nothing is ready while a worker prepares a late batch.
Right: prefetch
Stage: prefetch
"""

import sys
import time

import torch


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, index):
        time.sleep(0.002 + 0.014 * (index // 8 % 12 == 0))
        return torch.ones(16)


if __name__ == "__main__":
    ahead = 4 if "--fixed" in sys.argv else 1  # fault
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=2, prefetch_factor=ahead)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.014)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
