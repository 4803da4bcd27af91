"""Large images are stacked into each batch. --fixed: each worker fills one batch that it keeps.

Symptom: items take next to nothing, and batches do.
Asked: pytorch/pytorch#22789
Cause: a batch of 39 MB is copied into new memory, and its pages are touched for the first time.
Right: collate, none, dataset
Stage: hand-over, collate
"""

import sys
import time

import torch

KEPT = torch.ones(128, 3, 320, 320, dtype=torch.uint8)


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 128 * 120

    def __getitem__(self, index):
        return KEPT[index % 128]


def kept(items):
    return KEPT


def stacked(items):
    return torch.stack(items)  # fault


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "--fixed" in sys.argv:
        KEPT.share_memory_()
    collate = kept if "--fixed" in sys.argv else stacked
    loader = torch.utils.data.DataLoader(Images(), 128, num_workers=2, collate_fn=collate)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.002)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
