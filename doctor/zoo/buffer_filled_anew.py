"""A shuffle buffer is filled before the first batch of each pass. --fixed: a smaller buffer.

Symptom: each epoch begins with seconds in which nothing happens.
Asked: activeloopai/deeplake#1760, webdataset/webdataset#62, #267
Cause: no item leaves the buffer before it holds 1,500, and it is empty at the start of each pass.
Right: first batch
"""

import random
import sys
import time

import torch

BUFFER = 50 if "--fixed" in sys.argv else 1500


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        draw, buffer = random.Random(0), []
        for i in range(3000):
            time.sleep(0.0008)  # fault
            buffer.append(i)
            if len(buffer) >= BUFFER:
                yield torch.tensor([buffer.pop(draw.randrange(len(buffer)))])
        draw.shuffle(buffer)
        yield from (torch.tensor([i]) for i in buffer)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Stream(), batch_size=16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in (batch for _ in range(3) for batch in loader):
        time.sleep(0.014)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
