"""What `watch` costs a training loop: time for each batch, as a share of a step of 5 ms.

The same loop runs over a plain list and over a watched one, in turns, with nothing else in it: what the
watched one takes longer is what a batch costs. So it does over a DataLoader without workers, where the
system is asked for times of the CPU as well. The line is on, and writes to nowhere.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from starvelab.jobs import watch

from .report import machine, options, spread, turns
from .results import save

STEP = 5e-3  # seconds


def per_batch(batches: Iterable[int], count: int) -> float:
    """Seconds that each batch of an empty loop takes."""
    start = time.perf_counter()
    for _ in batches:
        pass
    return (time.perf_counter() - start) / count


def cost(loader: Iterable[int], count: int) -> float:
    """Seconds that watching costs each batch of a loader."""
    plain = per_batch(loader, count)
    return per_batch(watch(loader, batch_size=32), count) - plain


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, rounds=(9, 1), batches=(20_000, 100)).parse_args(arguments)
    print(machine())
    print(turns(asked.rounds))
    count = asked.batches
    loaders: dict[str, Iterable[int]] = {"a list": range(count)}
    if find_spec("torch") is not None:
        from torch.utils.data import DataLoader

        loaders["a DataLoader"] = DataLoader(range(count), batch_size=None)
    costs: dict[str, list[float]] = {name: [] for name in loaders}
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        for _ in range(asked.rounds):
            for name, loader in loaders.items():
                costs[name].append(cost(loader, count))
    for name, found in costs.items():
        print(f"watch costs {spread([1e6 * each for each in found])} microseconds a batch of {name}")
    shares = [each / STEP for each in costs[name]]
    print(f"that is {max(shares):.2%} of a step of {1e3 * STEP:g} ms at most")
    save("watch", "`watch`, of a step of 5 ms", f"{100 * sorted(shares)[len(shares) // 2]:.2f} %")


if __name__ == "__main__":
    main()
