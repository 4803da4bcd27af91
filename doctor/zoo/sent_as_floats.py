"""Images are sent as float32. --fixed: as bytes.

Symptom: workers are idle, and the loop waits for large batches.
Asked: pytorch/pytorch#24984, pytorch/pytorch#81412
Cause: a batch of 59 MB is written, handed over and read, and could have a quarter of that.
Right: bytes
Stage: bytes, hand-over
"""

import sys
import time

import torch


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 48 * 120

    def __getitem__(self, index):
        return torch.ones(3, 320, 320, dtype=torch.uint8 if "--fixed" in sys.argv else torch.float32)  # fault


if __name__ == "__main__":
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Images(), 48, num_workers=2)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.002)  # the training step
        count += 1
        if count == 20:  # without the start of the workers
            start = time.perf_counter()
    print(f"{(count - 20) / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
