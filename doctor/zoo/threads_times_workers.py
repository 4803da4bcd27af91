"""Each worker starts as many BLAS threads as a large host has cores. --fixed: one thread each.

Symptom: all cores are busy, more workers make it slower, and the GPU waits.
Asked: pytorch/torchtitan#4038, pytorch/pytorch#82219, open-mmlab/mmdetection#6867
Cause: four workers times 16 threads share two cores, and threads of one product wait for each other.
Right: threads
"""

import os
import sys

THREADS = "1" if "--fixed" in sys.argv else "16"  # a host of 16 cores, of which a container may use two
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = THREADS

import time  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402


class Whitened(torch.utils.data.Dataset):
    def __init__(self):
        self.weights = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)

    def __len__(self):
        return 1280

    def __getitem__(self, index):
        image = np.full((256, 256), index % 7, np.float32)
        return (image @ self.weights).mean(0)  # fault


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Whitened(), batch_size=16, num_workers=4)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
