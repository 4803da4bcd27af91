"""Causes that the samples of workers and loop show: idle workers, threads, a first batch, lines, pauses.

A cause names the remedies that it rules out, since no other setting replaces its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf

from starvelab.host import usable_cores
from starvelab.measure.verdict import NOT_BOUND, SEVERE, SLIGHT
from starvelab.tables import count_of, percent

from ..finding.lines import COLLATE, DATASET, SAMPLER, WHERE, LineShare
from .facts import Facts
from .known_calls import LOCK, WAIT, KnownCall, known_call
from .model import AGREE
from .remedy import Effect, Remedy, Row

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _has_idle_workers(facts: Facts) -> bool:
    """True where a stream has workers to which no shard fell."""
    lines, stream = facts.lines, facts.finding.loader.stream
    return stream and facts.workers > 1 and lines.idle > 0 and len(lines.working) == facts.workers


def _has_many_threads(facts: Facts) -> bool:
    """True where the threads of libraries in all workers are more than the cores, and wait for these."""
    lines = facts.lines
    crowded = facts.workers * (lines.threads + 1) > usable_cores()
    return bool(lines.threads and crowded and lines.queued >= SLIGHT and lines.largest)


def _threads(facts: Facts, _: Effect) -> str:
    values = [f"{name}={os.environ[name]}" for name in VARIABLES if os.environ.get(name, "1") != "1"]
    now = f" (now {', '.join(values)})" if values else ""
    threads = count_of(facts.lines.threads, "thread")
    at = facts.lines.largest.summary if facts.lines.largest else ""
    return (
        f"Each of the {facts.workers} workers has {threads} of a library beside its own, and all of them "
        f"share {count_of(usable_cores(), 'core')}; they compute at {at}. Let each worker compute with one: "
        f"set {', '.join(VARIABLES)} to 1 before Python starts{now}, or call "
        "threadpoolctl.threadpool_limits(1) in worker_init_fn."
    )


def _begins_in(facts: Facts, phase: str) -> bool:
    """True where a line of a phase takes most of the wait for the first batch of a pass."""
    line = next(iter(facts.lines.first), None)
    if facts.passes is None or line is None:
        return False
    return line.phase == phase and line.share >= 1 - line.share


def _begins(facts: Facts, cure: str) -> str:
    line = facts.lines.first[0]
    return (
        f"The first batch of a later pass takes {facts.passes}, most of it at {line.summary}, in "
        f"{WHERE[line.phase]}: {cure}"
    )


def _collector(facts: Facts, _: Effect) -> str:
    in_loop = facts.lines.loop_pauses >= facts.lines.pauses
    where = "the training loop" if in_loop else "the workers"
    call = "before the loop" if in_loop else "in worker_init_fn"
    share = percent(max(facts.lines.loop_pauses, facts.lines.pauses), 0)
    return (
        f"Python's garbage collector takes {share} of the time of {where}, because it goes over all "
        f"objects of the process: call gc.freeze() {call}, or hold the items in arrays."
    )


STUCK = Row(
    "stuck",
    lambda facts: facts.lines.stuck,
    lambda facts, _: (
        f"All workers live, but none sends a batch: they are at {facts.lines.stuck[0].summary}. If this line "
        "waits for a lock, another thread held the lock when they were forked, and they cannot release it: "
        'make the lock in worker_init_fn, or start the workers with multiprocessing_context="spawn".'
    ),
)
# The first that applies comes before any other remedy; those of passes also where no later batch waits.
CAUSES = (
    Row(
        "divide",
        lambda facts: facts.finding.loader.repeats,
        lambda facts, _: facts.finding.divided,
        rules_out=frozenset({"workers", "dataset"}),
    ),
    Row(
        "shards",
        _has_idle_workers,
        lambda facts, _: (
            f"{count_of(facts.lines.idle, 'worker')} of {facts.workers} prepared nothing: the dataset "
            "divides its files or shards among the workers, and has too few of them. Write at least "
            f"{facts.workers} shards of one size, or divide the items instead."
        ),
        lambda facts: Effect(value=facts.workers),
        rules_out=frozenset({"workers", "prefetch", "persistent", "memory", "receiving"}),
    ),
    Row(
        "threads",
        _has_many_threads,
        _threads,
        lambda _: Effect(value=1),
        rules_out=frozenset({"workers", "receiving", "prefetch", "move"}),
    ),
)
OF_PASSES = (
    Row(
        "sampler",
        lambda facts: _begins_in(facts, SAMPLER),
        lambda facts, _: _begins(facts, "draw or sort the items once, and not for each pass."),
        rules_out=frozenset({"persistent", "passes", "sampler"}),
    ),
    # What a map-style dataset does for its first item it does once for each new worker: they may be kept.
    Row(
        "first batch",
        lambda facts: facts.finding.loader.stream and _begins_in(facts, DATASET),
        lambda facts, _: _begins(
            facts,
            "let items leave before a buffer is full, or list and open files once. Persistent workers do "
            "this for each pass, too.",
        ),
        rules_out=frozenset({"persistent", "passes"}),
    ),
    Row(
        "few batches",
        lambda facts: facts.few_batches if facts.workers and facts.finding.verdict == NOT_BOUND else None,
        lambda facts, _: (
            f"The first batch of a later pass takes {facts.few_batches}, because one worker prepares all of "
            "it while the loop waits: make batches smaller, or passes longer."
        ),
        rules_out=frozenset({"persistent", "passes"}),
    ),
)
COLLECTOR = Row(
    "collector",
    lambda facts: max(facts.lines.loop_pauses, facts.lines.pauses) >= SEVERE,
    _collector,
    lambda facts: Effect(order=facts.without(max(facts.lines.loop_pauses, facts.lines.pauses)).likely),
)


def _line_to_name(lines: Sequence[LineShare]) -> tuple[LineShare, KnownCall | None]:
    """Return the largest line and what is known of its call, or a smaller line that explains it."""
    known = [(line, known_call(line.call)) for line in lines]
    largest, call = known[0]
    for line, other in known[1:]:
        if call is None and other is not None and other.removable and line.share * AGREE >= largest.share:
            return line, other  # a line that calls known waste takes as much
        if call is not None and call.name == WAIT and other is not None and other.name == LOCK:
            return line, other  # who waits while holding a lock lets all others wait for it
    return largest, call


def line_remedies(facts: Facts) -> list[Remedy]:
    """Return what to do about the line at which most of preparing goes, where a cure of it brings anything.

    It is ordered by what leaving out all such lines brings. Where the cure only makes the line faster, it is
    the line alone, and where nothing is known of it, all lines of which nothing is known, as in a loop in
    Python: then it has to be clearly more than what a setting brings.
    """
    largest = facts.lines.largest
    if largest is None or largest.phase not in (DATASET, COLLATE):
        return []
    lines = [one for one in facts.lines.preparing if one.phase == largest.phase and one.share >= SEVERE]
    # The wait of the loop bounds what a cure brings, whatever the model makes of late batches and of locks.
    lines = [one for one in lines if one.share * facts.finding.waits.host_wait >= SLIGHT]
    if not lines:
        return []
    line, call = _line_to_name(lines)
    cure = "do that once, before the training or for all items of a batch, or let faster code do it."
    text = (
        f"{line.place}, in {WHERE[line.phase]}, takes {percent(line.share, 0)} of the time in which batches "
        f"are prepared{f', in {line.call}' if line.call else ''}: {f'there {call.text}' if call else cure}"
    )
    if call is not None and call.name == LOCK:  # no law of workers says what that brings
        order = inf
    elif call is not None and call.name == WAIT:  # more workers hide it, as far as they help
        order = 1.0
    elif call is not None and call.removable:
        order = facts.without(sum(line.share for line in lines)).likely
    elif facts.finding.busy:  # a share of time in which others had the cores is none of the work
        order = 1.0
    else:
        alike = [line] if call is not None else [one for one in lines if known_call(one.call) is None]
        order = facts.without(sum(one.share for one in alike)).likely / AGREE
    return [Remedy(call.name if call is not None else line.phase, text, order=order)]
