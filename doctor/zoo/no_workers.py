"""The storage answers late, and too few workers ask it. --fixed: six workers.

Symptom: the GPU works, waits, works, waits.
Asked: huggingface/transformers#34059, pytorch/pytorch#680
Cause: `num_workers` is 0 unless it is set, and each worker waits for one item at a time.
Right: workers
Stage: dataset
Also: --workers 1; --workers 2
"""

import sys
import time

import torch


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        time.sleep(0.005)  # a file system over a network  # fault
        return torch.ones(16)


if __name__ == "__main__":
    workers = int(sys.argv[sys.argv.index("--workers") + 1]) if "--workers" in sys.argv else 0
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=6 if "--fixed" in sys.argv else workers)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.008)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
