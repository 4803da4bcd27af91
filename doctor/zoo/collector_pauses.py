"""A dataset of many small objects collects garbage with each batch. --fixed: gc.freeze() in each worker.

Symptom: batches come late now and then, and a profiler shows nothing that computes.
Asked: karpathy/nanochat#477, pytorch/pytorch#95462, NVIDIA/Megatron-Energon#40
Cause: a collection, asked for or started by many new objects, looks at every object of the process.
Right: collector, collect
"""

import gc
import sys
import time

import torch


class Annotated(torch.utils.data.Dataset):
    def __init__(self):
        self.boxes = [[{"box": [i, i, 2, 3], "label": i % 80}] for i in range(60_000)]

    def __len__(self):
        return 1600

    def __getitem__(self, index):
        found = [[[k] for k in range(200)] for _ in range(20)]  # small objects, all alive at once
        self.last = [found, *getattr(self, "last", [])[:40]]
        gc.collect() if index % 16 == 0 else None  # fault
        return torch.ones(len(found))


def frozen(worker):
    gc.freeze()


if __name__ == "__main__":
    init = frozen if "--fixed" in sys.argv else None
    loader = torch.utils.data.DataLoader(Annotated(), 16, num_workers=1, worker_init_fn=init)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.02)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
