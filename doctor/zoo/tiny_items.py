"""Rows of a table in memory are fetched one by one. --fixed: __getitems__ for a batch.

Symptom: data in memory, and the loop waits.
Asked: pytorch/pytorch#26957, huggingface/datasets#5505
Cause: a batch of 4096 rows is 4096 calls, and as many small tensors.
Right: together
Stage: together, dataset
"""

import sys
import time

import torch


class Table(torch.utils.data.Dataset):
    def __init__(self):
        self.table = torch.ones(4096, 8)

    def __len__(self):
        return 4096 * 200

    def __getitem__(self, index):
        return self.table[index % 4096].clone()  # fault


class Together(Table):
    def __getitems__(self, indices):
        return list(self.table[torch.tensor(indices) % 4096])


if __name__ == "__main__":
    torch.set_num_threads(1)
    table = Together() if "--fixed" in sys.argv else Table()
    loader = torch.utils.data.DataLoader(table, 4096, num_workers=1, collate_fn=torch.stack)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
