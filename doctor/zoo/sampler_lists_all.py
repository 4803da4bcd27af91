"""A sampler lists and sorts all items before the first batch of each pass. --fixed: it lists them once.

Symptom: the first batch of each epoch takes seconds, with one core busy in the training process.
Asked: pytorch/pytorch#50689, #32221, #94131
Cause: the loop's own thread draws the order, and no number of workers does that for it.
Right: sampler, passes
"""

import random
import sys
import time

import torch


class Bucketed(torch.utils.data.Sampler):
    """Items of similar length side by side."""

    def __init__(self, lengths, size):
        self.lengths, self.size, self.known = lengths, size, None

    def __iter__(self):
        if self.known is None or "--fixed" not in sys.argv:
            noise = random.Random(0)
            noisy = [length + noise.random() for length in self.lengths]
            self.known = sorted(range(len(noisy)), key=noisy.__getitem__)  # fault
        return iter(self.known[: self.size])


class Items(torch.utils.data.Dataset):
    def __getitem__(self, index):
        time.sleep(0.0002)
        return torch.ones(64)


if __name__ == "__main__":
    lengths = [i * 7919 % 1000 for i in range(700_000)]
    loader = torch.utils.data.DataLoader(Items(), 16, sampler=Bucketed(lengths, 1024), num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in (batch for _ in range(5) for batch in loader):
        time.sleep(0.008)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
