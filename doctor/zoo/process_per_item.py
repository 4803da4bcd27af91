"""A program is started for each item, as ffmpeg often is. --fixed: a library in the worker.

Symptom: the system is busy, and few of its cycles belong to Python.
Asked: google-deepmind/dmvr#9, meta-pytorch/torchcodec#715, rom1504/any2dataset#7
Cause: to start a process takes milliseconds, more than the item does.
Right: process
"""

import subprocess
import sys
import time
import zlib

import torch

PACKED = zlib.compress(bytes(range(256)) * 400)


class Clips(torch.utils.data.Dataset):
    def __len__(self):
        return 1280

    def __getitem__(self, index):
        if "--fixed" in sys.argv:
            content = zlib.decompress(PACKED)
        else:
            packed = zlib.decompress(PACKED)
            content = subprocess.run(["cat"], input=packed, capture_output=True).stdout  # fault
        return torch.frombuffer(bytearray(content[:4000]), dtype=torch.uint8)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Clips(), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.01)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
