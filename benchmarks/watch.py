"""What `watch` costs a training loop: time for each batch, as a share of a step of 5 ms.

The same loop goes over a plain list and over a watched one, with nothing else in it, by turns of a thousand
batches, so that a machine that slows down does so for both: what the watched one takes longer is what a batch
costs. So it does over a DataLoader without workers, where the system is asked for times of the CPU as well.
The line is on, and writes to nowhere. What a pass costs once, before its first batch and after its last, is
said apart.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import islice

from starvelab_doctor import watch

from .report import machine, options, spread, turns
from .results import save

STEP = 5e-3  # seconds
TURN = 1000  # batches


def seconds_of(batches: Iterable[int]) -> float:
    """Seconds that an empty loop takes."""
    start = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - start


def costs_of(loader: Iterable[int], count: int) -> tuple[list[float], float]:
    """Seconds that watching costs each batch of a loader, of each turn, and what it costs a pass."""
    begun = time.perf_counter()
    plain = iter(loader)
    made = time.perf_counter()
    watched = iter(watch(loader, batch_size=32))
    next(watched)
    once = time.perf_counter() - made - (made - begun)
    next(plain)
    costs = []
    for _ in range(count // TURN - 1):
        without = seconds_of(islice(plain, TURN))
        costs.append((seconds_of(islice(watched, TURN)) - without) / TURN)
    without = seconds_of(plain)
    return costs, once + seconds_of(watched) - without


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, rounds=(9, 1), batches=(20_000, 3_000)).parse_args(arguments)
    print(machine())
    print(turns(asked.rounds))
    count = asked.batches
    loaders: dict[str, Iterable[int]] = {"a list": range(count)}
    if find_spec("torch") is not None:
        from torch.utils.data import DataLoader

        loaders["a DataLoader"] = DataLoader(range(count), batch_size=None)
    costs: dict[str, list[float]] = {name: [] for name in loaders}
    passes: dict[str, list[float]] = {name: [] for name in loaders}
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        for _ in range(asked.rounds):
            for name, loader in loaders.items():
                each, once = costs_of(loader, count)
                costs[name] += each
                passes[name].append(once)
    for name, found in costs.items():
        print(f"watch costs {spread([1e6 * each for each in found])} microseconds a batch of {name},")
        print(f"and {spread([1e3 * each for each in passes[name]])} ms a pass of {count:,} batches")
    shares = [each / STEP for each in costs[name]]
    print(f"that is {max(shares):.2%} of a step of {1e3 * STEP:g} ms in the slowest turn")
    save("watch", "`watch`, of a step of 5 ms", f"{100 * sorted(shares)[len(shares) // 2]:.2f} %")


if __name__ == "__main__":
    main()
