"""The remedies for a job that was watched, the first of them the one to try first.

Each looks at what it cures: at the type of the elements, how many objects a batch has, how the dataset gives
its items, where the loop's own thread computes. Of several, the one that brings most goes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from starvelab.measure.verdict import NOT_BOUND, SLIGHT, UNKNOWN
from starvelab.tables import count_of, percent
from starvelab.units import Q_, format_quantity

from ..finding.job import QUEUED, RESTART, JobFinding
from ..finding.loop_work import LoopWork
from ..finding.stages import COLLATE, COPY, DATASET, DRAW, HANDOVER, LARGE, MANY_OBJECTS, SAMPLER
from ..shares import MIN_BATCHES
from .advice import PACKING, WorkerAdvice, advise
from .causes import collector, line_remedy, ruling_causes, stuck_workers
from .lateness import MIN_TIMED
from .remedy import UNTOLD, Remedy
from .times import ERROR, NAMED, PREFETCH, QUICKER, JobTimes, pickled_share, start_up_of

LARGE_PART = 0.3  # of what a batch costs: below that a stage needs no remedy of its own; a choice
# Items of a batch, and milliseconds for each, that are better fetched together: a choice.
MANY_ITEMS, TINY = 64, 0.05
AHEAD = 4  # batches of each worker, where nothing tells how many hide those that are late; a choice
# Bytes of what an item is a view of, over its own, from which on it is read for nothing: a choice.
SPREAD = 4.0
SAMPLED = 0.2  # what the share of a line of the loop may be off; a choice
LONG = 2e3  # milliseconds that are written as seconds; a choice
# Times what is likely a gain may be at best, before it is not said, since steps may lack a core: a choice.
VAGUE = 4.0
BUSY_THREAD = 0.8  # of a core: threads that share Python's lock have no more; a choice


def remedies_of(finding: JobFinding, *, cores: float | None = None) -> tuple[Remedy, ...]:
    """Return what to change, what is to be tried first at the beginning; none where too little is known."""
    if stuck := stuck_workers(finding):
        return (stuck,)
    if finding.verdict == UNKNOWN or finding.waits.counted < MIN_BATCHES:
        return ()
    if finding.waits.restarts and finding.verdict != NOT_BOUND:
        taken = format_quantity(Q_(finding.waits.host_wait * finding.waits.period, "ms"))
        workers = ", and to end its workers more" if finding.loader.workers else ""
        return (Remedy("iterator", f"To begin a pass takes {taken} on average{workers}. {RESTART}"),)
    advice = (
        advise(finding, cores=cores)
        if finding.loader.workers is not None and not finding.waits.elsewhere
        else None
    )
    work = _loop_work(advice) if advice is not None else None
    start_up = _of_start_up(advice) if advice is not None else []
    if finding.verdict == NOT_BOUND:
        return _within(finding, map(_certain, filter(None, (work, *start_up))))
    found = [*start_up, *_of_items(finding, advice)]
    if advice is not None:
        found += [*_of_levers(advice), work, _sampler(advice), _no_workers(advice)]
        found += [] if finding.loader.repeats else [_workers(advice)]
    # What may make the job slower goes behind what does not, and what brings most goes first.
    known = sorted(filter(None, found), key=lambda one: (one.risky, -(one.gain or (0.0, 0.0))[1]))
    if advice is not None:
        more = [one for one in known if one.name == "workers" and one.value]
        known = [_deciding(one, advice) if one in more else _certain(one) for one in known]
    divide = [Remedy("divide", finding.divided)] if finding.loader.repeats else []
    known = [*divide, *known]
    found = [*known, _of_stage(finding, {one.name for one in known})]
    causes, ruled_out = ruling_causes(finding, advice)
    line = line_remedy(finding) if not causes else None
    if line is not None:  # it says more than the stage that it is in
        ruled_out |= {line.stage}
    rest = [one for one in found if one is not None and one.name not in ruled_out]
    waste = [line.remedy] if line is not None and line.waste else []
    others = [line.remedy] if line is not None and not line.waste else []
    # Waste may be what makes the collector run so often.
    pauses = filter(None, [collector(finding)])
    return _within(finding, (*causes, *waste, *pauses, *rest, *others))


def _within(finding: JobFinding, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return what the ladder leaves of the remedies, with the gains of the whole job."""
    left = (remedy.below(finding.waits.ceiling) for remedy in remedies)
    return tuple(_of_whole(remedy, finding) for remedy in left if remedy is not None)


def _of_whole(remedy: Remedy, finding: JobFinding) -> Remedy:
    """Return a remedy with its gain of the whole job, of which long steps and other loops are a part."""
    left_out = 1 - finding.waits.loop_share * (1 - finding.interrupted_share)
    if remedy.gain is None or left_out < SLIGHT:
        return remedy
    low, likely, high = (1 / ((1 - left_out) / each + left_out) for each in remedy.gain)
    if not _has_core(finding):  # they may be long for want of one, and end with the waits
        high = max(high, remedy.gain[2])
    return replace(remedy, gain=(low, likely, high), whole=True)


def _of_start_up(advice: WorkerAdvice) -> list[Remedy | None]:
    """Return what shortens the start of workers and of passes, where that costs much."""
    finding, found = advice.finding, list[Remedy | None]()
    cost, share = start_up_of(finding, advice.model), pickled_share(finding)
    items = (
        finding.loader.stages.items
        if finding.loader.stages is not None and finding.loader.persists is False
        else None
    )
    if cost is not None and finding.loader.workers and items is not None and items.kept >= items.number:
        _, likely, best = (
            cost.now * finding.waits.batch_rate.m_as("1/ms") * one for one in _quicker(advice, 0.0)
        )
        text = (
            "Keep the workers with persistent_workers=True in one loader for all passes: each of them keeps "
            "something of its items in the dataset, and loses it with the end of the pass."
        )
        note = "That holds if it is a cache."
        found.append(Remedy("persistent", text, (1.0, likely, best), at_most=True, note=note))
    elif cost is not None and cost.matters:
        each = Q_(cost.each, "ms") if cost.each < LONG else Q_(cost.each / 1e3, "s")
        part, longer = percent(cost.each / (cost.each + cost.others)), "make each pass longer"
        taken = f"{format_quantity(each)} on average, {part} of its time"
        if finding.loader.workers and not finding.loader.persists:
            text = (
                f"To begin and end a later pass takes {taken}: keep the workers with "
                f"persistent_workers=True in one loader for all passes, or {longer}."
            )
            most = cost.now * cost.batches / max(cost.others, 1e-3) * (1 + ERROR)
            found.append(Remedy("persistent", text, (1.0, cost.now / cost.after, most), at_most=True))
        else:
            text = f"To begin a later pass takes {taken}, as where a sampler lists all items: {longer}."
            found.append(Remedy("passes", text))
    if finding.loader.pickled is not None and share >= NAMED:
        text = (
            f"For each worker that starts, up to {format_quantity(finding.loader.pickled[1], 2)} are "
            f"pickled, which takes {percent(share)} of the time in all: let the workers open a file with "
            "that list, or hold it in one tensor, which they share."
        )
        found.append(Remedy("pickling", text))  # what workers take to read that, they do not tell
    return found


def _workers(advice: WorkerAdvice) -> Remedy | None:
    if advice.gain < SLIGHT:
        return Remedy("memory", advice.summary) if advice.room else None
    best, finding = advice.best, advice.finding
    if (
        finding.loader.processes is False
        and finding.loader.workers
        and (finding.machine.loop_cpu or 0.0) >= BUSY_THREAD
    ):
        text = (
            f"Processes in place of threads: this process computes on {finding.machine.loop_cpu:.1f} cores "
            "on average, and threads of Python share one lock."
        )
        return Remedy("processes", text, note=UNTOLD)
    return Remedy(
        "workers", advice.change, _gain(advice, best), bool(best.condition), best.workers, advice.note
    )


def _deciding(whole: Remedy, advice: WorkerAdvice) -> Remedy:
    """Return the step that decides, where as many workers as are advised may bring nothing at all."""
    best, now = advice.best, advice.now
    number = 2 * now.workers
    if not best.condition or _gain(advice, best)[0] >= 1 + SLIGHT or not 0 < number < best.workers:
        return whole
    step = advice.options[number]
    more = f"Where they bring that, {best.workers} bring {_gain(advice, best)[1]:.2g} times at most."
    change, note = f"{number} workers instead of {now.workers}.", f"{more} {step.condition}".rstrip()
    return Remedy("workers", change, _gain(advice, step), True, number, note)


def _certain(remedy: Remedy) -> Remedy:
    """Return the remedy without its gain, where that may be many times what is likely."""
    vague = remedy.gain is not None and remedy.gain[2] > VAGUE * remedy.gain[1]
    return remedy.untold() if vague else remedy


def _gain(advice: WorkerAdvice, option: object) -> tuple[float, float, float]:
    now = advice.now.throughput
    low, likely, high = (
        float((getattr(option, name) / now).m_as("")) for name in ("low", "throughput", "high")
    )
    return low, likely, high


def _of_levers(advice: WorkerAdvice) -> list[Remedy | None]:
    """Return those of which the model of the job says what they bring."""
    finding, stages, found = advice.finding, advice.finding.loader.stages, list[Remedy | None]()
    leading = stages and {stages.largest, stages.largest if stages.certain else stages.runner_up}
    for one in advice.worthwhile:
        gain = _gain(advice, one)
        if one.name == "a deeper queue":
            prefetch = finding.loader.prefetch or PREFETCH
            ahead = one.value or finding.room.ahead_for(max(AHEAD, 2 * prefetch), prefetch)
            if ahead == prefetch:
                continue
            text = f"prefetch_factor={ahead} instead of {finding.loader.prefetch or 'fewer'}."
            found.append(Remedy("prefetch", text, gain, one.value is None, ahead, one.condition))
        elif one.name == PACKING:
            text = "Let packed(loader), of starvelab_doctor, put a batch into one buffer."
            found.append(Remedy("packing", text, gain, True, note=one.condition))
        elif one.name.startswith("uint8") and (not leading or leading & {HANDOVER, COLLATE}):
            text = f"Send fewer bytes: {one.name}."
            found.append(Remedy("bytes", text, gain, True, note=one.condition))
    untimed = stages is None or len(stages.prepared) < MIN_TIMED
    ahead = finding.room.ahead_for(AHEAD, 1)
    if finding.loader.prefetch == 1 < ahead and finding.loader.workers and untimed:
        text = f"prefetch_factor={ahead} instead of 1 hides single batches that are late, if there are any."
        found.append(Remedy("prefetch", text, None, value=ahead))
    return found


def _of_items(finding: JobFinding, advice: WorkerAdvice | None) -> list[Remedy | None]:
    """Return what can be told by the items that the dataset gives."""
    stages = finding.loader.stages
    if stages is None or stages.items is None or stages.shares.get(DATASET, 0.0) < LARGE_PART:
        return []
    items, found = stages.items, list[Remedy | None]()
    each = stages.costs[DATASET].m_as("ms") * max(finding.loader.workers or 1, 1) / items.number
    if items.spread >= SPREAD:
        found.append(
            Remedy(
                "views",
                f"Each item is a view of {items.spread:.0f} times its bytes, which are read or computed for "
                "it: get what belongs together once for all of its items, or store each item in one piece.",
                _quicker(advice, 1 / items.spread) if advice is not None else None,
                at_most=True,
            )
        )
    elif not items.together and items.number >= MANY_ITEMS and each < TINY:
        found.append(
            Remedy(
                "together",
                f"{items.number} items of {1e3 * each:.0f} microseconds are fetched one by one for each "
                "batch: give the dataset a method __getitems__, which returns all of them at once.",
                _quicker(advice, 0.0) if advice is not None else None,
                at_most=True,
            )
        )
    return found


def _quicker(advice: WorkerAdvice, rest: float) -> tuple[float, float, float]:
    """Return the gain if the dataset takes this share of its time; at best, only the step takes any."""
    model, period = advice.model, advice.finding.waits.period
    cut = 1 - (model.dataset_share or 0.0) * (1 - rest)
    times = replace(model.likely, wait=model.likely.wait * cut, compute=model.likely.compute * cut)
    step = min(times.step * (1 - SAMPLED), model.fast.step, model.alone)
    best = max(period / max(step, 1e-3), 1.0)
    return 1.0, min(max(period / times.period(model.workers), 1.0), best), best


def _no_workers(advice: WorkerAdvice) -> Remedy | None:
    """Return what no workers bring, where it is the hand-over of small batches that takes long."""
    finding, stages, contents = advice.finding, advice.finding.loader.stages, advice.finding.loader.contents
    small = contents is not None and contents.size is not None and contents.size.m_as("B") < LARGE
    if not (finding.loader.workers and small and stages and stages.certain and stages.largest == HANDOVER):
        return None
    likely, slow, fast = (finding.waits.period / each for each in advice.model.periods(0))
    if contents and contents.one_by_one >= MANY_OBJECTS:
        return None
    # Without workers beside it a step is shorter, too, and by what nobody knows where it lacks a core.
    best = fast / QUICKER if _has_core(finding) else 2 * VAGUE * fast
    text = "num_workers=0, or larger batches: to hand so small a batch over takes longer than to prepare it."
    remedy = Remedy("workers", text, (slow, likely, best), value=0)
    if likely >= 1 + SLIGHT:
        return remedy
    return remedy.untold() if best >= 1 + SLIGHT else None


def _sampler(advice: WorkerAdvice) -> Remedy | None:
    """Return what a sampler without cost brings at most."""
    finding = advice.finding
    if finding.loader.stages is None or SAMPLER not in finding.loader.stages.shares:
        return None
    period, taken = finding.waits.period, finding.loader.stages.sampling
    likely, best = (period / max(period - part * taken, ERROR * period) for part in (1, 1 + 2 * ERROR))
    if not _has_core(finding):  # so does all else, and how much of it was waiting is not known
        best = max(best, 2 * VAGUE * likely)
    text = (
        f"The sampler takes {format_quantity(Q_(taken, 'ms'))} for each batch in the training loop, which no "
        f"worker takes over: {DRAW}"
    )
    return Remedy("sampler", text, (1.0, likely, best), True) if likely >= 1 + SLIGHT else None


def _loop_work(advice: WorkerAdvice) -> Remedy | None:
    """Return what moving the work of the loop's own thread into workers brings."""
    finding, now = advice.finding, advice.model
    line = next((one for one in finding.waits.loop_work if one.share >= SLIGHT), None)
    if line is None:
        return None
    period = finding.waits.period
    moved = min(line.share * period, now.likely.step - 1e-3)
    if now.workers and (finding.loader.stages is None or not finding.loader.stages.prepared):
        return Remedy(
            "move", f"{_at(line)}.", note="What that brings, a probe tells."
        )  # how busy workers are

    def change(times: JobTimes, part: float = 0.0) -> JobTimes:
        saved = min(moved * (1 + part), times.step - 1e-3)
        rest = max(times.loop_compute - saved, 0.0)
        compute = times.compute + moved * (1 - part)
        return replace(times, step=times.step - saved, compute=compute, loop_compute=rest)

    # How much the loop saves was only sampled, and it need not be what the workers take for it.
    model = replace(
        now, likely=change(now.likely), slow=change(now.slow, -SAMPLED), fast=change(now.fast, SAMPLED)
    )
    room = finding.room.workers_for(finding.loader.prefetch or PREFETCH)
    if not (most := int(max(min(max(now.likely.cores, 1.0), room), now.workers))):
        return None
    workers = min(range(max(now.workers, 1), most + 1), key=lambda n: (round(model.periods(n)[0], 2), n))
    likely, slow, fast = (period / each for each in model.periods(workers))
    if finding.busy:  # the workers may get no core for it
        slow = min(slow, 1 - SAMPLED)
    # The loop saves no more than it computes there, but where it lacks a core, or has no workers yet.
    saved, part = moved if now.workers else period, 1 + SAMPLED if _has_core(finding) else 1 / ERROR
    cap, best = (period / max(period - each * saved, ERROR * period) for each in (1, part))
    slow, likely, fast = min(slow, likely, cap), min(likely, cap), min(max(fast, likely), best)
    if likely < 1 + SLIGHT:
        return None
    text = f"{_at(line)}, with {count_of(workers, 'worker')}."
    return Remedy("move", text, (slow, likely, fast), not line.certain, workers)


def _has_core(finding: JobFinding) -> bool:
    return (finding.machine.core_waits or 0.0) < QUEUED


def _at(line: LoopWork) -> str:
    if_input = "" if line.certain else "if that prepares the batch, "
    return (
        f"The loop's own thread computes at {line.place} in {percent(line.share)} of the time: "
        f"{if_input}move it into the workers, that is into the dataset or collate_fn"
    )


def _of_stage(finding: JobFinding, others: set[str]) -> Remedy | None:
    """Return what to do about the largest stage; None where another remedy is about it."""
    stages, contents = finding.loader.stages, finding.loader.contents
    if stages is None or stages.timed < MIN_BATCHES:
        return None
    known = {HANDOVER: {"packing", "bytes"}, DATASET: {"views", "together", "divide"}}
    if stages.largest == SAMPLER or others & known.get(stages.largest, set()):
        return None
    if finding.ready and stages.certain and stages.largest in (DATASET, COLLATE):
        taken = format_quantity(Q_(finding.waits.host_wait * finding.waits.period, "ms"))
        text = (
            f"A batch is ready when the loop asks, and takes {taken} to be received: send fewer bytes or "
            "tensors, and let no other thread of this process compute, since it holds Python's lock."
        )
        return Remedy("receiving", text) if "prefetch" not in others else None
    size = contents.size.m_as("B") if contents is not None and contents.size is not None else 0.0
    if stages.largest == HANDOVER and (contents is None or size < LARGE or not contents.floats):
        return None
    name = {DATASET: "dataset", COLLATE: "collate", HANDOVER: "bytes", COPY: "copy"}[stages.largest]
    text = stages.remedy(finding.machine.prepare_cpu, contents)
    return Remedy(name, f"{text[0].upper()}{text[1:]}")
