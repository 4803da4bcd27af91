"""The storage serves one request at a time. --fixed: one request for a batch, and two workers.

Symptom: more workers bring nothing.
Asked: IntelLabs/distiller#202, yjxiong/action-detection#41
Cause: a hard disk, or a lock around a file, lets one reader in, so that workers wait for each other.
Right: workers, dataset, sleep, lock
Stage: dataset
Also: --workers 2
"""

import fcntl
import sys
import tempfile
import time

import torch

DRIVE = tempfile.NamedTemporaryFile("w")


def read(count):
    with open(DRIVE.name) as drive:
        fcntl.flock(drive, fcntl.LOCK_EX)
        time.sleep(0.004)  # fault
        return torch.ones(count, 16)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 960

    def __getitem__(self, index):
        return read(1)[0]


class Together(Items):
    def __getitems__(self, indices):
        return list(read(len(indices)))


if __name__ == "__main__":
    workers = int(sys.argv[sys.argv.index("--workers") + 1]) if "--workers" in sys.argv else 0
    items, workers = (Together(), 2) if "--fixed" in sys.argv else (Items(), workers)
    loader = torch.utils.data.DataLoader(items, 8, num_workers=workers)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.006 if workers else 0.024)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
