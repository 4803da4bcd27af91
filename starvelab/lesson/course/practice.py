"""The clinic: training scripts that starve, each drawn by a number, as puzzles."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from ... import runtime
from ...errors import InputError
from ...model import parts
from ...model.assumptions import PUBLISHED
from ...model.groups import Links
from ...pipeline import Pipeline
from ...units import Q_
from .case import Case, Key, Treatment
from .faults import FAULTS, digits

__all__ = ["Case", "Key", "Treatment", "clinic", "own_case"]

# Where a grader says what number the course has for whoever is graded.
OWN_NUMBER = "own_number.txt"


def clinic(seed: int) -> Case:
    """Return the case of a number: the same one for the same number, everywhere.

    Parameters
    ----------
    seed : int
        Any whole number from 0.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from starvelab.lesson.course.practice import clinic
    >>> case = clinic(7)
    >>> case.guess("num_workers", "autocast")
    'Locked: num_workers, autocast. You may try 3 cures, and then ask for the key.'
    >>> round(case.cure("num_workers").score, 2)
    0.0
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"A case has a whole number from 0, got {seed!r:.80}. Pass for example clinic(7).")
    random = Random(seed)
    while not (case := _drawn(seed, random)).is_fair():
        pass
    return case


def own_case(number: int) -> Case:
    """Return the case of a learner's own number, which no other number of a course shares.

    While it is graded in a course that gives each student a number, this is the case of that number only.

    Parameters
    ----------
    number : int
        The number that your course has given you.

    Raises
    ------
    InputError
    """
    case, path = clinic(number), Path(OWN_NUMBER)
    if runtime.current().is_grading and path.is_file() and (given := int(path.read_text())) != number:
        raise InputError(
            f"Your course has given you the number {given}, and this answer is for case {number}. "
            "Answer for the case of your own number."
        )
    return case


def _drawn(seed: int, random: Random) -> Case:
    """Draw a host, one or two faults, and some lines that only look like faults."""
    host = _host(random)
    names = random.sample(sorted(FAULTS), random.choice((3, 4, 5)))
    # A fault that has only one size needs another one beside it, so that no two cases have the same key.
    faults = names[: random.choice((1, 2, 2, 2)) if FAULTS[names[0]].value is None else 2]
    sizes = {name: FAULTS[name].size(random, host, harmless=name not in faults) for name in names}
    return Case(seed, host, {name: size for name, size in sizes.items() if size is not None}, faults)


def _host(random: Random) -> dict[str, Any]:
    """Draw figures of a host, and its pipeline, in which the accelerator binds; times in ms."""
    cores, batch = random.choice((8, 12, 16, 24, 32)), random.choice((8, 12, 16, 24, 32, 48))
    rate = digits(random.uniform(60, 400))
    link = random.choice((Links.PCIe3_x16, Links.PCIe4_x16, Links.PCIe5_x16))
    step, sample = 1000 * batch / rate, digits(650 * cores / rate / random.uniform(1.3, 1.8))
    transfer = digits(link.bandwidth_pinned_sustained.m_as("MB/s") / rate * random.uniform(0.2, 0.6))
    size, cached = digits(random.uniform(1, 9)), digits(random.uniform(0.6, 0.9))
    drive = digits(size * rate * (1 - cached) / 4 * random.uniform(1.3, 2.2))
    start_up, none = digits(random.uniform(8, 40)), Q_("0 ms")  # in steps
    samples = parts.Samples(
        size=Q_(size, "MB"), cpu_time=Q_(sample, "ms"), on_device=parts.OnDevice(none),
        transfer=Q_(transfer, "MB"),
        jitter=parts.Jitter(slow_share=1 / 8 / batch, slow_time=Q_(step / 2000, "s")),
    )  # fmt: skip
    workers = parts.Workers(
        cores, cores=cores, kind="processes", start_up=Q_(start_up * step, "ms"), persistent=True,
        handover=parts.Handover(worker=Q_(sample * batch / 100, "ms"), loop=Q_(step / 50, "ms")),
    )  # fmt: skip
    pipeline = Pipeline(
        batch_size=batch, dataset=samples, workers=workers, link=parts.Link(link), assumptions=PUBLISHED,
        storage=parts.Drive(
            Q_(drive, "MB/s"), count=4, requests=parts.Requests(none), cache=parts.Cache(cached)
        ),
        hardware=parts.Accelerator(rate=Q_(rate, "sample/s"), host=parts.Host(none), step_overhead=none),
    )  # fmt: skip
    return {
        "cores": cores, "batch": batch, "batch_work": sample * batch, "pipeline": pipeline,
        "sample": sample, "side": round((1e6 * transfer / 3) ** 0.5), "start_up": start_up,
        "step": step, "step_sample": step / batch, "transfer": transfer,
    }  # fmt: skip
