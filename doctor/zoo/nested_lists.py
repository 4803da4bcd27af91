"""Items are nested lists of numbers, which become one tensor each. --fixed: an item is one tensor.

Symptom: collating and receiving a batch takes longer than making its items.
Asked: pytorch/pytorch#50272, #123439, #3281
Cause: `default_collate` makes a tensor of each place in the lists, and each is handed over on its own.
Right: packing, collate, joined
"""

import sys
import time

import torch


class Boxes(torch.utils.data.Dataset):
    def __len__(self):
        return 6400

    def __getitem__(self, index):
        boxes = [[float(index + row * 4 + column) for column in range(4)] for row in range(40)]
        return torch.tensor(boxes) if "--fixed" in sys.argv else boxes


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Boxes(), 16, num_workers=2)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
