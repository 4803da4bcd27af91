"""Each step makes a new iterator for one batch. --fixed: one iterator.

Symptom: each step takes as long as the first batch of an epoch.
Asked: nmichlo/disent#49, pytorch/pytorch#12831
Cause: `next(iter(loader))` starts the workers, takes a batch and ends them.
Right: iterator
"""

import sys
import time

import torch


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.ones(64)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Items(), 16, num_workers=2)
    kept = iter(loader)
    start = time.perf_counter()
    count = 0
    while count < 80:
        batch = next(kept) if "--fixed" in sys.argv else next(iter(loader))  # fault
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
