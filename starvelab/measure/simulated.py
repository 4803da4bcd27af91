"""The simulated clock: what a run or a diagnosis would measure, computed without threads, files or chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Self

import numpy as np

from .. import runtime
from ..errors import InputError, UnknownNameError
from ..host import has_processes, usable_cores
from ..model.assumptions import TUTORIAL
from ..model.parts import Accelerator, Handover, Jitter, Link, Samples, Workers
from ..simulate.inputs import inputs_of
from ..simulate.simulation import follow, simulate
from ..simulate.timeline import LoaderInputs
from ..units import Q_, Quantity, as_quantity, check_magnitude, nonnegative, positive
from .batches import PARTS
from .devices import StorageClock, VirtualAccelerator
from .measurement import Measurement, summarize
from .setup import RunSetup

# The parts whose time is given for a sample; copy and compute follow from the link and the accelerator.
PREPARED = PARTS[:4]
NO_TIME = Q_("0 ms")
NEXT_TO_NOTHING = 1e-12  # ms of a sample, where all that prepares it is cached
MAX_BATCHES = 2000
AS_GRADED = "Simulated from one batch, as while grading. Nothing was measured: run it yourself for that."
IN_A_BROWSER = (
    "Simulated from one batch: Python in a browser starts no workers, so nothing was measured. To measure, "
    "run this notebook in JupyterLab on your own machine (make lab) or on Binder."
)
# A photograph of ImageNet, stored and as float32 in 3 x 224 x 224 values.
SAMPLE_SIZE, TRANSFER_SIZE = Q_("114.66 KB"), Q_("602112 B")
WARM_UP, MEASURED = 20, 180


@dataclass(frozen=True)
class SimulatedClock:
    """Times of preparing, which `Pipeline.measure` and `diagnose` use instead of this machine.

    Parameters
    ----------
    costs : mapping of str to quantity [time]
        Time of one sample in one worker, for any of read, decode, transform, collate.
    handover : quantity [time]
        Time of a worker to hand a batch over.
    cores : int, optional
        Cores that the workers share; without it each worker has its own.
    jitter : float
        Standard deviation over mean, from batch to batch.
    sample_size, transfer_size : quantity [data]
        Stored bytes of a sample, and its bytes on the link.
    seed : int
    stage_times : mapping of str to quantity [time]
        Time of each stage of a sample that a measurement shows, such as a transform; by default `costs`.

    Examples
    --------
    >>> from starvelab import Pipeline
    >>> pipeline = Pipeline(hardware="64 ms", batch_size=32, workers=2)
    >>> measured = pipeline.measure(clock=SimulatedClock({"decode": "5 ms", "transform": "3 ms"}))
    >>> f"{measured.throughput.m_as('img/s'):.0f} img/s, {measured.utilization:.2f}"
    '250 img/s, 0.50'
    """

    costs: Mapping[str, Quantity | str] = field(default_factory=dict)
    handover: Quantity | str = NO_TIME
    cores: int | None = None
    jitter: float = 0.0
    sample_size: Quantity | str = SAMPLE_SIZE
    transfer_size: Quantity | str = TRANSFER_SIZE
    seed: int = 0
    stage_times: Mapping[str, Quantity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        costs = {}
        for part, time in self.costs.items():
            if part not in PREPARED:
                raise UnknownNameError(
                    f"A worker's parts are {', '.join(PREPARED)}, got {part!r:.80}. The copy's time comes "
                    "from the link, that of computing from the GPU."
                )
            costs[part] = as_quantity(time, "ms", part)
            nonnegative(costs[part], "ms", part)
        object.__setattr__(self, "costs", costs)
        for name, unit in (("handover", "ms"), ("sample_size", "B"), ("transfer_size", "B")):
            object.__setattr__(self, name, as_quantity(getattr(self, name), unit, name))
            positive(getattr(self, name), unit, name, zero=unit == "ms")
        check_magnitude(self.jitter, "jitter", zero=True)
        if self.cores is not None:
            check_magnitude(self.cores, "cores")

    @classmethod
    def of(cls, setup: RunSetup) -> Self:
        """A clock from the times of one batch, which is prepared now, after a first that is not timed."""
        preparer = setup.preparer(StorageClock(None))
        preparer.batch(0)
        times = {name: Q_(each / setup.batch_size, "s") for name, each in preparer.batch(0).seconds.items()}
        costs: dict[str, Quantity] = defaultdict(lambda: NO_TIME)
        for name, time in times.items():
            part = setup.stages.get(name, name)
            costs[part] = costs[part] + time
        return cls(
            costs,
            cores=usable_cores(physical=True),
            sample_size=getattr(setup.samples, "mean_size", SAMPLE_SIZE),
            transfer_size=Q_(setup.layout.size / setup.batch_size, "B"),
            stage_times=times,
        )

    def inputs(self, setup: RunSetup, rung: int = 0) -> LoaderInputs:
        """The setup as the simulation sees it, the first `rung` parts cached."""
        device, batch = setup.device, setup.batch_size
        if not isinstance(device, VirtualAccelerator):
            raise InputError(
                f"A simulated clock needs the time of a step, got {device!r:.80}. Measure it, and pass "
                "hardware=Accelerator(rate=...)."
            )
        described = setup.description
        drive = described.storage if rung == 0 else None
        link = setup.link if rung < PARTS.index("compute") else None
        work = sum(Q_(self.costs[part]).m_as("ms") for part in PREPARED[rung:] if part in self.costs)
        # Joining and handing over keeps the worker from its next batch.
        handover = self.handover if rung < len(PREPARED) else NO_TIME
        pipeline = described.replace(
            {"storage": None} if drive is None else {"storage.read_ahead": False},  # workers read themselves
            model=None,
            batch_size=batch,
            dataset=Samples(
                size=self.sample_size,
                cpu_time=Q_(max(float(work), NEXT_TO_NOTHING), "ms"),
                transfer=self.transfer_size,
                jitter=Jitter(self.jitter),
            ),
            workers=Workers(
                setup.workers,
                cores=self.cores,
                prefetch=setup.prefetch,
                in_order=setup.in_order,
                handover=Handover(worker=handover, loop=Q_(setup.loop_time, "s")),
            ),
            link=None if link is None else Link(Q_(link.bandwidth, "B/s"), overlaps=link.overlapped),
            hardware=Accelerator(rate=Q_(device.step_time, "s"), in_flight=device.in_flight),
            overlap=True,
            # What the parts take is known, so nothing is assumed of how workers crowd each other.
            assumptions=TUTORIAL.replace(open_requests=described.assumptions.open_requests),
        )
        return inputs_of(pipeline, None)

    def measurement(self, setup: RunSetup, *, seconds: float) -> Measurement:
        """Return what a run of that length would measure."""
        inputs = self.inputs(setup)
        wanted = int(np.clip(1e3 * seconds / inputs.mean_period, 2 * WARM_UP, MAX_BATCHES))
        count = max(wanted, 4 * inputs.workers + 1)
        skipped = whole_rounds(WARM_UP, inputs)
        simulated = simulate(inputs, batches=count + skipped, seed=self.seed)
        trace = simulated.trace().after(skipped)
        stages = {name: float(Q_(t).m_as("s")) for name, t in (self.stage_times or self.costs).items()}
        times = follow(inputs, simulated.times, simulated.reads)
        asked = np.concatenate(([0.0], times.host_free[:-1, 0]))
        return summarize(setup, trace, (times.received[:, 0] - asked)[skipped:], stages)

    def periods(self, setup: RunSetup, rung: int) -> np.ndarray:
        """Time between batches [ms] with the first `rung` parts cached, once for each of eight replicas."""
        inputs = self.inputs(setup, rung)
        skipped = whole_rounds(WARM_UP, inputs)
        batches = skipped + whole_rounds(MEASURED, inputs)
        return simulate(inputs, batches=batches, replicas=8, seed=self.seed, warm_up=skipped).periods


def whole_rounds(batches: int, inputs: LoaderInputs) -> int:
    """At least that many batches, the same number from each worker: they come in bursts."""
    workers = max(inputs.workers, 1)
    return -(-batches // workers) * workers


def clock_for(setup: RunSetup, *, announced: bool = True) -> SimulatedClock | None:
    """The clock that STARVELAB_CLOCK asks for; None stands for the live one, which no browser has."""
    live = runtime.current().clock == "live"
    # GPUs of the user's own have no times that could be known beforehand.
    if not isinstance(setup.device, VirtualAccelerator) or (live and has_processes()):
        return None
    if announced:
        announce(IN_A_BROWSER if live else AS_GRADED)
    return SimulatedClock.of(setup)


@cache
def announce(text: str) -> None:
    """Print a sentence once in a process."""
    print(text)
