"""What the doctor's sampler of stacks costs a worker, and how far its shares of lines are from the true ones.

The same work runs by turns with and without the sampler, and the CPU time of the process is compared: other
programs do not count. Five lines, three of which keep Python's lock, take a known share each.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from doctor.tests.planted_lines import Job, line_numbers, python
from starvelab_doctor.watching.places import code_line_of
from starvelab_doctor.watching.stack_samples import SampleFile, StackSampler
from starvelab_doctor.watching.worker_sampler import phase_of

from .report import machine, options, spread
from .results import save

WORK = 200  # pieces, of some 2 ms each


def shares(unit: float, seconds: float) -> tuple[dict[str, float], dict[str, float]]:
    """Return the true share of each planted line, and that of the samples; a line takes `unit` seconds."""
    job, seen = Job(unit), Counter[str]()
    names = {number: name for name, number in line_numbers().items()}

    def see(_: float, passed: float, stack: tuple) -> None:
        run = next((number for number, (code, _) in enumerate(stack) if code.co_qualname == "Job.run"), None)
        place = code_line_of(stack[: run + 1]) if run is not None else None
        if place is not None and place.line in names:
            seen[names[place.line]] += passed

    sampler, usual = StackSampler(see, quick=True), sys.getswitchinterval()
    sampler.start()
    try:
        true = job.run(seconds)
    finally:
        sampler.stop()
        sys.setswitchinterval(usual)
    return true, {name: seen[name] / max(sum(seen.values()), 1e-9) for name in true}


def work() -> float:
    """Return the CPU time of this process for some work of Python."""
    begun = time.process_time()
    for _ in range(WORK):
        python(80_000)
    return time.process_time() - begun


def costs_of(turns: int) -> list[float]:
    """Return the CPU time of the work with the sampler, over that without it, less one, by turns."""
    found, usual = [], sys.getswitchinterval()
    with tempfile.TemporaryDirectory() as folder:
        file = SampleFile(Path(folder) / "0-0-0.samples")

        def see(moment: float, passed: float, stack: tuple) -> None:
            phase, below = phase_of(stack)
            file.add(moment, passed, phase, code_line_of(below) if below else None)

        for _ in range(turns):
            before = work()
            sampler = StackSampler(see, file.flush, quick=True)
            sampler.start()
            sampled = work()
            sampler.stop()
            sys.setswitchinterval(usual)
            found.append(2 * sampled / (before + work()) - 1)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print both."""
    asked = options(__doc__, rounds=(5, 1), seconds=(4.0, 0.5)).parse_args(arguments)
    print(machine())
    costs = costs_of(4 * asked.rounds)
    print(f"the sampler costs {spread([100 * each for each in costs])} % of the CPU time of a worker")
    for unit in (0.002, 0.005, 0.015):
        off = []
        for _ in range(asked.rounds):
            true, seen = shares(unit, asked.seconds)
            off.append(max(100 * abs(true[name] - seen[name]) for name in true))
        print(f"lines of {1e3 * unit:g} ms: the share that is furthest off is off by {spread(off)} points")
    save(
        "sampler",
        "the sampler of stacks, of a worker's CPU time",
        f"{100 * sorted(costs)[len(costs) // 2]:.1f} %",
    )


if __name__ == "__main__":
    main()
