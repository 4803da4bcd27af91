"""Many small data sets are chained, and each is asked whether it has the item. --fixed: sums and bisect.

Symptom: it gets slower with the number of files, although each of them is small.
Asked: sdatkinson/neural-amp-modeler#45
Cause: the place of an item is counted from the first data set on, for each item.
Right: search, dataset
"""

import bisect
import itertools
import sys
import time

import torch


class Chained(torch.utils.data.Dataset):
    def __init__(self, parts):
        self.parts = parts
        self.ends = list(itertools.accumulate(len(part) for part in parts))

    def __len__(self):
        return self.ends[-1]

    def __getitem__(self, index):
        if "--fixed" in sys.argv:
            number = bisect.bisect_right(self.ends, index)
            return self.parts[number][index - self.ends[number]]
        for part in self.parts:
            if index < len(part):  # fault
                return part[index]
            index -= len(part)
        raise IndexError(index)


class Recording:
    def __init__(self, number):
        self.samples = torch.full((16, 32), float(number))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


if __name__ == "__main__":
    chained = Chained([Recording(number) for number in range(2400)])
    loader = torch.utils.data.DataLoader(chained, 64, shuffle=True, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
