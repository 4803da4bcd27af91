"""A training job on arrays in one large file. `--fault` plants one fault."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

FAULTS = ("no workers", "whole file", "slow step", "new workers for each short pass")
BATCH_SIZE, STEP, SHAPE = 8, 0.040, (640, 128, 128)  # 42 MB of float32

parser = argparse.ArgumentParser()
parser.add_argument("--fault", choices=FAULTS)
parser.add_argument("--workers", type=int)
parser.add_argument("--batches", type=int, default=80)
parser.add_argument("--file", type=Path, default=Path("arrays.npy"))


class Arrays(Dataset):
    """Slices of an array in a file, each with noise and a spectrum."""

    def __init__(self, file, count, fault):
        self.file, self.count, self.fault = file, count, fault

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        mode = None if self.fault == "whole file" else "r"
        piece = np.load(self.file, mmap_mode=mode)[index % SHAPE[0]]
        noisy = piece + np.random.default_rng(index).normal(0, 0.1, piece.shape)
        return torch.from_numpy(np.abs(np.fft.fft2(noisy)).astype(np.float32))


def write_down(batch):
    """What is kept of each step, number by number."""
    return [f"{value:.3f}" for value in batch[:, :, ::2].ravel().tolist()]


if __name__ == "__main__":
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if not asked.file.exists():
        np.save(asked.file, np.random.default_rng(0).normal(size=SHAPE).astype(np.float32))
    workers = asked.workers
    if workers is None:
        workers = 0 if asked.fault == "no workers" else 2
    passes = 10 if asked.fault == "new workers for each short pass" else 1
    loader = DataLoader(
        Arrays(asked.file, BATCH_SIZE * asked.batches // passes, asked.fault), BATCH_SIZE, num_workers=workers
    )
    number = 0
    for _ in range(passes):
        for batch in loader:
            if number == 4:
                start = time.perf_counter()
            if asked.fault == "slow step":
                write_down(batch)
            time.sleep(STEP)
            number += 1
    print("samples/s", (number - 4) * BATCH_SIZE / (time.perf_counter() - start))
