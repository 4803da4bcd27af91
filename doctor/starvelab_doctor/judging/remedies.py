"""The remedies for a job that was watched, the first of them the one to try first.

A cause that the samples show comes first, since no setting replaces its cure. Of the rest comes first what
likely brings most by the model of the job; a line that may be left out comes before settings that bring no
more, since these only spread its work over cores. What may make the job slower goes behind what does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from starvelab.measure.verdict import NOT_BOUND, SEVERE, SLIGHT, UNKNOWN
from starvelab.tables import count_of, percent
from starvelab.units import Q_, format_quantity

from ..finding.job import BUSY, QUEUED, RESTART, JobFinding
from ..finding.lines import GENERATOR
from ..finding.stages import COLLATE, DATASET, HANDOVER, RECEIVE
from ..shares import MIN_BATCHES
from .causes import CAUSES, COLLECTOR, OF_PASSES, STUCK, line_remedies
from .facts import Facts
from .known_calls import LOCK
from .model import Costs, Gain
from .remedy import Effect, Remedy, Row

# Milliseconds of an item that is better fetched together with others. One of four rows in memory takes 7 us
# alone and 0.05 us together: benchmarks.judging. What takes three times as long does something else, too.
TINY = 0.02
# Bytes of what an item is a view of, over its own, from which on it is read for nothing: by definition more
# than a crop. One of 224 pixels from an average image of ImageNet is a view of 4.4 times its bytes.
SPREAD = 8.0


def remedies_of(finding: JobFinding, *, cores: float | None = None) -> tuple[Remedy, ...]:
    """Return what to change, what is to be tried first at the beginning; none where too little is known."""
    facts = Facts(finding, cores)
    if stuck := STUCK.of(facts):
        return (stuck,)
    if finding.verdict == UNKNOWN or finding.waits.counted < MIN_BATCHES:
        return ()
    if finding.verdict == NOT_BOUND:
        causes, settings = _first_and_others(OF_PASSES, IN_ANY_CASE, facts)
        return _within(facts, (*causes, *settings))
    if again := ITERATOR.of(facts):
        return (again,)
    causes, settings = _first_and_others((*CAUSES, *OF_PASSES), (*IN_ANY_CASE, *SETTINGS), facts)
    lines = [] if causes else line_remedies(facts)
    if any(line.name == LOCK for line in lines):
        settings = [remedy for remedy in settings if remedy.name != "workers"]
    settings.sort(key=lambda remedy: (remedy.risky, -remedy.likely))
    best = max((one.likely for one in settings), default=1.0)
    if facts.advice is not None and not facts.rests:
        best = max(best, facts.advice.best.gain.likely)
    collector = _apply((COLLECTOR,), facts)
    # Many small items may be what makes the collector run so often.
    together, later = (collector, []) if any(one.name == "together" for one in settings) else ([], collector)
    of_code = sorted([*lines, *later], key=lambda remedy: -remedy.likely)
    first = [remedy for remedy in of_code if remedy.likely >= best]
    rest = [remedy for remedy in of_code if remedy.likely < best]
    return _within(facts, (*causes, *first, *settings, *rest, *together))


def _first_and_others(
    causes: Iterable[Row], others: Iterable[Row], facts: Facts
) -> tuple[list[Remedy], list[Remedy]]:
    """Return the first cause that applies, if any does, and the other remedies that it does not rule out."""
    for row in causes:
        if (cause := row.of(facts)) is not None:
            return [cause], [one for one in _apply(others, facts) if one.name not in row.rules_out]
    return [], _apply(others, facts)


def _apply(rows: Iterable[Row], facts: Facts) -> list[Remedy]:
    return [remedy for row in rows if (remedy := row.of(facts)) is not None]


def _within(facts: Facts, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return what the ladder leaves of the remedies, with the gains of the whole job."""
    finding = facts.finding
    # Times say what work takes where nobody else used the cores or waited for one, nor for another rank.
    machine = finding.machine
    alone = (machine.others_cpu or 0.0) < BUSY and (machine.core_waits or 0.0) < QUEUED
    certain = alone and not finding.ranks.found
    within = (remedy.within(finding, certain=certain) for remedy in remedies)
    return tuple(remedy for remedy in within if remedy is not None)


# The items, and their hand-over.


def _item_time(facts: Facts) -> float:
    """Return the milliseconds that the dataset takes for an item; 0 where that was not looked at."""
    if facts.stages is None or facts.items is None:
        return 0.0
    return float(facts.stages.costs[DATASET].m_as("ms")) * max(facts.workers, 1) / facts.items.number


def _quicker(facts: Facts, rest: float) -> Effect:
    """Return what it brings at most that the dataset takes this share of its time."""
    costs = facts.stages.costs if facts.stages is not None else {}
    dataset, collate = (float(costs[name].m_as("ms")) for name in (DATASET, COLLATE))
    return Effect(facts.without(dataset / (dataset + collate) * (1 - rest)))


def _receiving(facts: Facts, share: float) -> Effect | None:
    """Return what it brings at most to receive a batch in this share of the time; None where untold."""
    timed = facts.stages is not None and facts.stages.receiving is not None
    if not facts.workers or not (timed or (facts.stages is None and facts.finding.ready)):
        return None
    return Effect(facts.gain(lambda costs: replace(costs, receive=costs.receive * share), sure=False))


def _is_handed_over(facts: Facts) -> bool:
    """True where the hand-over may take most of what a batch costs, or collating, of which it is a part."""
    if (stages := facts.stages) is None:
        return False
    leading = sorted(stages.shares, key=stages.shares.__getitem__)[-1 if stages.certain else -2 :]
    return not {HANDOVER, COLLATE}.isdisjoint(leading)


def is_for_handover(facts: Facts) -> bool:
    """True where it takes longer to hand a small batch over than to prepare it."""
    stages, prepare = facts.stages, sum(facts.lines.working) * facts.finding.waits.period
    if not facts.workers or not facts.small or facts.objects:
        return False
    return stages.certain and stages.largest == HANDOVER if stages is not None else 0 < prepare < RECEIVE


# The queue.


def _deeper(facts: Facts) -> Effect | None:
    """Return how many batches ahead of each worker hide late ones, and what that brings; None without any."""
    model = facts.model
    if model is None or facts.finding.loader.prefetch is None or model.lateness < 1 + SLIGHT:
        return None
    ahead, gain = facts.finding.loader.prefetch, Gain(1.0, 1.0, 1.0)
    room = facts.finding.room
    while more := next((n for n in range(2 * ahead, ahead, -1) if room.workers_for(n) >= room.workers), 0):
        wider = model.gain_of_queue(more)
        if wider.likely < gain.likely * (1 + SLIGHT):
            break
        ahead, gain = more, wider
    return Effect(gain, ahead)


# The loop's own thread.


def _drawn(facts: Facts) -> Effect:
    """Return what it brings that the loop's sampler takes nothing."""
    gain = facts.gain(lambda costs: replace(costs, step=costs.step - facts.sampling), sure=False)
    return Effect(facts.at_most(gain, facts.sampling))


def _moved(facts: Facts) -> Effect | None:
    """Return what moving the work of the loop into its workers brings; unknown without a probe."""
    line, model = facts.loop_line, facts.model
    if line is None or model is None:
        return None
    if facts.workers and not model.prepared:  # how busy they are
        return Effect()
    work = line.share * model.period

    def change(costs: Costs) -> Costs:
        moved = min(work, costs.step)
        compute = costs.compute + moved
        return replace(costs, step=costs.step - moved, compute=compute, workers=max(costs.workers, 1))

    gain = facts.gain(change, sure=line.phase == GENERATOR)
    return Effect(facts.at_most(gain, work) if facts.workers else gain, max(facts.workers, 1))


def _move(facts: Facts, effect: Effect) -> str:
    line = facts.loop_line
    assert line is not None
    if_input = "" if line.phase == GENERATOR else "if that prepares the batch, "
    into = f", with {count_of(effect.value, 'worker')}" if effect.value else ""
    unknown = "" if effect.gain else " A probe tells the gain."
    return (
        f"The loop's own thread computes at {line.place} in {percent(line.share)} of the time: "
        f"{if_input}move it into the workers, that is into the dataset or collate_fn{into}.{unknown}"
    )


# The workers.


def _workers(facts: Facts) -> Effect | None:
    """Return the workers to try, and what they bring."""
    advice = facts.advice
    if advice is None or advice.best is advice.now:
        return None
    # Where as many as are advised may bring less than twice as many as now, these decide.
    best = advice.best
    twice = advice.options[min(2 * facts.workers or best.workers, best.workers)]
    chosen = best if best.gain.told or best.gain.low > twice.gain.high else twice
    return Effect(chosen.gain, chosen.workers)


def _wait(facts: Facts) -> str:
    return format_quantity(Q_(facts.finding.waits.host_wait * facts.finding.waits.period, "ms"))


ITERATOR = Row(
    "iterator",
    lambda facts: facts.finding.waits.restarts,
    lambda facts, _: (
        f"Beginning a pass takes {_wait(facts)} on average"
        f"{', and ending its workers takes more' if facts.workers else ''}. {RESTART}"
    ),
)
# Of these a job may gain that does not wait for its next batch.
IN_ANY_CASE = (
    Row("move", lambda facts: facts.loop_line, _move, _moved),
    Row(
        "between",
        lambda facts: facts.lines.apart >= SEVERE,
        lambda facts, _: (
            f"{facts.lines.apart_summary} No setting of the loader shortens that: do it once, before the "
            "first pass, or less often."
        ),
        lambda facts: Effect(order=1 / max(1 - facts.lines.apart, SLIGHT)),
    ),
    Row(
        "persistent",
        lambda facts: facts.passes and facts.workers and not facts.finding.loader.persists,
        lambda facts, _: (
            f"Beginning and ending a later pass takes {facts.passes}: keep the workers with "
            "persistent_workers=True in one loader for all passes, or make each pass longer."
        ),
        lambda facts: Effect(facts.passes.gain if facts.passes else None),
    ),
    Row(
        "passes",
        lambda facts: facts.passes and not (facts.workers and not facts.finding.loader.persists),
        lambda facts, _: (
            f"Beginning a later pass takes {facts.passes}: make the DataLoader once, before all passes, and "
            "let its sampler and its dataset list the items once."
        ),
        lambda facts: Effect(order=facts.passes.gain.likely if facts.passes else 1.0),
    ),
    Row(
        "pickling",
        lambda facts: facts.pickled >= SLIGHT,
        lambda facts, _: (
            "A list is pickled for each worker that starts, which takes "
            f"{percent(facts.pickled)} of the time in all: let the workers open a file with "
            "it, or hold it in one tensor, which they share."
        ),
    ),
)
SETTINGS = (
    Row(
        "views",
        lambda facts: facts.items and facts.items.spread >= SPREAD,
        lambda facts, _: (
            f"Each item is a view of {facts.items.spread if facts.items else 1:.0f} times its bytes, and "
            "all of these are read or computed for it: read them once for all of their items, or store each "
            "item in one piece."
        ),
        lambda facts: _quicker(facts, 1 / facts.items.spread if facts.items else 1.0),
    ),
    Row(
        "together",
        lambda facts: facts.items and not facts.items.together and _item_time(facts) < TINY,
        lambda facts, _: (
            f"{facts.items.number if facts.items else 0} items of {1e3 * _item_time(facts):.0f} microseconds "
            "are fetched one by one for each batch: give the dataset a method __getitems__, which returns "
            "all of them at once."
        ),
        lambda facts: _quicker(facts, 0.0),
    ),
    Row(
        "packing",
        lambda facts: facts.objects,
        lambda facts, _: (
            f"Let collate_fn put the {facts.objects} objects of a batch into one tensor, because "
            "each is handed over on its own."
        ),
        lambda facts: _receiving(facts, 1 / facts.objects),
    ),
    Row(
        "bytes",
        lambda facts: facts.dtype and _is_handed_over(facts),
        lambda facts, _: f"Send fewer bytes: uint8 instead of {facts.dtype}, if the model can take it.",
        lambda facts: _receiving(facts, 1 / np.dtype(facts.dtype).itemsize),
    ),
    Row(
        "prefetch",
        lambda facts: facts.workers,
        lambda facts, effect: f"prefetch_factor={effect.value} instead of {facts.finding.loader.prefetch}.",
        _deeper,
    ),
    Row(
        "sampler",
        lambda facts: facts.sampling >= SLIGHT * facts.finding.waits.period,
        lambda facts, _: (
            f"The sampler takes {format_quantity(Q_(facts.sampling, 'ms'))} for each batch in the "
            f"training loop{facts.sampler_line}, and more workers do not help: draw the indices of "
            "a pass at once, or before it."
        ),
        _drawn,
    ),
    Row(
        "workers",
        is_for_handover,
        lambda *_: (
            "num_workers=0, or larger batches: handing over so small a batch takes longer than preparing it."
        ),
        lambda facts: Effect(
            facts.gain(lambda costs: replace(costs, workers=0)) if facts.stages else None, 0
        ),
    ),
    Row(
        "receiving",
        lambda facts: facts.receives,
        lambda facts, _: (
            f"A batch is ready when the loop asks, and takes {_wait(facts)} to be received: send fewer bytes "
            "or tensors, and let no other thread of this process compute, since it holds Python's lock."
        ),
    ),
    # Threads share Python's lock, and workers that rest are enough: more of them promise nothing.
    Row(
        "workers",
        lambda facts: facts.finding.loader.processes is not False and not facts.rests,
        lambda facts, effect: (
            f"{count_of(effect.value or 0, 'worker')} instead of {facts.workers}"
            f"{f'; {facts.advice.room}' if facts.advice and facts.advice.room else '.'}"
        ),
        _workers,
    ),
    Row(
        "memory",
        lambda facts: facts.advice is not None and facts.advice.room and not _workers(facts),
        lambda facts, _: str(facts.advice),
    ),
)
