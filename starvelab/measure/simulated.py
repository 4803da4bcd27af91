"""The same runs worked out instead of measured: a clock that needs no thread, no file and no luck.

It knows what each part takes because it is told, or from one batch; the order of events comes from
`starvelab.simulate`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from .. import runtime
from ..errors import InputError, UnknownNameError
from ..host import usable_cores
from ..simulate import Loader, simulate
from ..simulate.simulation import follow
from ..units import Q_, as_quantity, positive
from .input_pipeline import InputPipeline
from .preparation import PARTS
from .record import Record
from .results import summarize
from .stand_ins import StorageClock, VirtualAccelerator

# The parts whose time is given for a sample; copy and compute follow from the link and the accelerator.
PREPARED = PARTS[:4]
MOST_BATCHES = 2000
WARM_UP, MEASURED = 20, 180


@dataclass(frozen=True)
class SimulatedClock:
    """What preparing takes, for `run` and `diagnose` to work with instead of this machine.

    Parameters
    ----------
    costs : mapping of str to quantity [time]
        Time of one sample in one worker, for any of read, decode, transform, collate.
    handover : quantity [time]
        What a worker spends on handing a batch over.
    cores : int, optional
        Cores that the workers share; without it each worker has its own.
    jitter : float
        Standard deviation over mean, from batch to batch.
    straggler_share : float
        Share of samples that take longer to read.
    straggler_time : quantity [time]
        How much longer.
    sample_size, sent_size : quantity [data]
        Stored bytes of a sample, and its bytes on the link.
    seed : int

    Examples
    --------
    >>> from starvelab.measure import InputPipeline, VirtualAccelerator, run
    >>> pipe = InputPipeline(accelerator=VirtualAccelerator(step_time="64 ms"), workers=2)
    >>> record = run(pipe, clock=SimulatedClock({"decode": "5 ms", "transform": "3 ms"}))
    >>> f"{record.throughput.m_as('img/s'):.0f} img/s, {record.utilization:.2f}"
    '250 img/s, 0.50'
    """

    costs: Mapping[str, Any] = field(default_factory=dict)
    handover: Any = "0 ms"
    cores: int | None = None
    jitter: float = 0.0
    straggler_share: float = 0.0
    straggler_time: Any = "0 ms"
    sample_size: Any = "114.66 KB"
    sent_size: Any = "602112 B"
    seed: int = 0

    def __post_init__(self) -> None:
        costs = {}
        for part, time in self.costs.items():
            if part not in PREPARED:
                raise UnknownNameError(
                    f"A worker's parts are {', '.join(PREPARED)}, got {part!r:.80}. The copy's time comes "
                    "from the link, that of computing from the accelerator."
                )
            costs[part] = as_quantity(time, "ms", part)
            positive(costs[part], "ms", part, zero=True)
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "handover", as_quantity(self.handover, "ms", "handover"))
        positive(self.handover, "ms", "handover", zero=True)
        for name in ("sample_size", "sent_size"):
            object.__setattr__(self, name, as_quantity(getattr(self, name), "B", name))
            positive(getattr(self, name), "B", name)

    @classmethod
    def of(cls, pipe: InputPipeline) -> Self:
        """A clock told by one batch, which is prepared here and now, after a first that is not timed."""
        preparer = pipe.preparer(StorageClock(None, None, None))
        preparer.batch(0)
        _, work = preparer.batch(0)
        seconds: dict[str, float] = defaultdict(float)
        part_of = {transform.name: transform.part for transform in pipe.transforms}
        for name, each in work.seconds.items():
            seconds[part_of.get(name, name)] += each / pipe.batch_size
        return cls(
            {part: Q_(each, "s") for part, each in seconds.items()},
            cores=usable_cores(physical=True),
            sample_size=pipe.samples.mean_size,
            sent_size=Q_(pipe.batch_bytes / pipe.batch_size, "B"),
        )

    def loader(self, pipe: Any, rung: int = 0) -> Loader:
        """The pipeline as the simulation sees it, the first `rung` parts cached."""
        if not hasattr(pipe.accelerator, "step_time"):
            raise InputError(
                f"A simulated clock needs a VirtualAccelerator, got {pipe.accelerator!r:.80}. "
                "Pass accelerator=VirtualAccelerator(step_time=...)."
            )
        batch = pipe.batch_size
        running = [part for part in PREPARED[rung:] if part in self.costs]
        own = sum((self.costs[part].m_as("ms") for part in running), 0.0)
        reads = rung == 0
        size = self.sample_size.m_as("B")
        occupied = waited = copied = 0.0
        # Joining and handing over keeps the worker from its next batch.
        handed = self.handover.m_as("ms") if rung < len(PREPARED) else 0.0
        if pipe.storage is not None and reads:
            occupied = 1e3 * batch * size / pipe.storage.bandwidth.m_as("B/s")
            waited = batch * pipe.storage.latency.m_as("ms")
        if pipe.link is not None and rung < PARTS.index("compute"):
            copied = 1e3 * pipe.link.copy_time(batch * self.sent_size.m_as("B"))
        return Loader(
            step_time=pipe.accelerator.step_time,
            in_flight=pipe.accelerator.in_flight,
            prepare_time=f"{batch * own + handed} ms",
            batch_size=batch,
            workers=pipe.worker_count,
            prefetch=pipe.prefetch,
            in_order=pipe.in_order,
            copy_time=f"{copied} ms",
            copy_overlaps=pipe.link is None or pipe.link.overlapped,
            read_time=f"{occupied} ms",
            read_wait=f"{waited} ms",
            cores=self.cores,
            jitter=self.jitter,
            straggler_share=self.straggler_share if reads else 0.0,
            straggler_time=self.straggler_time if reads else "0 ms",
        )

    def _batches(self, loader: Loader, seconds: float) -> int:
        wanted = seconds * loader.mean_rate.m_as("img/s") / loader.batch_size
        return max(int(np.clip(wanted, 2 * WARM_UP, MOST_BATCHES)), 4 * loader.workers + 1)

    def record(self, pipe: Any, *, seconds: float) -> Record:
        """A record of a run of that length."""
        loader = self.loader(pipe)
        count = self._batches(loader, seconds)
        skipped = in_turns(WARM_UP, loader)
        found = simulate(loader, batches=count + skipped, seed=self.seed)
        trace = found.trace().after(skipped)
        costs = {part: time.m_as("s") for part, time in self.costs.items()}
        course = follow(loader, found.times)
        asked = np.concatenate(([0.0], course.host_free[:-1, 0]))
        return summarize(pipe, trace, (course.received[:, 0] - asked)[skipped:], costs, 0.0, {})

    def periods(self, pipe: Any, rung: int, *, replicas: int = 8) -> np.ndarray:
        """Time between batches [ms] with the first `rung` parts cached, once for each replica."""
        loader = self.loader(pipe, rung)
        skipped = in_turns(WARM_UP, loader)
        batches = skipped + in_turns(MEASURED, loader)
        found = simulate(loader, batches=batches, replicas=replicas, seed=self.seed, warm_up=skipped)
        return 1e3 * loader.batch_size / found.throughputs.m_as("img/s")


def in_turns(batches: int, loader: Loader) -> int:
    """At least that many batches, the same number from each worker: they come in bursts."""
    turn = max(loader.workers, 1)
    return -(-batches // turn) * turn


def clock_for(pipe: Any, *, announced: bool = True) -> SimulatedClock | None:
    """The clock that STARVELAB_CLOCK asks for; None stands for the live one.

    Parameters
    ----------
    pipe : InputPipeline
        Or anything else that can be run; only an InputPipeline can be worked out.
    announced : bool
        Say that what follows is not measured.

    Raises
    ------
    InputError
        If the variable names neither.
    """
    # Starting worker processes is most of what a notebook takes.
    name = runtime.current().clock
    # Datasets and GPUs of the user's own have nothing that could be worked out beforehand.
    known = isinstance(pipe, InputPipeline) and isinstance(pipe.accelerator, VirtualAccelerator)
    if name == "live" or not known:
        return None
    if announced:
        print("Worked out from one batch, as while grading. Nothing was measured: run it yourself for that.")
    return SimulatedClock.of(pipe)
