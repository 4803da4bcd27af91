"""Ten training jobs that leak and ten honest ones: their workers or the loop itself keep what they need not.

    python memory_jobs.py JOB [--seconds 20]

Each waits 5 ms for its step. Of the honest ones several grow as well, and end: a list that is copied, a
cache or a buffer that fills, a queue.
"""

import argparse
import functools
import os
import random
import tempfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

BATCH, LENGTH = 8, 1_000_000
KEPT = []  # by a module, as by a logger


class Items(Dataset):
    """Items of 16 KB."""

    def __init__(self, length=LENGTH):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.full((4096,), float(index))


class KeepsIndices(Items):
    """Keeps an object for each item, as for a histogram."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __getitem__(self, index):
        self.seen.append({"index": index, "name": f"sample {index}", "values": [float(index)] * 400})
        return super().__getitem__(index)


class KeepsArrays(Items):
    """Keeps an array of each item in a dictionary that nobody empties."""

    def __init__(self):
        super().__init__()
        self.cache, self.calls = {}, 0

    def __getitem__(self, index):
        self.calls += 1
        self.cache[self.calls] = np.full(3000, float(index))
        return super().__getitem__(index)


@functools.cache
def decoded(index, call):
    """A decoder with a cache that finds nothing."""
    return np.full(2500, float(index + call))


class Memoized(Items):
    """Calls the decoder with an argument that is new each time."""

    calls = 0

    def __getitem__(self, index):
        Memoized.calls += 1
        decoded(index, Memoized.calls)
        return super().__getitem__(index)


class KeepsText(Items):
    """Writes a log into a string."""

    log = ""

    def __getitem__(self, index):
        self.log += f"item {index}: " + "." * 12_000
        return super().__getitem__(index)


class KeepsFiles(Items):
    """Opens a file for each item into memory, and closes none."""

    def __getitem__(self, index):
        KEPT.append([np.fromfile(os.devnull, np.uint8), bytearray(20_000)])
        return super().__getitem__(index)


class Stream(IterableDataset):
    """Items that come one after the other, each with its history."""

    def __iter__(self):
        history = []
        while True:
            history.append(torch.zeros(5000))
            yield torch.zeros(4096)


def keeps_batches(items):
    """Keeps each batch that it made, which lies in shared memory then."""
    KEPT.append(default_collate(items))
    return KEPT[-1]


class Listed(Items):
    """A list of objects that the workers copy while they read it."""

    def __init__(self, length):
        super().__init__(length)
        self.files = [(f"folder/{number:09d}.jpg", float(number)) for number in range(length)]

    def __getitem__(self, index):
        for neighbor in range(64 * index, 64 * index + 64):  # as one that joins files
            _, label = self.files[neighbor % self.length]
        return torch.full((4096,), label)


class Cached(Items):
    """A cache of all items, which is full after the first pass."""

    def __init__(self, length):
        super().__init__(length)
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = torch.full((16_384,), float(index))
        return self.cache[index]


class Shuffled(IterableDataset):
    """A buffer of 1,500 items out of which they are drawn."""

    def __iter__(self):
        buffer = []
        while True:
            buffer.append(torch.zeros(16_384))
            if len(buffer) > 1500:
                yield buffer.pop(random.randrange(len(buffer)))
            elif len(buffer) % 4 == 0:
                yield torch.zeros(16_384)


class Mapped(Items):
    """Rows of a large file that is mapped into memory."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(suffix=".dat")  # noqa: SIM115  # for as long as the job runs
        self.file.truncate(24_414 * 16_384)  # whole rows of 16 KB
        super().__init__(24_414)

    def __getitem__(self, index):
        rows = np.memmap(self.file.name, np.float32, "r").reshape(-1, 4096)
        return torch.from_numpy(rows[index].copy())


class Ragged(Items):
    """Items of very different lengths."""

    def __getitem__(self, index):
        return torch.zeros(int(random.paretovariate(1.5) * 4096) % 1_000_000)


class Shared(Items):
    """Items of one tensor in shared memory, which each worker sees page by page."""

    def __init__(self):
        super().__init__(12_000)
        self.table = torch.ones(12_000, 4096).share_memory_()

    def __getitem__(self, index):
        return self.table[index].clone()


class Big(Items):
    """Items of half a megabyte, 8 batches of them ahead."""

    def __getitem__(self, index):
        return torch.zeros(131_072)


class Cycles(Items):
    """Objects in circles, which the collector frees now and then."""

    def __getitem__(self, index):
        one, other = {"data": np.ones(4000)}, {}
        one["other"], other["one"] = other, one
        return super().__getitem__(index)


def as_list(items):
    """Items that cannot be stacked."""
    return list(items)


def keeps_losses(batch, kept):
    """A loss that keeps its graph, and with it the batch."""
    weight = torch.ones(1, requires_grad=True)
    kept.append((batch * weight).sum() / 2)


def keeps_outputs(batch, kept):
    """The outputs of all batches, for a metric at the end."""
    kept.append((batch * 2).numpy())


def plain(batch, kept):
    """Keeps nothing."""


FOREVER = {"num_workers": 2, "persistent_workers": True}
# Of each job: its dataset, the settings of its loader, and its step.
LEAKS = {
    "a list of what was seen": (KeepsIndices, FOREVER, plain),
    "a dictionary of arrays": (KeepsArrays, FOREVER, plain),
    "a cache that never finds": (Memoized, {"num_workers": 2}, plain),
    "a growing text": (KeepsText, FOREVER, plain),
    "buffers that stay open": (KeepsFiles, {"num_workers": 1}, plain),
    "a stream with a history": (Stream, {"num_workers": 2}, plain),
    "batches kept by collate_fn": (Items, {**FOREVER, "collate_fn": keeps_batches}, plain),
    "without workers": (KeepsArrays, {}, plain),
    "losses with their graphs": (Items, FOREVER, keeps_losses),
    "outputs that are kept": (Items, {"num_workers": 2}, keeps_outputs),
}
HONEST = {
    "nothing kept": (Items, FOREVER, plain),
    "a list in order": (lambda: Listed(900_000), {"num_workers": 2}, plain),
    "a list, shuffled": (lambda: Listed(300_000), {**FOREVER, "shuffle": True}, plain),
    "a cache that fills": (lambda: Cached(1600), {**FOREVER, "shuffle": True}, plain),
    "a buffer that fills": (Shuffled, {"num_workers": 1}, plain),
    "a file in memory": (Mapped, {**FOREVER, "shuffle": True}, plain),
    "ragged items": (Ragged, {**FOREVER, "collate_fn": as_list}, plain),
    "a shared tensor": (Shared, {**FOREVER, "shuffle": True}, plain),
    "a deep queue": (Big, {"num_workers": 2, "prefetch_factor": 8}, plain),
    "circles": (Cycles, {}, plain),
}


def main():
    """Train for so long."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=LEAKS | HONEST)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    dataset, settings, step = (LEAKS | HONEST)[asked.job]
    loader, kept = DataLoader(dataset(), BATCH, **settings), []
    end = time.perf_counter() + asked.seconds
    while time.perf_counter() < end:
        for batch in loader:
            step(batch, kept)
            time.sleep(0.005)
            if time.perf_counter() > end:
                break


if __name__ == "__main__":
    main()
