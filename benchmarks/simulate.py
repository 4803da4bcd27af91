"""Batches per second of the loader's simulation, over many replicas, beside the same loader told to simpy.

Both follow every batch of the same runs: simpy event by event, one run after the other, with the processes
that the tests compare with. Both sides take turns in one process.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence

from starvelab.simulate import Loader, simulate
from starvelab.simulate.simulation import draw

from .report import machine, number, options, ratios, spread, turns
from .results import save

BATCHES = 200
IN_ORDER = Loader(
    step_time="20 ms", prepare_time="45 ms", workers=4, jitter=0.3, copy_time="3 ms", handover_time="5 ms"
)
LOADERS = {
    "in order": IN_ORDER,
    "out of order": IN_ORDER.replace(in_order=False),
    "from a storage that workers share": IN_ORDER.replace(read_time="8 ms"),
}
KEYS = dict(zip(LOADERS, ("in-order", "out-of-order", "shared-storage"), strict=True))


def per_second(call: Callable[[], int]) -> float:
    """Batches that a call follows in a second."""
    start = time.perf_counter()
    return call() / (time.perf_counter() - start)


def ours(loader: Loader, replicas: int) -> int:
    """Draw the times and follow all replicas at once."""
    simulate(loader, batches=BATCHES, replicas=replicas)
    return BATCHES * replicas


def theirs(loader: Loader, runs: int) -> int:
    """Follow the same batches in simpy, run by run; drawing their times is left out of account."""
    from tests.simulate.in_simpy import Run

    drawn, drawn_reads = draw(loader, BATCHES, runs, seed=0)
    for times, reads in zip(drawn.T, drawn_reads.T, strict=True):
        Run(loader, times, reads)
    return BATCHES * runs


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, rounds=(9, 1), replicas=(10_000, 10), runs=(10, 1))
    parser.add_argument("--replicas", type=int, help="of each simulation (default %(default)s)")
    asked = parser.parse_args(arguments)
    beside = importlib.util.find_spec("simpy") is not None
    print(machine())
    print(turns(asked.rounds))
    for name, loader in LOADERS.items():
        found, other = [], []
        ours(loader, 100)
        for _ in range(asked.rounds):
            found.append(per_second(lambda loader=loader: ours(loader, asked.replicas)))
            if beside:
                other.append(per_second(lambda loader=loader: theirs(loader, asked.runs)))
        print(f"{name:<15} {spread(found)} batches per second over {asked.replicas:,} replicas")
        if beside:
            print(f"{'  simpy':<15} {spread(other)} batches per second")
            print(f"{'  ratio':<15} {spread(ratios(other, found))}")
            save(
                f"simulate-{KEYS[name]}",
                f"simulated batches, {name}",
                f"{number(statistics.median(found))} a second",
                f"{number(statistics.median(other))} a second (simpy)",
                f"{number(statistics.median(ratios(other, found)), 2)} times",
            )
    if not beside:
        print("simpy was not measured: install the extra [test]")


if __name__ == "__main__":
    main()
