"""Causes that the samples of workers and loop show: idle workers, threads, the first batch, the collector.

Each has a remedy that no other number of workers replaces, so it names the remedies that it rules out. Where
nothing tells what a change brings, no gain is said: a trial can tell.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from starvelab.host import usable_cores
from starvelab.measure.verdict import SLIGHT
from starvelab.tables import count_of, percent
from starvelab.units import Q_, format_quantity

from ..finding.job import JobFinding
from ..finding.lines import COLLATE, DATASET, SAMPLER, START, WHERE, JobLines, LineShare
from .advice import WorkerAdvice
from .known_calls import KnownCall, known_call
from .remedy import UNTOLD, Remedy
from .times import start_up_of

OVERSUBSCRIBED = 2.0  # threads for each core, all of which compute; a choice
MOSTLY = 0.5  # share of the first batches of later passes that one line takes; a choice
ONE_LINE = 0.25  # share of preparing from which on a line has a remedy of its own; a choice
TWICE = 0.2  # and each of several lines that make the same call; a choice
COLLECTS = 0.15  # share of the time from which on the collector is a cause; a choice
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LONG = 2e3  # milliseconds that are written as seconds; a choice


def stuck_workers(finding: JobFinding) -> Remedy | None:
    """Return what to do where workers live and send nothing."""
    stuck = finding.loader.lines.stuck if finding.loader.lines is not None else ()
    if not stuck:
        return None
    text = (
        f"All workers live and none sends a batch: they are at {stuck[0].summary}. Where that waits for a "
        "lock, another thread held it when they were forked, and nobody releases it in them: make the lock "
        'in worker_init_fn, or start the workers with multiprocessing_context="spawn".'
    )
    return Remedy("stuck", text)


def ruling_causes(finding: JobFinding, advice: WorkerAdvice | None) -> tuple[list[Remedy], set[str]]:
    """Return the causes that come before any other remedy, and the names of remedies that they rule out."""
    lines = finding.loader.lines
    if lines is None or advice is None:
        return [], set()
    if shards := _shards(finding, lines, advice):
        return [shards], {"workers", "prefetch", "persistent", "memory", "receiving", "divide"}
    if threads := _threads(finding, lines):
        return [threads], {"workers", "receiving", "prefetch", "move"}
    if first := _first_batch(finding, lines, advice):
        return [first], {"persistent", "passes"}
    return [], set()


@dataclass(frozen=True)
class LineRemedy:
    """What to do about the line at which most of a batch is made."""

    remedy: Remedy
    stage: str  # of the loader, whose own remedy says less
    waste: bool  # its work need not be done again for each item


def line_remedy(finding: JobFinding) -> LineRemedy | None:
    """Return what to do about the line at which most of a batch is made; None where none stands out."""
    lines = finding.loader.lines
    line = lines.largest if lines is not None else None
    if lines is None or line is None or line.phase not in (DATASET, COLLATE):
        return None
    if (twice := _twice(lines)) is not None:
        return twice
    large = [(one, known_call(one.call)) for one in lines.preparing if one.share >= ONE_LINE]
    if not large:
        return None
    line, row = next(((one, row) for one, row in large if row is not None and row.waste), large[0])
    remedy = Remedy(row.name if row is not None else line.phase, _text(line, row))
    return LineRemedy(remedy, line.phase, row is not None and row.waste)


def _text(line: LineShare, row: KnownCall | None) -> str:
    below = f", in {line.call}" if line.call else ""
    takes = (
        f"{line.place}, in {WHERE[line.phase]}, takes {percent(line.share, 0)} of the time in which batches "
        f"are prepared{below}"
    )
    if row is not None:
        return f"{takes}: there {row.does}. {row.cure[0].upper()}{row.cure[1:]}."
    return (
        f"{takes}: do that once, before the training or for all items of a batch, or let faster code do it."
    )


def _twice(lines: JobLines) -> LineRemedy | None:
    """Return what to do where several lines of a dataset do the same costly work."""
    works: dict[str, list[LineShare]] = {}
    for line in lines.preparing:
        row = known_call(line.call)
        if row is not None and line.own and line.share >= TWICE and line.phase == DATASET:
            works.setdefault(row.does, []).append(line)
    does, same = max(works.items(), key=lambda item: len(item[1]), default=("", []))
    if len(same) < 2:
        return None
    places = " and ".join(line.summary for line in same)
    text = (
        f"{does[0].upper()}{does[1:]} at {len(same)} lines of the dataset: {places}. If these are the same "
        "data, do it once, and keep the result."
    )
    return LineRemedy(Remedy("twice", text), DATASET, waste=False)


def _shards(finding: JobFinding, lines: JobLines, advice: WorkerAdvice) -> Remedy | None:
    """Return what as many shards as workers bring, where some of the workers have none."""
    workers = finding.loader.workers or 0
    if not (finding.loader.stream and workers > 1 and lines.idle and len(lines.working) == workers):
        return None
    likely = advice.model.likely
    period = finding.waits.period
    most = max(min(workers / (workers - lines.idle), period / (likely.step + likely.receive)), 1.0)
    text = (
        f"{count_of(lines.idle, 'worker')} of {workers} prepared nothing: the dataset divides its files or "
        f"shards among the workers, and has too few of them. Write at least {workers} shards of one size, or "
        f"divide the items instead."
    )
    return Remedy("shards", text, (1.0, most, most), at_most=True, value=workers)


def _threads(finding: JobFinding, lines: JobLines) -> Remedy | None:
    """Return what to do where the threads of libraries in all workers are more than the cores."""
    workers, cores = finding.loader.workers or 0, usable_cores()
    crowded = workers * (lines.threads + 1) >= OVERSUBSCRIBED * cores
    computes = finding.machine.prepare_threads > 1 or (finding.machine.prepare_queued or 0.0) >= SLIGHT
    if not (workers and lines.threads and crowded and computes and lines.largest):
        return None
    values = {name: os.environ[name] for name in VARIABLES if os.environ.get(name, "1") != "1"}
    now = f" (now {', '.join(f'{name}={value}' for name, value in values.items())})" if values else ""
    text = (
        f"Each of the {workers} workers has {count_of(lines.threads, 'thread')} of a library beside its own, "
        f"and all of them share {count_of(cores, 'core')}; they compute at {lines.largest.place}, in "
        f"{lines.largest.call or 'that line'}. Let each worker compute with one: set {', '.join(VARIABLES)} "
        f"to 1 before Python starts{now}, or call threadpoolctl.threadpool_limits(1) in worker_init_fn."
    )
    return Remedy("threads", text, value=1, note=UNTOLD)


def _first_batch(finding: JobFinding, lines: JobLines, advice: WorkerAdvice) -> Remedy | None:
    """Return what to do where one line takes most of the wait for the first batch of a pass."""
    cost, line = start_up_of(finding, advice.model), lines.first[0] if lines.first else None
    if cost is None or not cost.matters or line is None or line.share < MOSTLY:
        return None
    # What a map-style dataset does for its first item it does once for each new worker: they may be kept.
    if line.phase == START or (line.phase == DATASET and not finding.loader.stream):
        return None
    each = format_quantity(Q_(cost.each, "ms") if cost.each < LONG else Q_(cost.each / 1e3, "s"))
    part = percent(cost.each / (cost.each + cost.others), 0)
    begins = f"The first batch of a later pass takes {each} on average, {part} of the time, most of it at "
    most = max(cost.now / cost.after, 1.0)
    if line.phase == SAMPLER:
        cure = "draw or sort the items once, and not for each pass."
        text = f"{begins}{line.summary}, in the sampler: {cure}"
        return Remedy("sampler", text, (1.0, most, most), at_most=True)
    if line.phase != DATASET:
        return None
    text = (
        f"{begins}{line.summary}, in the dataset, before it gives its first item: let items leave before a "
        "buffer is full, or list and open files once. Workers that are kept do that for each pass, too."
    )
    return Remedy("first batch", text, (1.0, most, most), at_most=True)


def collector(finding: JobFinding) -> Remedy | None:
    """Return what to do where Python's garbage collector takes much of the time."""
    lines = finding.loader.lines
    if lines is None or max(lines.loop_pauses, lines.pauses) < COLLECTS:
        return None
    in_loop = lines.loop_pauses >= lines.pauses
    where, call = (
        ("the training loop", "before the loop") if in_loop else ("the workers", "in worker_init_fn")
    )
    share = percent(max(lines.loop_pauses, lines.pauses), 0)
    text = (
        f"Python's garbage collector takes {share} of the time of {where}, since it goes over all objects of "
        f"the process: call gc.freeze() {call}, or hold the items in arrays."
    )
    return Remedy("collector", text)
