"""Causes that the samples of workers and loop show: idle workers, threads, a first batch, lines, pauses.

A cause names the remedies that it rules out, since no other setting replaces its own.
"""

from __future__ import annotations

import os

from starvelab.host import usable_cores
from starvelab.measure.verdict import SLIGHT
from starvelab.tables import count_of, percent

from ..finding.lines import COLLATE, DATASET, SAMPLER, WHERE, LineShare
from .facts import PART, Facts
from .known_calls import KnownCall, known_call
from .remedy import Effect, Remedy, Row

OVERSUBSCRIBED = 2.0  # threads for each core, all of which compute; a choice
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _has_idle_workers(facts: Facts) -> bool:
    """True where a stream has workers to which no shard fell."""
    lines, stream = facts.lines, facts.finding.loader.stream
    return stream and facts.workers > 1 and lines.idle > 0 and len(lines.working) == facts.workers


def _shards(facts: Facts, _: Effect) -> str:
    return (
        f"{count_of(facts.lines.idle, 'worker')} of {facts.workers} prepared nothing: the dataset divides "
        "its files or shards among the workers, and has too few of them. Write at least "
        f"{facts.workers} shards of one size, or divide the items instead."
    )


def _has_many_threads(facts: Facts) -> bool:
    """True where the threads of libraries in all workers are more than the cores, and compute."""
    lines, machine = facts.lines, facts.finding.machine
    crowded = facts.workers * (lines.threads + 1) >= OVERSUBSCRIBED * usable_cores()
    computes = machine.prepare_threads > 1 or (machine.prepare_queued or 0.0) >= SLIGHT
    return bool(facts.workers and lines.threads and crowded and computes and lines.largest)


def _threads(facts: Facts, _: Effect) -> str:
    lines, cores = facts.lines, usable_cores()
    values = {name: os.environ[name] for name in VARIABLES if os.environ.get(name, "1") != "1"}
    now = f" (now {', '.join(f'{name}={value}' for name, value in values.items())})" if values else ""
    at = f"{lines.largest.place}, in {lines.largest.call or 'that line'}" if lines.largest else ""
    return (
        f"Each of the {facts.workers} workers has {count_of(lines.threads, 'thread')} of a library beside "
        f"its own, and all of them share {count_of(cores, 'core')}; they compute at {at}. Let each worker "
        f"compute with one: set {', '.join(VARIABLES)} to 1 before Python starts{now}, or call "
        "threadpoolctl.threadpool_limits(1) in worker_init_fn."
    )


def _first_line(facts: Facts, phase: str) -> LineShare | None:
    """Return the line of a phase that takes most of the wait for the first batch of a pass."""
    if facts.passes is None or not facts.passes.matters:
        return None
    line = next(iter(facts.lines.first), None)
    return line if line is not None and line.phase == phase and line.share >= 1 - line.share else None


def _begins(facts: Facts, where: str) -> str:
    taken = facts.passes.summary if facts.passes is not None else ""
    line = facts.lines.first[0]
    return f"The first batch of a later pass takes {taken}, most of it at {line.summary}, in {where}"


def _collects(facts: Facts) -> bool:
    return max(facts.lines.loop_pauses, facts.lines.pauses) >= PART


def _collector(facts: Facts, _: Effect) -> str:
    lines = facts.lines
    in_loop = lines.loop_pauses >= lines.pauses
    where, call = (
        ("the training loop", "before the loop") if in_loop else ("the workers", "in worker_init_fn")
    )
    return (
        f"Python's garbage collector takes {percent(max(lines.loop_pauses, lines.pauses), 0)} of the time of "
        f"{where}, since it goes over all objects of the process: call gc.freeze() {call}, or hold the items "
        "in arrays."
    )


STUCK = Row(
    "stuck",
    lambda facts: facts.lines.stuck,
    lambda facts, _: (
        f"All workers live and none sends a batch: they are at {facts.lines.stuck[0].summary}. Where that "
        "waits for a lock, another thread held it when they were forked, and nobody releases it in them: "
        'make the lock in worker_init_fn, or start the workers with multiprocessing_context="spawn".'
    ),
)
# The first that applies comes before any other remedy.
CAUSES = (
    Row(
        "shards", _has_idle_workers, _shards, lambda facts: Effect(value=facts.workers),
        rules_out=frozenset({"workers", "prefetch", "persistent", "memory", "receiving", "divide"}),
    ),
    Row(
        "threads", _has_many_threads, _threads, lambda _: Effect(value=1),
        rules_out=frozenset({"workers", "receiving", "prefetch", "move"}),
    ),
    Row(
        "sampler",
        lambda facts: _first_line(facts, SAMPLER),
        lambda facts, _: (
            f"{_begins(facts, 'the sampler')}: draw or sort the items once, and not for each pass."
        ),
        rules_out=frozenset({"persistent", "passes"}),
    ),
    # What a map-style dataset does for its first item it does once for each new worker: they may be kept.
    Row(
        "first batch",
        lambda facts: facts.finding.loader.stream and _first_line(facts, DATASET),
        lambda facts, _: (
            f"{_begins(facts, 'the dataset')}, before it gives its first item: let items leave before a "
            "buffer is full, or list and open files once. Workers that are kept do that for each pass, too."
        ),
        rules_out=frozenset({"persistent", "passes"}),
    ),
)  # fmt: skip
COLLECTOR = Row("collector", _collects, _collector)


def line_remedies(facts: Facts) -> tuple[list[Remedy], list[Remedy], set[str]]:
    """Return what to do about waste at a line, and about work at one, and the stage that this says more of.

    Waste comes before any setting, and work that has to be done behind them.
    """
    lines = facts.lines
    if lines.largest is None or lines.largest.phase not in (DATASET, COLLATE):
        return [], [], set()
    rows = [
        (line, known_call(line.call))
        for line in lines.preparing
        if line.share >= PART and not facts.is_little(line.share)
    ]
    if twice := _twice(rows):
        return [], [twice], {DATASET}
    if not rows:
        return [], [], set()
    line, call = next(((line, call) for line, call in rows if call is not None and call.waste), rows[0])
    remedy = Remedy(call.name if call is not None else line.phase, _of_line(line, call))
    waste = call is not None and call.waste
    return ([remedy], [], {line.phase}) if waste else ([], [remedy], {line.phase})


def _of_line(line: LineShare, call: KnownCall | None) -> str:
    below = f", in {line.call}" if line.call else ""
    takes = (
        f"{line.place}, in {WHERE[line.phase]}, takes {percent(line.share, 0)} of the time in which batches "
        f"are prepared{below}"
    )
    if call is not None:
        return f"{takes}: there {call.does}. {call.cure[0].upper()}{call.cure[1:]}."
    return (
        f"{takes}: do that once, before the training or for all items of a batch, or let faster code do it."
    )


def _twice(rows: list[tuple[LineShare, KnownCall | None]]) -> Remedy | None:
    """Return what to do where several lines of a dataset do the same costly work."""
    works: dict[str, list[LineShare]] = {}
    for line, call in rows:
        if call is not None and line.own and line.phase == DATASET:
            works.setdefault(call.does, []).append(line)
    does, same = max(works.items(), key=lambda item: len(item[1]), default=("", []))
    if len(same) <= 1:
        return None
    places = " and ".join(line.summary for line in same)
    return Remedy(
        "twice",
        f"{does[0].upper()}{does[1:]} at {len(same)} lines of the dataset: {places}. If these are the same "
        "data, do it once, and keep the result.",
    )
