"""What the doctor's sampler of stacks costs a thread, and how far its shares of lines are from the true ones.

The same work runs by turns with and without the sampler, and the CPU time of the process is compared: other
programs do not count. Five lines, three of which keep Python's lock, take a known share each.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Sequence

from doctor.tests.planted_lines import python, sampled
from starvelab_doctor.watching.places import Stack, code_line_of
from starvelab_doctor.watching.stack_samples import Sample, StackSampler
from starvelab_doctor.watching.worker_sampler import phase_of

from .report import machine, options, spread
from .results import save


def work(pieces: int) -> float:
    """Return the CPU time of this process for some work of Python; a piece takes some 2 ms."""
    begun = time.process_time()
    for _ in range(pieces):
        python(80_000)
    return time.process_time() - begun


def costs_of(turns: int, pieces: int) -> list[float]:
    """Return the CPU time of the work with the sampler, over that without it, less one, by turns."""
    found, samples = [], list[Sample]()

    def see(moment: float, passed: float, stack: Stack) -> None:
        phase, below = phase_of(stack)
        samples.append(Sample(moment, passed, phase, code_line_of(below)))

    with tempfile.TemporaryFile() as file:

        def write() -> None:
            file.write(pickle.dumps(samples))
            samples.clear()

        for _ in range(turns):
            before = work(pieces)
            sampler = StackSampler(see, write)
            sampler.start()
            beside = work(pieces)
            sampler.stop()
            found.append(2 * beside / (before + work(pieces)) - 1)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print both."""
    asked = options(__doc__, rounds=(5, 1), pieces=(200, 10), seconds=(4.0, 0.1)).parse_args(arguments)
    print(machine())
    costs = costs_of(4 * asked.rounds, asked.pieces)
    print(f"the sampler costs {spread([100 * each for each in costs])} % of the CPU time of a thread")
    for unit in (0.002, 0.005, 0.015):
        off = []
        for _ in range(asked.rounds):
            true, seen = sampled(unit, asked.seconds)
            off.append(max(100 * abs(true[name] - seen[name]) for name in true))
        print(f"lines of {1e3 * unit:g} ms: the share that is furthest off is off by {spread(off)} points")
    save(
        "sampler",
        "the sampler of stacks, of a worker's CPU time",
        f"{100 * sorted(costs)[len(costs) // 2]:.1f} %",
    )


if __name__ == "__main__":
    main()
