"""Batches per second of the loader's simulation, over many replicas, beside the same loader told to simpy.

Both follow every batch of the same runs: simpy event by event, one run after the other, with the processes
that the tests compare with. Both sides take turns in one process.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence

from starvelab import Drive, Handover, Jitter, Pipeline, Samples, Workers
from starvelab.simulate.simulation import draw

from .report import machine, number, options, ratios, spread, turns
from .results import save

BATCHES = 200
IN_ORDER = Pipeline(
    dataset=Samples(size="8 MB", cpu_time="45 ms", transfer="3 MB", jitter=Jitter(0.3)),
    batch_size=1,
    workers=Workers(4, handover=Handover(way="5 ms")),
    link="1 GB/s",
    hardware="20 ms",
)
LOADERS = {
    "in order": IN_ORDER,
    "out of order": IN_ORDER.replace({"workers.in_order": False}),
    "from a storage that workers share": IN_ORDER.replace(storage=Drive("1 GB/s", read_ahead=False)),
}
KEYS = dict(zip(LOADERS, ("in-order", "out-of-order", "shared-storage"), strict=True))


def per_second(call: Callable[[], int]) -> float:
    """Batches that a call follows in a second."""
    start = time.perf_counter()
    return call() / (time.perf_counter() - start)


def ours(pipeline: Pipeline, replicas: int) -> int:
    """Draw the times and follow all replicas at once."""
    pipeline.simulate(batches=BATCHES, replicas=replicas, warm_up=0)
    return BATCHES * replicas


def theirs(pipeline: Pipeline, runs: int) -> int:
    """Follow the same batches in simpy, run by run; drawing their times is left out of account."""
    from tests.simulate.in_simpy import Run

    inputs = pipeline.simulate(batches=1, replicas=1, warm_up=0).inputs
    drawn, drawn_reads = draw(inputs, BATCHES, runs, seed=0)
    for times, reads in zip(drawn.T, drawn_reads.T, strict=True):
        Run(inputs, times, reads)
    return BATCHES * runs


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, rounds=(9, 1), replicas=(10_000, 10), runs=(10, 1))
    parser.add_argument("--replicas", type=int, help="of each simulation (default %(default)s)")
    asked = parser.parse_args(arguments)
    beside = importlib.util.find_spec("simpy") is not None
    print(machine())
    print(turns(asked.rounds))
    for name, pipeline in LOADERS.items():
        found, other = [], []
        ours(pipeline, 100)
        for _ in range(asked.rounds):
            found.append(per_second(lambda pipeline=pipeline: ours(pipeline, asked.replicas)))
            if beside:
                other.append(per_second(lambda pipeline=pipeline: theirs(pipeline, asked.runs)))
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
