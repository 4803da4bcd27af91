"""The remedies for a job that was watched, the first of them the one to try first.

Each is a row of a table. Of several, the one that brings most by the model of the job goes first; what may
make
the job slower goes behind what does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from starvelab.measure.verdict import NOT_BOUND, SLIGHT, UNKNOWN
from starvelab.tables import count_of, percent
from starvelab.units import Q_, format_quantity

from ..finding.job import RESTART, JobFinding
from ..finding.lines import GENERATOR
from ..finding.stages import COLLATE, DATASET, DRAW, HANDOVER, MANY_OBJECTS, SAMPLER
from ..shares import MIN_BATCHES
from .causes import CAUSES, COLLECTOR, STUCK, line_remedies
from .facts import PART, Facts
from .model import AGREE, MIN_TIMED, PREFETCH, Costs, Gain
from .passes import pickled_share
from .remedy import UNTOLD, Effect, Remedy, Row

# Items of a batch, and milliseconds for each, that are better fetched together: a choice. Of the 4096 of a
# planted job that brought 2.3 times.
MANY_ITEMS, TINY = 64, 0.05
# Bytes of what an item is a view of, over its own, from which on it is read for nothing: a choice. Of 64 in a
# planted job, to read it once brought 3 times.
SPREAD = 4.0


def remedies_of(finding: JobFinding, *, cores: float | None = None) -> tuple[Remedy, ...]:
    """Return what to change, what is to be tried first at the beginning; none where too little is known."""
    facts = Facts(finding, cores)
    if stuck := STUCK.of(facts):
        return (stuck,)
    if finding.verdict == UNKNOWN or finding.waits.counted < MIN_BATCHES:
        return ()
    if finding.verdict == NOT_BOUND:
        return _within(facts, _found(IN_ANY_CASE, facts))
    if again := ITERATOR.of(facts):
        return (again,)
    cause = next(((row, remedy) for row in CAUSES if (remedy := row.of(facts))), None)
    causes, ruled_out = ([cause[1]], set(cause[0].rules_out)) if cause else ([], set[str]())
    waste, work, stage = line_remedies(facts) if not cause else ([], [], set[str]())
    settings = sorted(
        _found((*IN_ANY_CASE, *SETTINGS), facts),
        key=lambda one: (one.risky, -one.gain.high if one.gain is not None else 0.0),
    )
    divide = _found((DIVIDE,), facts)
    rest = [*divide, *settings, *_of_stage(facts, {one.name for one in (*divide, *settings)})]
    rest = [one for one in rest if one.name not in ruled_out | stage]
    # Waste, or many small items, may be what makes the collector run so often.
    more = [*work] if work and _leave_most(facts, settings) else []
    first = [*waste, *more, *(one for one in rest if one.name == "together")]
    work = [one for one in work if one not in more]
    rest = [one for one in rest if one not in first]
    return _within(facts, (*causes, *first, *_found((COLLECTOR,), facts), *rest, *work))


def _leave_most(facts: Facts, settings: Iterable[Remedy]) -> bool:
    """True where no setting likely brings as much as to leave out the lines that make most of a batch."""
    line = facts.lines.largest
    if line is None:
        return False
    share = sum(one.share for one in facts.lines.preparing if one.phase == line.phase and one.share >= PART)
    without = facts.gain(lambda costs: costs.preparing(max(1 - share, 0.0)))
    best = [one.gain.likely for one in settings if one.gain is not None]
    if facts.advice is not None:
        best.append(facts.advice.best.gain.likely)
    return without is not None and without.likely > AGREE * max(best, default=1.0)


def _found(rows: Iterable[Row], facts: Facts) -> list[Remedy]:
    return [remedy for row in rows if (remedy := row.of(facts)) is not None]


def _within(facts: Facts, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return what the ladder leaves of the remedies, with the gains of the whole job."""
    finding = facts.finding
    left = (remedy.below(finding.waits.ceiling) for remedy in remedies)
    whole = (remedy.of_whole(finding) for remedy in left if remedy is not None)
    return tuple(
        remedy if facts.certain else replace(remedy, gain=remedy.gain and replace(remedy.gain, certain=False))
        for remedy in whole
    )


# Passes.


def _begins_anew(facts: Facts) -> bool:
    return _between_is_long(facts) and bool(facts.workers) and not facts.finding.loader.persists


def _between_is_long(facts: Facts) -> bool:
    return facts.passes is not None and facts.passes.matters


def _taken(facts: Facts) -> str:
    return facts.passes.summary if facts.passes is not None else ""


def _pickling(facts: Facts, _: Effect) -> str:
    pickled = facts.finding.loader.pickled
    size = format_quantity(pickled[1], 2) if pickled is not None else ""
    return (
        f"For each worker that starts, up to {size} are pickled, which takes "
        f"{percent(pickled_share(facts.finding))} of the time in all: let the workers open a file with that "
        "list, or hold it in one tensor, which they share."
    )


# The items.


def _spread(facts: Facts) -> float:
    """Return how many times an item's bytes are read for it, where the dataset takes much of a batch."""
    return facts.items.spread if facts.items is not None and facts.dataset_is_large else 1.0


def _item_time(facts: Facts) -> float:
    """Return the milliseconds that the dataset takes for an item."""
    if facts.stages is None or facts.items is None:
        return 0.0
    return float(facts.stages.costs[DATASET].m_as("ms")) * max(facts.workers, 1) / facts.items.number


def _is_one_by_one(facts: Facts) -> bool:
    items = facts.items
    many = items is not None and not items.together and items.number >= MANY_ITEMS
    return many and facts.dataset_is_large and _item_time(facts) < TINY and _spread(facts) < SPREAD


def _together(facts: Facts, _: Effect) -> str:
    number = facts.items.number if facts.items is not None else 0
    return (
        f"{number} items of {1e3 * _item_time(facts):.0f} microseconds are fetched one by one for each "
        "batch: give the dataset a method __getitems__, which returns all of them at once."
    )


# The hand-over.


def _objects(facts: Facts) -> int:
    """Return the objects that are handed over one by one; 0 where they are few."""
    contents = facts.finding.loader.contents
    return contents.one_by_one if contents is not None and contents.one_by_one >= MANY_OBJECTS else 0


def _receiving(facts: Facts, share: float) -> Effect | None:
    """Return what it brings at most to receive a batch in this share of the time; None without a probe."""
    if not facts.workers or facts.stages is None or facts.stages.receiving is None:
        return None
    return Effect(facts.gain(lambda costs: replace(costs, receive=costs.receive * share), sure=False))


def _sends_floats(facts: Facts) -> bool:
    contents, stages = facts.finding.loader.contents, facts.stages
    if contents is None or not contents.floats or facts.small or stages is None:
        return False
    leading = {stages.largest, stages.largest if stages.certain else stages.runner_up}
    return bool(leading & {HANDOVER, COLLATE})


def _type(facts: Facts) -> str:
    contents = facts.finding.loader.contents
    return (contents.dtype if contents is not None else None) or "float32"


def _rests(facts: Facts) -> bool:
    """True where workers of small batches are seen to prepare next to nothing, and the loop waits."""
    return facts.small and 0 < max(facts.lines.working, default=0.0) < PART and not _objects(facts)


def _is_for_handover(facts: Facts) -> bool:
    """True where it is the hand-over of small batches that takes long."""
    stages = facts.stages
    if stages is None:
        return _rests(facts)
    led = stages.certain and stages.largest == HANDOVER
    return bool(facts.workers) and facts.small and led and not _objects(facts)


# The queue.


def _deeper(facts: Facts) -> Effect | None:
    """Return how many batches ahead of each worker hide late ones, and what that brings; None without any."""
    model = facts.model
    if model is None or facts.finding.loader.prefetch is None or model.lateness < 1 + SLIGHT:
        return None
    ahead, gain = facts.prefetch, Gain(1.0, 1.0, 1.0)
    while (more := facts.finding.room.ahead_for(2 * ahead, ahead)) > ahead:
        wider = model.gain_of_queue(more)
        if wider.likely < gain.likely * (1 + SLIGHT):
            break
        ahead, gain = more, wider
    return Effect(gain, ahead)


def _ahead(facts: Facts) -> int:
    """Return the batches ahead of each worker that find room, up to twice as many as PyTorch has."""
    return facts.finding.room.ahead_for(2 * PREFETCH, facts.prefetch)


def _is_untimed(facts: Facts) -> bool:
    """True where each worker has one batch ahead, and nothing tells whether batches are late."""
    timed = facts.model is not None and len(facts.model.prepared) >= MIN_TIMED
    return facts.finding.loader.prefetch == 1 and bool(facts.workers) and not timed


# The loop's own thread.


def _sampling(facts: Facts) -> float:
    return facts.stages.sampling if facts.stages is not None else 0.0


def _moved(facts: Facts) -> Effect | None:
    """Return what moving the work of the loop brings, with the workers for it; unknown without a probe."""
    line, model = facts.loop_line, facts.model
    if line is None or model is None:
        return None
    if facts.workers and not model.prepared:  # how busy they are
        return Effect()
    work = line.share * model.period

    def into(workers: int) -> Gain | None:
        def change(costs: Costs) -> Costs:
            moved = min(work, costs.step)
            return replace(costs, step=costs.step - moved, compute=costs.compute + moved, workers=workers)

        gain = facts.gain(change, sure=line.phase == GENERATOR)
        return facts.at_most(gain, work) if facts.workers else gain

    room = facts.finding.room.workers_for(facts.prefetch)
    most = max(int(min(max(model.likely.cores, 1), room)), facts.workers)
    gains = [(gain, number) for number in range(max(facts.workers, 1), most + 1) if (gain := into(number))]
    best = max(gains, key=lambda one: (round(one[0].likely, 2), -one[1]), default=None)
    return Effect(*best) if best is not None else None


def _move(facts: Facts, effect: Effect) -> str:
    line = facts.loop_line
    if line is None:
        return ""
    if_input = "" if line.phase == GENERATOR else "if that prepares the batch, "
    into = f", with {count_of(effect.value, 'worker')}" if effect.value else ""
    unknown = "" if effect.gain else " What that brings, a probe tells."
    return (
        f"The loop's own thread computes at {line.place} in {percent(line.share)} of the time: "
        f"{if_input}move it into the workers, that is into the dataset or collate_fn{into}.{unknown}"
    )


# The workers.


def _are_threads(facts: Facts) -> bool:
    """True where the workers are threads, which share one lock, and keep a core busy."""
    computes = (facts.finding.machine.loop_cpu or 0.0) >= 1 - PART
    return facts.finding.loader.processes is False and bool(facts.workers) and computes


def _workers(facts: Facts) -> Effect | None:
    """Return the workers to try, and what they bring."""
    advice = facts.advice
    if advice is None or advice.gain < SLIGHT:
        return None
    # Where as many as are advised may bring less than twice as many as now, these decide.
    best = advice.best
    twice = advice.options[min(2 * facts.workers or best.workers, best.workers)]
    chosen = best if best.gain.told or best.gain.low > twice.gain.high else twice
    return Effect(chosen.gain, chosen.workers)


def _room(facts: Facts) -> str:
    """Say why more workers find no room; empty where they do."""
    room = facts.advice.room if facts.advice is not None else ""
    return f" {room[0].upper()}{room[1:]}" if room else ""


def _of_stage(facts: Facts, others: set[str]) -> list[Remedy]:
    """Return what to do about the largest stage; nothing where another remedy is about it."""
    stages, finding = facts.stages, facts.finding
    about = {HANDOVER: {"packing", "bytes"}, DATASET: {"views", "together", "divide"}}
    if stages is None or stages.largest == SAMPLER or others & about.get(stages.largest, set()):
        return []
    taken = finding.waits.host_wait * finding.waits.period
    received = stages.receiving.m_as("ms") if stages.receiving is not None else 0.0
    # A batch that is ready waits for its way to the loop; what the probe timed of that has to be most of it.
    contents = finding.loader.contents
    bare = contents is not None and not (contents.floats or facts.small or _objects(facts))
    if (
        finding.ready
        and stages.certain
        and not bare
        and stages.largest in (DATASET, COLLATE)
        and 2 * received >= taken
    ):
        text = (
            f"A batch is ready when the loop asks, and takes {format_quantity(Q_(taken, 'ms'))} to be "
            "received: send fewer bytes or tensors, and let no other thread of this process compute, since "
            "it holds Python's lock."
        )
        return [Remedy("receiving", text)] if "prefetch" not in others else []
    if stages.largest == HANDOVER and (contents is None or facts.small or not contents.floats):
        return []
    name = {DATASET: "dataset", COLLATE: "collate", HANDOVER: "bytes"}[stages.largest]
    text = stages.remedy(finding.machine.prepare_cpu, contents)
    return [Remedy(name, f"{text[0].upper()}{text[1:]}")]


def _begun(facts: Facts, _: Effect) -> str:
    waits = facts.finding.waits
    taken = format_quantity(Q_(waits.host_wait * waits.period, "ms"))
    ending = ", and to end its workers more" if facts.workers else ""
    return f"To begin a pass takes {taken} on average{ending}. {RESTART}"


ITERATOR = Row("iterator", lambda facts: facts.finding.waits.restarts, _begun)
DIVIDE = Row("divide", lambda facts: facts.finding.loader.repeats, lambda facts, _: facts.finding.divided)
# Of these a job may gain that does not wait for its next batch.
IN_ANY_CASE = (
    Row("move", lambda facts: facts.loop_line, _move, _moved),
    Row(
        "persistent",
        _begins_anew,
        lambda facts, _: (
            f"To begin and end a later pass takes {_taken(facts)}: keep the workers with "
            "persistent_workers=True in one loader for all passes, or make each pass longer."
        ),
        lambda facts: Effect(facts.passes.gain if facts.passes is not None else None),
    ),
    Row(
        "passes",
        lambda facts: _between_is_long(facts) and not _begins_anew(facts),
        lambda facts, _: (
            f"To begin a later pass takes {_taken(facts)}, as where a sampler lists all items: make each "
            "pass longer."
        ),
    ),
    Row("pickling", lambda facts: pickled_share(facts.finding) >= SLIGHT, _pickling),
)
SETTINGS = (
    Row(
        "views",
        lambda facts: _spread(facts) >= SPREAD,
        lambda facts, _: (
            f"Each item is a view of {_spread(facts):.0f} times its bytes, which are read or computed for "
            "it: get what belongs together once for all of its items, or store each item in one piece."
        ),
        lambda facts: Effect(facts.quicker(1 / _spread(facts))),
    ),
    Row("together", _is_one_by_one, _together, lambda facts: Effect(facts.quicker(0.0))),
    Row(
        "packing",
        _objects,
        lambda facts, _: (
            f"Let collate_fn put the {_objects(facts)} objects of a batch into one tensor: each of them is "
            "handed over on its own."
        ),
        lambda facts: _receiving(facts, 1 / _objects(facts)),
    ),
    Row(
        "bytes",
        _sends_floats,
        lambda facts, _: f"Send fewer bytes: uint8 instead of {_type(facts)}, if the model can take it.",
        lambda facts: _receiving(facts, 1 / np.dtype(_type(facts).replace("bfloat", "float")).itemsize),
    ),
    Row(
        "prefetch",
        lambda facts: facts.workers,
        lambda facts, effect: f"prefetch_factor={effect.value} instead of {facts.prefetch}.",
        _deeper,
    ),
    Row(
        "prefetch",
        _is_untimed,
        lambda _, effect: (
            f"prefetch_factor={effect.value} instead of 1 hides single batches that are late, if there are "
            f"any."
        ),
        lambda facts: Effect(value=_ahead(facts)) if _ahead(facts) > 1 else None,
    ),
    Row(
        "sampler",
        _sampling,
        lambda facts, _: (
            f"The sampler takes {format_quantity(Q_(_sampling(facts), 'ms'))} for each batch in the training "
            f"loop, which no worker takes over: {DRAW}"
        ),
        lambda facts: Effect(facts.shorter(_sampling(facts))),
    ),
    Row(
        "workers",
        _is_for_handover,
        lambda *_: (
            "num_workers=0, or larger batches: to hand so small a batch over takes longer than to prepare it."
        ),
        lambda facts: Effect(
            facts.gain(lambda costs: replace(costs, workers=0)) if facts.stages is not None else None, 0
        ),
    ),
    Row(
        "processes",
        lambda facts: _are_threads(facts) and _workers(facts),
        lambda facts, _: (
            f"Processes in place of threads: this process computes on {facts.finding.machine.loop_cpu:.1f} "
            f"cores on average, and threads of Python share one lock. {UNTOLD}"
        ),
    ),
    Row(
        "workers",
        lambda facts: not (facts.finding.loader.repeats or _are_threads(facts) or _rests(facts)),
        lambda facts, effect: (
            f"{count_of(effect.value or 0, 'worker')} instead of {facts.workers}.{_room(facts)}"
        ),
        _workers,
    ),
    Row(
        "memory",
        lambda facts: facts.advice is not None and facts.advice.room and not _workers(facts),
        lambda facts, _: facts.advice.summary if facts.advice is not None else "",
    ),
)
