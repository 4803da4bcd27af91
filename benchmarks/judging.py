"""The numbers by which the doctor judges, each measured: how much headroom, how many batches, which items.

python -m benchmarks.judging         prints a line for each
"""

from __future__ import annotations

from collections.abc import Sequence
from timeit import repeat

import numpy as np

from starvelab_doctor.judging.model import Costs

from .report import machine, options

WORKERS, BATCHES, TURNS = (2, 4, 8), 400, 20
LATE, EACH = (16.0, 128.0), 12  # milliseconds of a batch and of a late one, which one of so many is


def headroom(more: float, spread: float) -> float:
    """Return the share of the rate that is lost where batches vary and workers could do so much more."""
    losses = []
    for seed, workers in enumerate(WORKERS):
        sigma = np.sqrt(np.log(1 + spread**2))
        times = np.random.default_rng(seed).lognormal(-(sigma**2) / 2, sigma, BATCHES) * 10 * workers / more
        costs = Costs(10.0, 0.0, 0.0, 0.0, workers, workers)
        losses.append(1 - 10 / max(costs.late_period(times.tolist()), 10.0))
    return float(np.mean(losses))


def lateness(batches: int, windows: int) -> float:
    """Return the share of windows of so many batches that tell within a tenth what late ones cost."""
    rng = np.random.default_rng(batches)
    costs = Costs(15.0, 0.0, 0.0, 0.0, 2, 2, prefetch=1)
    draw = rng.permutation(np.resize([*[LATE[0]] * (EACH - 1), LATE[1]], 2400))
    true = costs.late_period(draw.tolist())
    starts = rng.integers(len(draw) - batches, size=windows)
    told = [costs.late_period(draw[start : start + batches].tolist()) for start in starts]
    return float(np.mean(np.abs(np.array(told) / true - 1) < 0.1))


def one_by_one() -> tuple[float, float]:
    """Return the microseconds of an item of four rows in memory, got alone, and together with 255 others."""
    import torch

    tables, places = [torch.ones(4096, 8) for _ in range(4)], torch.arange(256)
    alone = min(repeat(lambda: [[table[place] for table in tables] for place in range(256)], number=5)) / 5
    together = min(repeat(lambda: [table[places] for table in tables], number=5)) / 5
    return 1e6 * alone / 256, 1e6 * together / 256


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was measured."""
    asked = options(__doc__ or "", windows=(100, 4)).parse_args(arguments)
    print(machine())
    for spread in (0.25, 0.5, 1.0):
        lost = ", ".join(f"{more}: {100 * headroom(more, spread):.1f} %" for more in (1.0, 1.1, 1.2, 1.4))
        print(
            f"rate lost where batches vary by {spread:g} and workers could do so many times as much: {lost}"
        )
    told = ", ".join(
        f"{batches}: {100 * lateness(batches, asked.windows):.0f} %" for batches in (12, 24, 48, 96, 192)
    )
    print(f"of windows of so many batches tell what one late batch of {EACH} costs: {told}")
    alone, together = one_by_one()
    print(f"an item of four rows in memory: {alone:.1f} us alone, {together:.2f} us together with others")


if __name__ == "__main__":
    main()
