"""Advice for a job that was watched: what other numbers of workers, and other changes, would bring to it.

The times of the job come from what was found; `times` has the model of its loader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from starvelab.errors import InputError
from starvelab.host import usable_cores
from starvelab.measure.verdict import SLIGHT
from starvelab.tables import TableRepr, count_of
from starvelab.units import Quantity, format_quantity

from ..finding.job import JobFinding
from ..finding.stages import COPY, LARGE, MANY_OBJECTS
from .times import ERROR, PREFETCH, JobModel, JobTimes, doubt_of, model_of, start_up_of, throughputs_of

MAX_WORKERS = 64  # that are looked at; a choice
ENOUGH = 0.95  # of the best throughput; a choice
ALIKE = 0.99  # of the highest prediction: what comes so near is as good; a choice
# Batches take different times, so workers that would only just do on average are too few. How much
# more they should do is a choice; benchmarks.zoo holds what is advised against runs.
HEADROOM = 1.2
# Share of a worker's time, below which it waits so little that it needs a core of its own: a choice.
IDLE = 0.1
CROWDED_IDLE = 0.5  # the same beside other programs; a choice
FLOAT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}  # uint8 has one; by definition
PACKING = "One buffer for all tensors of a batch"
PERSISTENT = "persistent_workers=True"
# So much longer a batch may take at worst, before what is likely is only what is possible: a choice.
BOUND = 1.25
STEP_BINDS = 1.02  # times what the loop takes for a batch, up to which the step binds; a choice
FULL = 0.9  # share of the cores that is computed on, from which on the CPU binds; a choice


@dataclass(frozen=True)
class Option:
    """A number of workers and what it would bring."""

    workers: int
    throughput: Quantity  # of the training loop; batches a second where the batch size is not known
    low: Quantity  # the range that it lies in
    high: Quantity
    bottleneck: str  # what binds then: the workers, the CPU's cores or the training step
    condition: str = ""  # without which it is less: then the throughput is what it brings at most


@dataclass(frozen=True)
class LeverForecast:
    """A change and what it would bring to the loop with the workers that it has; None where none can tell."""

    name: str
    throughput: Quantity | None  # samples a second; batches a second where their size is not known
    low: Quantity | None  # the range that it lies in
    high: Quantity | None
    assumed: str  # what has to hold for it; without a prediction, why there is none
    value: int | None = None  # of the setting that is changed, where it has one

    @property
    def condition(self) -> str:
        """What has to hold for it, as a sentence."""
        return f"That holds {self.assumed.removeprefix('at most: ')}."

    @property
    def summary(self) -> str:
        """In one sentence."""
        if self.throughput is None or self.low is None or self.high is None:
            return f"{self.name}: cannot be predicted, because {self.assumed}."
        likely, low, high = map(format_quantity, (self.throughput, self.low, self.high))
        return f"{self.name}: {likely} ({low} to {high}), {self.assumed}."


@dataclass(frozen=True, repr=False)
class WorkerAdvice(TableRepr):
    """The result of `advise`.

    Attributes
    ----------
    now : Option
        The job as it is, as measured.
    best, enough : Option
        The fewest workers that bring the most, and the fewest that bring 95 % of it.
    options : tuple of Option
    levers : tuple of LeverForecast
        Other changes, each of them alone and with the workers that the job has now.
    finding, model : JobFinding, JobModel
        What was found, and the times by which all of that is predicted.
    room : str
        Why more workers than the best find no room in memory, where they would bring more; else empty.
    """

    now: Option
    best: Option
    enough: Option
    options: tuple[Option, ...]
    levers: tuple[LeverForecast, ...]
    finding: JobFinding
    model: JobModel
    room: str = ""

    @property
    def gain(self) -> float:
        """Throughput of the best over that of now, less one."""
        return float((self.best.throughput / self.now.throughput).m_as("")) - 1

    @property
    def summary(self) -> str:
        """Say what to change, and what it will bring."""
        if self.gain < SLIGHT:
            fewer = self._enough if self.enough.workers < self.now.workers else ""
            why = self.room or f"more would bring less than 5 %{fewer}."
            return f"Keep the {count_of(self.now.workers, 'worker')}: {why}"
        best = self.best
        likely, low, high, now = map(
            format_quantity, (best.throughput, best.low, best.high, self.now.throughput)
        )
        promised = f"at most {high}, at least {low}," if best.condition else f"{likely} ({low} to {high})"
        note = f"{self.note[:1].lower()}{self.note[1:]}"
        return f"{self.change.rstrip('.')}: {promised} instead of {now}, {note}"

    @property
    def change(self) -> str:
        """Say what to change, without what it brings."""
        return f"{count_of(self.best.workers, 'worker')} instead of {self.now.workers}."

    @property
    def note(self) -> str:
        """Say what binds then, and what has to hold for it."""
        best = self.best
        room = f"{self.room[:1].upper()}{self.room[1:]}"
        less = f"{self._enough} for 95 % of it" if self.enough.workers < best.workers else ""
        binds = f"Then {best.bottleneck} {'bind' if best.bottleneck.endswith('s') else 'binds'}{less}."
        return " ".join(filter(None, (binds, best.condition, room)))

    @property
    def _enough(self) -> str:
        return f"; {self.enough.workers} {'is' if self.enough.workers == 1 else 'are'} enough"

    @property
    def worthwhile(self) -> tuple[LeverForecast, ...]:
        """The other changes that may bring 5 % or more, the one that may bring most first."""
        gains = {
            one: float((one.throughput / self.now.throughput).m_as("")) - 1
            for one in self.levers
            if one.throughput is not None
        }
        return tuple(sorted((one for one in gains if gains[one] >= SLIGHT), key=lambda one: -gains[one]))

    headers = ("workers", "throughput", "at least", "at most", "what binds")

    @property
    def rows(self) -> list[list[object]]:
        """One row for each number of workers."""
        return [[one.workers, one.throughput, one.low, one.high, one.bottleneck] for one in self.options]


def advise(finding: JobFinding, *, cores: float | None = None) -> WorkerAdvice:
    """Return how many workers a job should have, and what they will bring.

    Parameters
    ----------
    finding : JobFinding
        The `result` of `watch` or of a callback.
    cores : float, optional
        Cores for the workers; by default those that this process may use.

    Raises
    ------
    InputError
        If it is not known how many workers the job has, or too little was watched.

    Notes
    -----
    Where the loop waits, its workers are busy all the time, so a batch takes a worker that many times the
    period. Where batches are ready, a probe says what they take. Work is stretched while other work keeps
    all cores busy, that of other programs among it. What workers wait for may serve them all at once, or one
    at a time: then `low` is what they bring at worst, and `condition` says what decides. The loop itself
    receives each batch, in 0.3 to 4 ms where no probe timed it. The number that is advised has headroom: as
    many as if batches took 1.2 times as long.
    """
    workers = finding.loader.workers
    if workers is None:
        raise InputError(
            "advise needs the number of workers, and this finding has none. Pass it: watch(loader, "
            "workers=4)."
        )
    if finding.waits.counted < finding.waits.min_batches or finding.waits.step_time is None:
        raise InputError(
            f"advise needs {finding.waits.min_batches} watched batches, got {finding.waits.counted}. "
            "Watch a longer run."
        )
    # What the sampler takes the loop, no worker takes over: it is like a longer step.
    step = finding.waits.step_time.m_as("ms") + (
        finding.loader.stages.sampling if finding.loader.stages is not None else 0.0
    )
    most = float(cores if cores is not None else usable_cores())
    # Two hardware threads of a core do little more than one, but workers that there are have what they need.
    sure = most if cores is not None else min(max(usable_cores(physical=True), workers), most)
    model = model_of(finding, workers, step, float(sure))
    model = replace(model, fast=replace(model.fast, cores=most))
    period, ahead = finding.waits.period, finding.loader.prefetch or PREFETCH
    limit = max(finding.room.workers_for(ahead), workers)
    options = tuple(
        _option(finding, model, number, *_bounded(finding, model, number, period))
        for number in _candidates(model)
        if number <= limit
    )
    now = _option(finding, model, workers, period, period * (1 + ERROR / 2), period * (1 - ERROR / 2))
    waits_for_data = (
        finding.gpu.stall if finding.gpu.stall is not None else finding.waits.host_wait
    ) >= SLIGHT
    # Where a batch is ready, the wait is for its way to the loop, not for workers, unless the next is late.
    starved = waits_for_data and (not finding.ready or model.lateness(workers) >= 1 + SLIGHT)
    wanted = _fewest(model)
    best = options[min(wanted, len(options) - 1)] if starved else now
    # What as many workers would bring with free cores is no change, and fewer are not faster.
    if best.throughput < now.throughput or (starved and best.workers <= workers):
        best = now
    # Workers that do not work all the time show what they could deliver only to a probe.
    known = starved or finding.loader.stages is not None
    # Fewer workers for a job that waits would be read as a contradiction.
    known = known and (best is not now or not waits_for_data)
    # As many as the job has are not enough where it waits for them, whatever the model says of them.
    others = [one for one in options if known and (one.workers > workers or not starved)]
    enough = next((one for one in others if one.throughput >= ENOUGH * best.throughput), best)
    levers = tuple(lever_forecasts(finding, model, starved=starved))
    more, most = (model.periods(each)[0] for each in (wanted, best.workers))
    crowded = starved and wanted > limit and more * (1 + SLIGHT) <= most
    room = finding.room.reason(ahead) if crowded else ""
    return WorkerAdvice(now, best, enough, options, levers, finding, model, room)


def _fewest(model: JobModel) -> int:
    """Return the fewest workers that bring the most, with headroom."""
    likely = model.likely
    times = likely.scaled(HEADROOM, likely.receive)
    # Workers that hardly ever wait need a core each: more of them find none.
    idle = CROWDED_IDLE if likely.others else IDLE
    computes = likely.wait < idle * (likely.wait + likely.compute)
    most = max(int(likely.cores / likely.threads), 1) if computes else MAX_WORKERS
    periods = [
        times.period(workers) * model.lateness(workers) for workers in _candidates(model) if workers <= most
    ]
    return next(workers for workers, period in enumerate(periods) if ALIKE * period <= min(periods))


def _bounded(finding: JobFinding, model: JobModel, workers: int, now: float) -> tuple[float, float, float]:
    """Return the milliseconds from batch to batch: likely, at most and at least, with so many workers."""
    likely, slow, fast = model.periods(workers)
    if workers <= model.workers:
        return likely, slow, fast
    # As many times the workers bring at most as many times the throughput.
    least = now * model.workers / workers if model.workers else now / (workers + 1)
    slow = max(slow, least, now * (1 + ERROR / 2) if doubt_of(finding, model) else 0.0)
    return max(likely, least), slow, max(fast, least * (1 - ERROR))


def _condition(finding: JobFinding, model: JobModel, workers: int, likely: float, slow: float) -> str:
    """Return what has to hold for so many workers to bring what is likely; empty where it was measured."""
    if workers <= model.workers or slow < BOUND * likely:
        return ""
    if doubt := doubt_of(finding, model):
        return doubt
    if replace(model.slow, serial=0.0).period(workers) * model.lateness(workers) >= (likely + slow) / 2:
        return ""
    if finding.busy and model.likely.compute > model.likely.wait:
        return "It is less where the other programs keep what they have of the cores."
    decides = min(max(2 * model.workers, 2), workers)
    return (
        f"That depends on whether what they wait for, such as storage, serves {workers} at once: a short run "
        f"with {count_of(decides, 'worker')} decides, or starvelab-doctor --try."
    )


def _candidates(model: JobModel) -> range:
    """Return the numbers of workers that are worth a look: up to where the step binds in any case."""
    slow = model.slow
    needed = int(HEADROOM * (slow.wait + 2 * slow.compute + slow.pack) / slow.step) + 2
    return range(min(max(needed, model.workers, 2), MAX_WORKERS) + 1)


def _option(
    finding: JobFinding, model: JobModel, workers: int, period: float, at_most: float, at_least: float
) -> Option:
    """Return a number of workers with which these milliseconds pass from batch to batch."""
    times = model.likely
    computed = times.compute + times.pack + times.loop_compute
    if period <= STEP_BINDS * (times.step + (times.receive if workers else 0.0)):
        bottleneck = "the training step"
    else:
        bottleneck = "the CPU" if workers and computed > FULL * times.cores * period else "the workers"
    condition = _condition(finding, model, workers, period, at_most)
    return Option(workers, *throughputs_of(finding, period, at_most, at_least), bottleneck, condition)


def lever_forecasts(finding: JobFinding, model: JobModel, *, starved: bool) -> Iterator[LeverForecast]:
    """Give what each change would bring that applies to this job; `starved` if its workers are too slow."""
    # What follows from times that were measured is predicted by the model of the job. Mostly that is a limit:
    # what it brings if what it relieves takes no time. Of the others it is said why not.
    now, likely, stages = (
        finding.waits.period,
        model.likely,
        finding.loader.stages,
    )
    # What the model is off now it will be off then: a change of nothing brings nothing.
    off, rest = now / likely.period(model.workers), 1 - (model.dataset_share or 0.0)

    def of(name: str, assumed: str, *periods: float, value: int | None = None) -> LeverForecast:
        return LeverForecast(name, *throughputs_of(finding, *periods), assumed, value)

    def limit(name: str, assumed: str, period: float, error: float = ERROR) -> LeverForecast:
        return of(name, assumed, period, period * (1 + error), period * (1 - error))

    def lever(
        name: str,
        assumed: str,
        change: Callable[[JobTimes], JobTimes],
        unknown: str = "",
        at_most: Callable[[JobTimes], JobTimes] | None = None,
    ) -> LeverForecast:
        if unknown:
            return LeverForecast(name, None, None, None, unknown)
        changed = model.changed(change)
        if at_most is not None:  # and nothing at worst; the step may have waited for what the workers compute
            fast = at_most(model.fast)
            changed = replace(changed, fast=replace(fast, step=min(fast.step, model.alone)), slow=model.slow)
        return of(name, assumed, *(off * period for period in changed.periods(model.workers)))

    yield lever(
        "a cache in memory",
        "if it holds all samples as the dataset gives them",
        lambda times: replace(times, wait=times.wait * rest, compute=times.compute * rest),
        "" if model.dataset_share is not None else "the dataset was not timed: watch with probe=True",
    )
    yield lever(
        "faster or nearer storage",
        "at most: if workers wait for nothing",
        lambda times: replace(times, wait=0.0),
        "it is not known how much of the workers' time is waiting"
        if finding.machine.prepare_cpu is None
        else "",
    )
    copy = stages.costs[COPY].m_as("ms") if stages is not None and COPY in stages.costs else None
    yield lever(
        "pinned memory and copies beside the computation",
        "at most: if all of the copy is hidden, and none of it is now",
        lambda times: replace(times, step=max(times.step - (copy or 0.0), 1e-3)),
        'the copy to the device was not timed: watch with probe=True and device="cuda"'
        if copy is None
        else "",
    )
    if not model.workers:
        return
    timed, contents = stages is not None and stages.receiving is not None, finding.loader.contents
    untimed = "" if timed else "the hand-over was not timed: watch with probe=True"
    size = contents.size.m_as("B") if contents is not None and contents.size is not None else LARGE
    if size >= LARGE and (contents is None or contents.floats):
        kind = contents.dtype if contents is not None else "float32"
        share = 1 / FLOAT_BYTES.get(kind or "", FLOAT_BYTES["float32"])
        yield lever(
            f"uint8 instead of {kind}",
            "if the dataset gives one as fast as the other, and the model can take it",
            lambda times: times.lighter(share, rest, likely.receive),
            untimed,
            lambda times: times.lighter(share * (1 - 2 * ERROR), 1.0, likely.receive),
        )
    if contents is not None and contents.one_by_one >= MANY_OBJECTS:
        yield lever(
            PACKING,
            f"at most: if {contents.one_by_one} objects are received as fast as one of their size",
            lambda times: times.lighter(1 / contents.one_by_one, rest, likely.receive),
            untimed,
            lambda times: times.lighter(1 / contents.one_by_one, 1.0, likely.receive),
        )
    if finding.loader.persists:
        yield LeverForecast(PERSISTENT, None, None, None, "the workers persist already")
    elif (cost := start_up_of(finding, model)) is not None:
        rate = format_quantity(throughputs_of(finding, *(cost.now,) * 3)[0])
        yield limit(PERSISTENT, f"over whole passes, instead of {rate}", cost.after)
    else:
        yield lever(
            PERSISTENT, "", lambda times: times, "only one pass was watched, and it acts between passes"
        )
    name, loop = "a deeper queue", likely.step + likely.receive
    if model.late is not None:
        ahead = finding.room.ahead_for(model.late.best_prefetch(model.workers, loop), model.late.prefetch)
        late, less_late = model.lateness(model.workers), model.lateness(model.workers, ahead)
        # No more than it brings to the job as it was measured, nor to the model of it.
        period = min(max(now * less_late / late, likely.period(model.workers) * less_late), now)
        if ahead > model.late.prefetch:
            most, least = min(period * (1 + 2 * ERROR), now), period / (1 + ERROR)
            yield of(name, "if batches are late and steps long as now", period, most, least, value=ahead)
    elif not starved:
        yield limit(name, "at most: if no batch is late", loop)
