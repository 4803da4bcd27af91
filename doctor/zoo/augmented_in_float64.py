"""Images are augmented and sent in float64. --fixed: float32, and normalized by the model.

Symptom: batches are eight times as large as the images, and receiving them takes long.
Asked: facebookresearch/pytorchvideo#45, pytorch/pytorch#22789
Cause: NumPy computes in float64 unless it is told otherwise, and nothing says so.
Right: dataset, joined, workers
"""

import sys
import time

import numpy as np
import torch

DTYPE = np.float32 if "--fixed" in sys.argv else np.float64


class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.image = np.random.default_rng(0).integers(0, 255, (3, 224, 224), dtype=np.uint8)

    def __len__(self):
        return 960

    def __getitem__(self, index):
        image = self.image.astype(DTYPE) / DTYPE(255)  # fault
        return torch.from_numpy((image - DTYPE(0.45)) / DTYPE(0.22))


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Images(), 32, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.004)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
