"""The training loop's own thread: what receiving takes here, a batch of 113 tensors, and a packer of 30 ms.

The constants of `data/loaders.toml` are measured anew, from batches of one and of 64 tensors, from small and
large ones, and from images in a list of arrays. Packer and 113 tensors are predicted, the latter with the
constants of the package.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from starvelab import Q_, Handover, Pipeline, Samples, Workers
from starvelab.measure import Transform

from .report import machine, number, options
from .results import save

KB, LARGE, FEW, MANY, HELD = 1000, 10_000_000, 1, 64, 113


class Batches(Dataset):
    """Whole batches of so many tensors of so many bytes each."""

    def __init__(self, objects: int, size: int) -> None:
        self.objects, self.size = objects, size

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, _: int) -> list[torch.Tensor]:
        return [torch.zeros(self.size, dtype=torch.uint8) for _ in range(self.objects)]


class Images(Dataset):
    """Images of ImageNet's mean size as arrays, which cost a worker nothing but to hand them over."""

    def __init__(self) -> None:
        self.arrays = [np.zeros((390, 465, 3), np.uint8) for _ in range(32)]

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, number: int) -> np.ndarray:
        return self.arrays[number % 32]


class Sleeps:
    """Samples for which a worker sleeps 5 ms."""

    name = "sleeps"

    def __len__(self) -> int:
        return 10**6

    def read(self, _: int) -> bytes:
        """A sample, after those 5 ms."""
        time.sleep(0.005)
        return bytes(KB)


def array(stored: bytes) -> np.ndarray:
    """A sample as the loop gets it."""
    return np.frombuffer(stored, np.uint8)


def receiving(objects: int, size: int, batches: int) -> float:
    """What the loop spends on a batch that is ready [s]: it is received, read once, and let go.

    Others who use the machine only add to it, so this is a low quantile of many batches.
    """
    loader = iter(DataLoader(Batches(objects, size), batch_size=None, num_workers=1, prefetch_factor=4))
    times = []
    for _ in range(batches):
        time.sleep(0.03 + 1e-9 * objects * size)  # until the queue is full
        begun = time.perf_counter()
        batch = next(loader)
        for tensor in batch:
            tensor[::4096].sum()  # each page of it
        del batch
        times.append(time.perf_counter() - begun)
    return float(np.percentile(times[2:], 10))


def pickled(seconds: float) -> tuple[float, float]:
    """What a byte of arrays takes a worker to pickle, and the loop's thread to read [s]."""
    images = Images()
    size = 32 * images[0].nbytes
    loader = iter(DataLoader(images, batch_size=32, num_workers=2, collate_fn=list, prefetch_factor=4))
    next(loader)
    begun, spent, count = time.perf_counter(), time.thread_time(), 0
    while time.perf_counter() - begun < seconds:
        count += len(next(loader)) // 32
    read = (time.thread_time() - spent) / (count * size)
    spent = time.thread_time()
    for _ in range(count):
        ForkingPickler.dumps(images.arrays)
    return (time.thread_time() - spent) / (count * size), read


def packer(seconds: str) -> tuple[Pipeline, float]:
    """A loop that packs for 30 ms behind workers that keep up, and its measured period [s]."""
    pipe = Pipeline(
        hardware="20 ms",
        batch_size=4,
        dataset=Samples(source=Sleeps(), transforms=[Transform("decode", array)]),
        workers=Workers(2, kind="torch", handover=Handover(loop="30 ms")),
    )
    return pipe, 4 / pipe.measure(seconds=seconds, progress=False).throughput.m_as("sample/s")


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, batches=(40, 4), seconds=("5 s", "0.3 s")).parse_args(arguments)
    few, many, large, held = (
        receiving(*one, asked.batches) for one in ((FEW, KB), (MANY, KB), (FEW, LARGE), (HELD, KB))
    )
    each, byte = (many - few) / (MANY - FEW), (large - few) / (LARGE - KB)
    print(machine())
    print(f"receiving takes {1e6 * each:.0f} us for each object and {1e9 * byte:.2f} ns for each byte")
    workers = Workers(1, handover=Handover(objects=HELD))
    tensors = Pipeline(
        hardware="1 ms",
        batch_size=1,
        dataset=Samples(cpu_time="1 ms", transfer=Q_(HELD * KB, "B")),
        workers=workers,
    )
    predicted = tensors.solve().stage_times["receive"].m_as("ms")
    print(f"{HELD} tensors: {predicted:.1f} ms predicted, {1e3 * held:.1f} ms measured")
    save(
        "loop-objects",
        f"receiving a batch of {HELD} tensors",
        f"{number(1e3 * held)} ms",
        f"{number(predicted)} ms (predicted)",
    )
    worker, loop = pickled(Q_(asked.seconds).m_as("s"))
    print(f"arrays are pickled at {1e-9 / worker:.2f} GB/s, and read at {1e-9 / loop:.2f} GB/s")
    pipe, period = packer(asked.seconds)
    solved, told = pipe.replace({"dataset.cpu_time": "5 ms"}), 1e3 * period
    predicted = solved.solve().step_time.m_as("ms")
    print(f"a packer of 30 ms: {predicted:.1f} ms predicted, {told:.1f} ms measured")
    save(
        "loop-packer",
        "a step behind a packer of 30 ms",
        f"{number(told)} ms",
        f"{number(predicted)} ms (predicted)",
    )


if __name__ == "__main__":
    main()
