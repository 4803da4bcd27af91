"""Records are read four bytes at a time, without a buffer. --fixed: a record in one read.

Symptom: much time in the system, and little data read.
Asked: lhotse-speech/lhotse#666, rwth-i6/returnn#498
Cause: each read is a call of the system, whatever its size.
Right: read, workers, reopen
"""

import struct
import sys
import tempfile
import time
from pathlib import Path

import torch

NUMBERS = 1500


class Records(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 1600

    def __getitem__(self, index):
        with open(self.path, "rb", buffering=0) as file:
            file.seek(index % 50 * NUMBERS * 4)
            if "--fixed" in sys.argv:
                values = struct.unpack(f"{NUMBERS}f", file.read(4 * NUMBERS))
            else:
                values = [struct.unpack("f", file.read(4))[0] for _ in range(NUMBERS)]  # fault
        return torch.tensor(values)


if __name__ == "__main__":
    path = Path(tempfile.mkdtemp()) / "records.bin"
    path.write_bytes(bytes(50 * NUMBERS * 4))
    loader = torch.utils.data.DataLoader(Records(path), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
