"""A zip archive is opened anew for each item, and lists its members each time. --fixed: once in each worker.

Symptom: small items take milliseconds, whatever the drive.
Asked: pytorch/pytorch#11929, pesser/edflow#272, wolny/pytorch-3dunet#43
Cause: an open file cannot be pickled, so it was opened in `__getitem__`; HDF5 files have the same fate.
Right: reopen
"""

import sys
import tempfile
import time
import zipfile
from pathlib import Path

import torch


class Archive(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path, self.archive = path, None

    def __len__(self):
        return 1600

    def __getitem__(self, index):
        if self.archive is None or "--fixed" not in sys.argv:
            self.archive = zipfile.ZipFile(self.path)  # fault
        return torch.frombuffer(bytearray(self.archive.read(f"{index}.bin")), dtype=torch.uint8)


if __name__ == "__main__":
    path = Path(tempfile.mkdtemp()) / "items.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(1600):
            archive.writestr(f"{index}.bin", bytes(2000))
    loader = torch.utils.data.DataLoader(Archive(path), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
