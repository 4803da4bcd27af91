"""A batch is a dictionary of many small tensors. --fixed: one tensor.

Symptom: the loop computes while it waits, and workers do not.
Asked: roboflow/rf-detr#1399, pytorch/pytorch#65198
Cause: each tensor goes to the loop by a file of its own.
Right: packing
Stage: packing
"""

import sys
import time

import torch


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16 * 120

    def __getitem__(self, index):
        return {f"feature {number}": torch.ones(8) for number in range(113)}


def packed(items):
    return torch.stack([torch.stack(list(item.values())) for item in items])


if __name__ == "__main__":
    collate = packed if "--fixed" in sys.argv else None  # fault
    loader = torch.utils.data.DataLoader(Rows(), 16, num_workers=2, collate_fn=collate)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
