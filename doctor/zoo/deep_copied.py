"""The annotations of each item are copied deeply before they are changed. --fixed: only what is changed.

Symptom: workers compute, and their profile shows `copy.deepcopy`.
Asked: facebookresearch/detectron2#939, Project-MONAI/MONAI#3000, microsoft/human-pose-estimation.pytorch#54
Cause: `copy.deepcopy` goes over each number of each polygon in Python.
Right: deep copy
"""

import copy
import sys
import time

import torch


class Polygons(torch.utils.data.Dataset):
    def __init__(self):
        polygons = [[[i, j] for j in range(40)] for i in range(40)]
        self.records = [{"file": f"{i}.jpg", "polygons": polygons} for i in range(1600)]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        if "--fixed" in sys.argv:
            record = dict(self.records[index])
        else:
            record = copy.deepcopy(self.records[index])  # fault
        record["file"] = f"train/{record['file']}"
        return torch.tensor(record["polygons"][0])


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Polygons(), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
