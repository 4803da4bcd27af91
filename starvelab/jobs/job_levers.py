"""What other changes than the number of workers would bring to a watched job, each of them alone.

A change whose effect follows from times that were measured is predicted by the model of the job. Mostly that
is a limit: what it brings if what it relieves takes no time at all. Of the others it is said why not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..units import Quantity, format_quantity
from .finding import JobFinding
from .job_times import ERROR, JobModel, JobTimes, throughputs_of
from .stages import COPY

UINT8 = 0.25  # bytes of uint8 over those of float32
FASTER = 2.0  # how many times as fast a step is looked at


@dataclass(frozen=True)
class LeverForecast:
    """A change and what it would bring.

    Attributes
    ----------
    name : str
    throughput : quantity [sample/time] or [1/time], or None
        Of the training loop, with the workers that it has; None where it cannot be predicted.
    low, high : quantity or None
        The range that it lies in.
    assumed : str
        What has to hold for it; without a prediction, why there is none.
    """

    name: str
    throughput: Quantity | None
    low: Quantity | None
    high: Quantity | None
    assumed: str

    @property
    def summary(self) -> str:
        """In one sentence."""
        if self.throughput is None or self.low is None or self.high is None:
            return f"{self.name}: cannot be predicted, because {self.assumed}."
        likely, low, high = map(format_quantity, (self.throughput, self.low, self.high))
        return f"{self.name}: {likely} ({low} to {high}), {self.assumed}."


def lever_forecasts(finding: JobFinding, model: JobModel, *, starved: bool) -> tuple[LeverForecast, ...]:
    """What each change would bring that applies to this job.

    Parameters
    ----------
    finding : JobFinding
    model : JobModel
        Its times.
    starved : bool
        Whether it has too few workers, or too slow ones.
    """
    found = [
        _cache(finding, model),
        _storage(finding, model),
        _pinned(finding, model),
        _changed(
            finding,
            model,
            f"a training step {FASTER:g} times as fast",
            "if nothing else of the step changes",
            lambda times: replace(times, step=times.step / FASTER),
        ),
    ]
    if model.workers:
        found += [
            _uint8(finding, model),
            _persistent(finding, model),
            _queue(finding, model, starved=starved),
        ]
    return tuple(found)


def _cache(finding: JobFinding, model: JobModel) -> LeverForecast:
    name, share = "a cache in memory", model.dataset_share
    if share is None:
        return _unknown(name, "the dataset was not timed: watch with probe=True")
    return _changed(
        finding,
        model,
        name,
        "if it holds all samples as the dataset gives them",
        lambda times: replace(times, wait=times.wait * (1 - share), compute=times.compute * (1 - share)),
    )


def _storage(finding: JobFinding, model: JobModel) -> LeverForecast:
    name = "faster or nearer storage"
    if finding.prepare_cpu is None:
        return _unknown(name, "it is not known how much of the workers' time is waiting")
    return _changed(
        finding, model, name, "at most: if workers wait for nothing", lambda times: replace(times, wait=0.0)
    )


def _pinned(finding: JobFinding, model: JobModel) -> LeverForecast:
    name = "pinned memory and copies beside the computation"
    stages = finding.stages
    if stages is None or COPY not in stages.costs:
        return _unknown(name, 'the copy to the device was not timed: watch with probe=True and device="cuda"')
    copy = stages.costs[COPY].m_as("ms")
    return _changed(
        finding,
        model,
        name,
        "at most: if all of the copy is hidden, and none of it is now",
        lambda times: replace(times, step=max(times.step - copy, 1e-3)),
    )


def _uint8(finding: JobFinding, model: JobModel) -> LeverForecast:
    name = "uint8 instead of float32"
    if finding.stages is None or finding.stages.receiving is None:
        return _unknown(name, "the hand-over was not timed: watch with probe=True")
    return _changed(
        finding,
        model,
        name,
        "at most: if receiving a batch follows its bytes",
        lambda times: replace(times, receive=times.receive * UINT8),
    )


def _persistent(finding: JobFinding, model: JobModel) -> LeverForecast:
    name, later = "persistent_workers=True", [wait.m_as("ms") for wait in finding.first_waits[1:]]
    if not later:
        return _unknown(name, "only one pass was watched, and it acts between passes")
    count = finding.batches / len(finding.first_waits)
    period = float(1e3 / finding.batch_rate.m_as("1/s"))
    # The first batch of a pass is prepared while the loop waits, also by workers that run already.
    ready = model.likely.wait + model.likely.compute + model.likely.receive
    taken = float(sum(later) / len(later))

    def passes(first: float) -> float:
        return first / count + period * (count - 1) / count

    now = format_quantity(throughputs_of(finding, *[passes(taken)] * 3)[0])
    return _made(finding, name, f"over whole passes, instead of {now}", passes(min(taken, ready)), ERROR)


def _queue(finding: JobFinding, model: JobModel, *, starved: bool) -> LeverForecast:
    name = "a deeper queue"
    if starved:
        period = 1e3 / finding.batch_rate.m_as("1/s")
        return _made(
            finding, name, "no more than now: on average the workers are too slow", period, ERROR / 2
        )
    likely = model.likely
    return _made(finding, name, "at most: if no batch is late", likely.step + likely.receive, ERROR)


def _changed(
    finding: JobFinding,
    model: JobModel,
    name: str,
    assumed: str,
    change: Callable[[JobTimes], JobTimes],
) -> LeverForecast:
    # What the model is off now it will be off then: a change of nothing brings nothing.
    off = float(1e3 / finding.batch_rate.m_as("1/s")) / model.likely.period(model.workers)
    likely, at_most, at_least = model.changed(change).periods(model.workers)
    return LeverForecast(name, *throughputs_of(finding, likely * off, at_most * off, at_least * off), assumed)


def _made(finding: JobFinding, name: str, assumed: str, period: float, error: float) -> LeverForecast:
    rates = throughputs_of(finding, period, period * (1 + error), period * (1 - error))
    return LeverForecast(name, *rates, assumed)


def _unknown(name: str, why: str) -> LeverForecast:
    return LeverForecast(name, None, None, None, why)
