"""What `watch` costs a training loop: time for each batch, as a share of a step of 5 ms.

The same loop runs over a plain list and over a watched one, in turns, with nothing else in it: what the
watched one takes longer is what a batch costs. The line is on, and writes to nowhere.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence

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


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, rounds=(9, 1), batches=(20_000, 100)).parse_args(arguments)
    print(machine())
    print(turns(asked.rounds))
    costs = []
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        for _ in range(asked.rounds):
            batches = list(range(asked.batches))
            plain = per_batch(batches, len(batches))
            costs.append(per_batch(watch(batches, batch_size=32), len(batches)) - plain)
    shares = [cost / STEP for cost in costs]
    print(f"watch costs {spread([1e6 * cost for cost in costs])} microseconds a batch")
    print(f"that is {max(shares):.2%} of a step of {1e3 * STEP:g} ms at most")
    save("watch", "`watch`, of a step of 5 ms", f"{100 * sorted(shares)[len(shares) // 2]:.2f} %")


if __name__ == "__main__":
    main()
