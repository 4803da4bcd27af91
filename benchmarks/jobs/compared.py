"""Ten training loops whose times drift, come in bursts and resemble their neighbors', as they are or slower.

    python compared.py JOB [--seconds 5] [--longer 1.11]    all waits and all work take so many times as long

What a loop takes differs from run to run, as that of real work does: its noise is a new one each time.
"""

import argparse
import math
import random
import time
import zlib

import torch
from torch.utils.data import DataLoader, Dataset

TEXT = b"starvation " * 4000
BATCH = 4  # items


def compute(milliseconds):
    """Work of the CPU, as much as takes so long on a core of its own."""
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        zlib.compress(TEXT, 1)


class Noise:
    """Factors around 1 that resemble their neighbors, and drift in a wave of so many seconds."""

    def __init__(self, spread, alike=0.0, drift=0.0, wave=12.0):
        self.spread, self.alike, self.drift, self.wave = spread, alike, drift, wave
        self.random, self.value, self.begun = random.Random(), 0.0, time.monotonic()
        self.phase = self.random.random()

    def next(self):
        """Return the next factor."""
        fresh = math.sqrt(1 - self.alike**2) * self.random.gauss(0, 1)
        self.value = self.alike * self.value + fresh
        turn = (time.monotonic() - self.begun) / self.wave + self.phase
        return math.exp(self.spread * self.value + self.drift * math.sin(2 * math.pi * turn))


class Items(Dataset):
    """Items that wait and compute [ms], in a batch of which all take longer or all less."""

    def __init__(self, wait=0.0, work=0.0, late=0.0, **noise):
        self.wait, self.work, self.late, self.how, self.noise = wait, work, late, noise, None

    def __len__(self):
        return 1_000_000

    def __getitems__(self, indices):
        if self.noise is None:
            self.noise = Noise(**self.how or {"spread": 0.1})  # of each worker its own
        factor = self.noise.next()
        late = self.late if indices[0] // BATCH % 9 == 0 else 0.0
        time.sleep((self.wait * factor + late) / 1e3)
        compute(self.work * factor)
        return [torch.ones(16) for _ in indices]


# Of each job: the wait and the work of a batch, its noise, the step [ms], and the workers.
JOBS = {
    "reads, no workers": ({"wait": 8}, 5, 0),
    "reads, one worker": ({"wait": 14}, 5, 1),
    "reads in bursts, three workers": ({"wait": 36, "spread": 0.15}, 3, 3),
    "reads that differ much": ({"wait": 12, "spread": 0.4}, 4, 1),
    "reads like their neighbors": ({"wait": 12, "spread": 0.1, "alike": 0.9}, 4, 1),
    "reads that drift": ({"wait": 12, "drift": 0.04, "spread": 0.1}, 4, 1),
    "late batches": ({"wait": 8, "late": 40}, 5, 0),
    "decoding, no workers": ({"work": 4}, 9, 0),
    "decoding, one worker": ({"wait": 7, "work": 6}, 4, 1),
    "a long step": ({"wait": 3}, 16, 1),
}


def main():
    """Run one job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--longer", type=float, default=1.0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    items, step, workers = JOBS[asked.job]
    times = {name: items.get(name, 0.0) * asked.longer for name in ("wait", "work", "late")}
    loader = DataLoader(Items(**items | times), BATCH, num_workers=workers)
    end = time.perf_counter() + asked.seconds
    noise = Noise(0.03)
    for _ in loader:
        time.sleep(step * asked.longer * noise.next() / 1e3)
        if time.perf_counter() > end:
            return


if __name__ == "__main__":
    main()
