"""Passes are short, and workers start for each of them. --fixed: persistent_workers=True.

Symptom: the GPU waits at the beginning of each epoch.
Asked: brainglobe/cellfinder#627, open-mmlab/mmhuman3d#233
Cause: workers are processes that end with a pass.
Right: persistent
Stage: persistent
"""

import sys
import time

import torch


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.ones(16)


if __name__ == "__main__":
    keep = "--fixed" in sys.argv
    loader = torch.utils.data.DataLoader(Items(), 8, num_workers=2, persistent_workers=keep)  # fault
    start = time.perf_counter()
    count = 0
    for _ in range(40):
        for _ in loader:
            time.sleep(0.006)  # the training step
            count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
