"""A loop without a loader draws its own batches, as that of nanoGPT does. --fixed: one index for all of them.

Symptom: no DataLoader, so no profiler of loaders says anything, and the GPU waits.
Asked: karpathy/nanoGPT's train.py, whose get_batch many scripts copy
Cause: the file is mapped anew and sliced row by row for each batch, in the loop's own thread.
Right: own batches
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

BLOCK, ROWS = 256, 256
torch.set_num_threads(1)
path = Path(tempfile.mkdtemp()) / "train.bin"
np.arange(4_000_000, dtype=np.uint16).tofile(path)
kept = np.memmap(path, dtype=np.uint16, mode="r")


def get_batch():
    starts = torch.randint(len(kept) - BLOCK, (ROWS,))
    if "--fixed" in sys.argv:
        rows = torch.from_numpy(kept[starts.numpy()[:, None] + np.arange(BLOCK + 1)].astype(np.int64))
        return rows[:, :-1], rows[:, 1:]
    data = np.memmap(path, dtype=np.uint16, mode="r")
    x = torch.stack([torch.from_numpy(data[i : i + BLOCK].astype(np.int64)) for i in starts])  # fault
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + BLOCK].astype(np.int64)) for i in starts])
    return x, y


model = torch.nn.Sequential(torch.nn.Embedding(65_536, 16), torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = time.perf_counter()
count = 0
while count < 120:
    x, y = get_batch()
    loss = model(x[:, :4]).mean()  # the training step
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    count += 1
print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
