"""Each image is decoded twice: once to look whether it is broken, once to use it. --fixed: once.

Symptom: workers are busy, and adding cores helps no further.
Asked: yhenon/pytorch-retinanet#104, autonomousvision/transfuser#154
Cause: a check of each image in `__getitem__` decodes all of it.
Right: workers
"""

import io
import sys
import time

import numpy as np
import torch
from PIL import Image


class Photos(torch.utils.data.Dataset):
    def __init__(self):
        coarse = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(coarse).resize((640, 480), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
        self.file = file.getvalue()

    def __len__(self):
        return 960

    def __getitem__(self, index):
        if "--fixed" not in sys.argv:
            Image.open(io.BytesIO(self.file)).load()  # fault
        image = Image.open(io.BytesIO(self.file)).convert("RGB")
        return torch.from_numpy(np.asarray(image.crop((0, 0, 64, 64))).copy())


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Photos(), 16, num_workers=1)
    start = time.perf_counter()
    count = 0
    for _ in loader:
        time.sleep(0.02)  # the training step
        count += 1
    print(f"{count / (time.perf_counter() - start):.1f} batches/s", file=sys.stderr)
