"""Items lie in one gzip file, and each is sought from its start. --fixed: each is compressed on its own.

Symptom: items at the end of a file take longer than those at its beginning.
Asked: pauldmccarthy/indexed_gzip#22, mxmlnkn/rapidgzip#68
Cause: gzip has no index, so a step back means to decompress all before it.
Right: seek, reopen
"""

import gzip
import sys
import tempfile
import time
import zlib
from pathlib import Path

import torch

SIZE = 20_000


class Volumes(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path, self.packed = path, zlib.compress(bytes(SIZE))

    def __len__(self):
        return 800

    def __getitem__(self, index):
        if "--fixed" in sys.argv:
            content = zlib.decompress(self.packed)
        else:
            with gzip.open(self.path) as file:
                file.seek(index * 37 % 300 * SIZE)  # fault
                content = file.read(SIZE)
        return torch.frombuffer(bytearray(content), dtype=torch.uint8)


if __name__ == "__main__":
    path = Path(tempfile.mkdtemp()) / "volumes.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(bytes(range(250)) * (300 * SIZE // 250))
    loader = torch.utils.data.DataLoader(Volumes(path), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
