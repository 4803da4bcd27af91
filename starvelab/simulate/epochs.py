"""The first epoch, which finds nothing in memory, the later ones, and what lies between two of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isclose, isfinite, lcm

from ..errors import InputError, MissingValueError, check_flag
from ..model.analysis._bill import PASS_SAMPLES, samples_of_epoch
from ..model.description import Description, check_asked
from ..model.parts import Workers
from ..model.resources import ACCELERATOR, STORAGE
from ..model.stages.data import hit_share
from ..model.step import Step
from ..tables import Share, TableRepr, cell, percent
from ..units import Q_, Quantity, Unchecked, one_value, positive, positive_int
from .inputs import inputs_of
from .simulation import draw, follow

# Batches of an epoch that are followed where the loop may run ahead without end.
_MAX_BATCHES = 5_000


@dataclass(frozen=True, repr=False)
class Epochs(TableRepr):
    """The result of `epochs`.

    Attributes
    ----------
    samples : int
        Samples of an epoch.
    held : float or None
        The share of the data set that fits into memory, 0 to 1; None if no memory was given.
    cached_fraction : float
        The share of the reads that memory serves in a later epoch.
    first, later : Step
        A step of the first epoch, and of each epoch after it.
    first_boundary, boundary : quantity [time]
        How much longer the first epoch, and each epoch after it, takes than its steps: nothing is prepared
        when it begins.
    """

    samples: int
    held: float | None
    cached_fraction: float
    first: Step
    later: Step
    first_boundary: Quantity
    boundary: Quantity

    def time(self, count: int) -> Quantity:
        """How long that many epochs take [time], the first one included."""
        first, later = self._times
        whole: Quantity = first + (positive_int(count, "count") - 1) * later
        return whole

    @property
    def _times(self) -> tuple[Quantity, Quantity]:
        steps = (
            Q_(self.samples / step.throughput.m_as("img/min"), "min") for step in (self.first, self.later)
        )
        return next(steps) + self.first_boundary, next(steps) + self.boundary

    @property
    def headers(self) -> tuple[str, ...]:
        """Headers of the table."""
        read = (f"read from {self.later.labels.the(STORAGE.name)}",) if self.held is not None else ()
        busy = f"{self.later.labels[ACCELERATOR.name]} busy"
        return ("epoch", "time", "at its boundary", *read, busy, "binds")

    @property
    def rows(self) -> list[list[Unchecked]]:
        """The first epoch, and each later one."""
        rows: list[list[Unchecked]] = []
        both = ((self.first, self.first_boundary), (self.later, self.boundary))
        for name, (step, lost), time in zip(("the first", "each later"), both, self._times, strict=True):
            steps = time - lost
            read = [(step.actual_demand * steps).to("GB")] if self.held is not None else []
            busy = Share(step.utilization * (steps / time).m_as(""))
            shown = time if time.m_as("min") >= 1 else time.to("s")
            rows.append([name, shown, lost, *read, busy, step.labels[step.bottleneck]])
        return rows

    @property
    def summary(self) -> str:
        """What fits into memory, and what it is worth, in one line."""
        if self.held is None:
            return f"Between two epochs {cell(self.boundary)} are lost, as nothing is prepared then"
        return (
            f"{percent(self.held)} of the data fits into memory, which serves "
            f"{percent(self.cached_fraction)} of the reads from the second epoch on"
        )

    @property
    def note(self) -> str:
        """Below the table: why the step cannot run, if it cannot."""
        return self.later.note


def epochs(pipeline: Description, memory: Quantity | str | None, samples: int | None, evicts: bool) -> Epochs:
    """Compute what a page cache serves, and what epochs lose between them; see `Pipeline.epochs`."""
    check_flag(evicts, "evicts")
    replaced = ("storage.cache.share",) if memory is not None else ()
    check_asked(pipeline, "epochs", whatever=replaced, one_host=True)
    if memory is not None and pipeline.storage is None:
        raise InputError(
            "The page cache serves reads from a drive, got a pipeline without storage. "
            "Pass storage=Storage.NVMe_Gen4, or no memory."
        )
    samples = one_value(samples_of_epoch(pipeline, samples), "samples")
    if samples is None:
        raise MissingValueError(
            "epochs needs the samples of an epoch, and the pipeline names no data set of a known size. "
            f"{PASS_SAMPLES}"
        )
    accelerators = pipeline.numbers["accelerators"]
    if samples < pipeline.numbers["batch_size"] * accelerators:  # then an epoch is one batch of what there is
        pipeline = pipeline.replace(batch_size=ceil(samples / accelerators))
    begin = float(pipeline.numbers["start_up"] or 0.0)
    first, later, held = pipeline, pipeline, None
    if memory is None:
        cached = float(pipeline.numbers["cached_fraction"] or 0.0)
    else:
        has = one_value(positive(memory, "B", "memory"), "memory")
        held = min(1.0, has / (samples * pipeline.sizes["stored"]))
        cached = float(hit_share(held)) if evicts else held
        first, later = (pipeline.replace({"storage.cache.share": share}) for share in (0.0, cached))
    steps = ceil(samples / (pipeline.numbers["batch_size"] * accelerators) - 1e-9)
    cold, warm = first.solve(), later.solve()
    again = 0.0 if pipeline.numbers["persistent"] else begin
    boundary = _boundary(later, warm, steps, again)
    same = memory is None and again == begin
    return Epochs(
        samples=samples, held=held, cached_fraction=cached, first=cold, later=warm,
        first_boundary=Q_(boundary if same else _boundary(first, cold, steps, begin), "s"),
        boundary=Q_(boundary, "s"),
    )  # fmt: skip


def _boundary(pipeline: Description, step: Step, steps: int, start_up: float) -> float:
    """How much longer an epoch of so many steps takes than these, whose workers need `start_up` [s].

    Followed batch by batch, with mean times, in epochs that may be shorter: they end in the same place of a
    round of all workers, and of the steps in flight, once what lies before repeats.
    """
    if pipeline.alone:
        return 0.0
    if pipeline.in_turn:  # nothing is prepared ahead of any step
        return start_up
    workers = 1  # the threads of a pool prepare one batch together
    if isinstance(pipeline.workers, Workers) and pipeline.workers.kind != "pool":
        workers = max(1, int(pipeline.workers.count) // int(pipeline.numbers["accelerators"]))
    if steps < workers:  # the others have nothing to do, and take nobody's core
        workers = steps
        pipeline = pipeline.replace(workers=workers * pipeline.numbers["accelerators"])
    inputs, cold = inputs_of(pipeline, None), 1 - float(pipeline.numbers["cached_fraction"] or 0.0)
    share = workers / max(1, inputs.workers)
    # What memory serves is left to chance in a simulation; here each batch reads the mean.
    inputs = replace(
        inputs, workers=workers, prepare_time=inputs.prepare_time * share, cached_share=0.0, spread=0.0,
        slow_share=0.0, read_time=inputs.read_time * cold, read_wait=inputs.read_wait * cold * share,
        start_up=1e3 * start_up, persistent=False,
    )  # fmt: skip
    depth = int(inputs.in_flight) if isfinite(inputs.in_flight) else 1
    round_of_all, period = lcm(workers, depth), float(step.step_time.m_as("ms"))
    most = 2 * (workers * inputs.prefetch + round_of_all) if isfinite(inputs.in_flight) else _MAX_BATCHES
    rounds = 1 + ceil(workers * inputs.prefetch / round_of_all)
    while True:
        batches = min(steps, steps % round_of_all + rounds * round_of_all)
        capped = batches >= min(steps, most)
        timed = 2 if capped else 1  # which are timed, behind as many
        inputs = replace(inputs, epoch_batches=batches)
        run = follow(inputs, *draw(inputs, 2 * timed * batches, 1, 0))
        ends, ahead, before = run.step_end[:, 0], (run.step_end - run.host_free)[:, 0], -1 - round_of_all
        lost = float(ends[-1] - ends[timed * batches - 1]) / timed - batches * period
        if capped or lost <= 0:
            return max(0.0, lost) / 1e3
        # Once a round is as long as the mean rates say, and the loop as far ahead as before, so it stays.
        if isclose(ends[-1] - ends[before], round_of_all * period) and isclose(ahead[-1], ahead[before]):
            return lost / 1e3
        rounds *= 2
