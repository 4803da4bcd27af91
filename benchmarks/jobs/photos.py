"""A training job on a folder of JPEG files. `--fault` plants one fault."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter
from torch.utils.data import DataLoader, Dataset, default_collate

FAULTS = ("no workers", "heavy transform", "slow reads", "slow collate")
BATCH_SIZE, STEP = 16, 0.060  # seconds that an accelerator would compute

parser = argparse.ArgumentParser()
parser.add_argument("--fault", choices=FAULTS)
parser.add_argument("--workers", type=int)
parser.add_argument("--batches", type=int, default=60)
parser.add_argument("--folder", type=Path, default=Path("photos"))


class Photos(Dataset):
    """Every image of a folder, as often as the training needs them."""

    def __init__(self, folder, count, fault):
        self.paths, self.count, self.fault = sorted(folder.glob("*.jpg")), count, fault

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.fault == "slow reads":
            time.sleep(0.020)  # a file system over a network
        image = Image.open(self.paths[index % len(self.paths)]).convert("RGB")
        if self.fault == "heavy transform":
            image = image.filter(ImageFilter.GaussianBlur(12))
        return np.array(image.resize((224, 224), Image.Resampling.BILINEAR)), index % 10


def in_python(samples):
    """Normalize the pixels one after the other."""
    mean = []
    for image, _ in samples:
        mean.append(sum(image[::2, ::2].ravel().tolist()) / image.size)
        for value in image[:, :, :2].ravel().tolist():
            _ = (value - 128) / 255
    return default_collate(samples)


def make_folder(folder):
    """Files of about 60 KB, where there are none."""
    folder.mkdir(exist_ok=True)
    for number in range(32 - len(list(folder.glob("*.jpg")))):
        coarse = np.random.default_rng(number).integers(0, 255, (60, 80, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC)
        image.save(folder / f"{number:03d}.jpg", quality=92)


if __name__ == "__main__":
    asked = parser.parse_args()
    torch.set_num_threads(1)
    make_folder(asked.folder)
    workers = asked.workers
    if workers is None:
        workers = 0 if asked.fault == "no workers" else 2
    loader = DataLoader(
        Photos(asked.folder, BATCH_SIZE * asked.batches, asked.fault),
        BATCH_SIZE,
        shuffle=True,
        num_workers=workers,
        collate_fn=in_python if asked.fault == "slow collate" else None,
    )
    for number, _ in enumerate(loader):
        if number == 4:
            start = time.perf_counter()
        time.sleep(STEP)
    print("samples/s", (number - 3) * BATCH_SIZE / (time.perf_counter() - start))
