"""A live pipeline: one batch after the other passes the loader and the device, and its times are kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from tqdm.auto import tqdm

from ..host import usable_cores
from ..model.description import Description
from ..simulate import Trace
from ..units import Q_, Quantity, as_quantity, format_quantity, positive
from .batches import PARTS, Batch, DeliveredBatch
from .devices import Passage, StepRun, VirtualAccelerator, VirtualRun
from .loaders import InlineLoader, Loader, ProcessLoader, ThreadLoader
from .measurement import Measurement, summarize
from .quality import CALIBRATED_WHILE, LoadMeter, disturbance
from .setup import NO_STEP, RunSetup, setup_of
from .simulated import SimulatedClock, clock_for

if TYPE_CHECKING:
    from tqdm import std

MIN_ROUNDS = 4  # batches of each worker, however slow they are

# Rungs of the caching ladder from which on the loader is not asked: a kept batch in memory, or on the device.
HOST_BATCH, DEVICE_BATCH = PARTS.index("copy"), PARTS.index("compute")
NOT_PREPARED = DeliveredBatch(-1, -1, None, 0.0, 0.0, HOST_BATCH, {})
# More workers would say no more about contention, and take their time to start.
MAX_WORKERS = 8
AnyPipeline = TypeVar("AnyPipeline", bound=Description)


def open_loader(setup: RunSetup) -> Loader:
    """The loader that a pipeline names, running."""
    _ = setup.layout  # prepares one sample here: a transform that fails says so before any worker starts
    if setup.kind == "torch":
        from .torch_loader import TorchLoader  # loaded here: PyTorch takes seconds

        return TorchLoader(setup)
    if not setup.workers:
        return InlineLoader(setup)
    return ProcessLoader(setup) if setup.kind == "processes" else ThreadLoader(setup)


class Session:
    """Opens what a pipeline names, and closes it whatever happens."""

    def __init__(self, setup: RunSetup) -> None:
        self.setup = setup
        self.rung = 0
        self.passed: list[DeliveredBatch] = []
        self.kept: Batch = None

    def __enter__(self) -> Self:
        device, link = self.setup.device, self.setup.link
        self.device = VirtualRun(device, link) if isinstance(device, VirtualAccelerator) else StepRun(device)
        self.loader = open_loader(self.setup)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.loader.close()
        if (lost := self.loader.lost_worker(error)) is not None:
            raise lost from error

    def set_rung(self, rung: int) -> None:
        """Cache the first `rung` parts from now on, and let what was made before pass."""
        self.rung = rung
        if rung < HOST_BATCH:
            self.loader.rung = rung
            # Each worker's first batch under the new rule may have filled its cache, so that one passes, too;
            # and what was made of this rung before a kept batch had its turn would come for nothing.
            missing, since = set(range(self.loader.workers)) or {-1}, time.monotonic()
            while missing:
                delivery = self.loader.next()
                if delivery.rung == rung and delivery.start >= since:
                    missing.discard(delivery.worker)
        elif self.kept is None:
            batch = self.loader.next().array
            # A later batch may be written over an array.
            self.kept = batch.copy() if isinstance(batch, np.ndarray) else batch

    def warm_up(self) -> None:
        """Drop the first batches of each worker: start-up would count as stall."""
        for _ in range(self.loader.ahead + max(self.loader.workers, 1)):
            delivery = self.loader.next()
        self.device.warm_up(delivery.array)

    def step(self) -> None:
        """One batch: get it, copy it, use it."""
        asked = time.monotonic()
        delivery = self.loader.next() if self.rung < HOST_BATCH else NOT_PREPARED._replace(array=self.kept)
        if self.setup.loop_time:
            time.sleep(self.setup.loop_time)
        received = time.monotonic()
        self.device.take(delivery.array, resident=self.rung == DEVICE_BATCH)
        # Without the batch itself: it may stand in a slot that is written again.
        self.passed.append(delivery._replace(array=None, asked=asked, received=received))

    def _ms(self, name: str) -> np.ndarray:
        """A time of all batches [ms], since the loop asked for the first."""
        return np.array([1e3 * (getattr(one, name) - self.passed[0].asked) for one in self.passed])

    def trace(self) -> Trace:
        """The batches so far, after the last of them is done."""
        passages = 1e3 * (np.array(self.device.finish()).T - self.passed[0].asked)
        return Trace(
            batch=np.array([one.number for one in self.passed]),
            worker=np.array([one.worker for one in self.passed]),
            prepare_start=self._ms("start"),
            prepared=self._ms("end"),
            received=self._ms("received"),
            **dict(zip(Passage._fields, passages, strict=True)),
            batch_size=self.setup.batch_size,
            source="measured",
        )

    def waits(self) -> np.ndarray:
        """How long the training loop waited for each batch [ms]."""
        return np.array([1e3 * (one.received - one.asked) for one in self.passed])

    def stage_seconds(self, rung: int | None = None) -> dict[str, float]:
        """Mean seconds that each stage took for a sample; of one `rung` of the ladder, or of all."""
        spent = [one.seconds for one in self.passed if rung in (None, one.rung)]
        share = 1 / max(self.setup.batch_size * len(spent), 1)
        return {name: share * sum(each[name] for each in spent) for name in (spent[0] if spent else ())}


def run(
    setup: RunSetup,
    *,
    seconds: Quantity | str = "3 s",
    clock: SimulatedClock | None = None,
    repeat: bool = False,
    progress: bool = True,
) -> Measurement:
    """Let a setup feed its accelerator, and measure both; `starvelab.Pipeline.measure` has the parameters."""
    wanted = positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    clock = clock or clock_for(setup, announced=progress)
    if clock is not None:
        return clock.measurement(setup, seconds=wanted)
    if progress:
        print(f"Running {setup} for about {format_quantity(Q_(wanted, 's'))}, and its start-up.")
    runs = [_measured(setup, wanted, progress)]
    if repeat and runs[0].quality.reason:
        if progress:
            print("Something disturbed that run, so it runs once more.")
        runs.append(_measured(setup, wanted, progress))
    return min(runs, key=lambda one: one.quality.background_load + one.quality.variation)


def _measured(setup: RunSetup, wanted: float, progress: bool) -> Measurement:
    with Session(setup) as session, time_bar(wanted, shown=progress) as bar:
        session.warm_up()
        meter, start = LoadMeter(), time.monotonic()
        least = MIN_ROUNDS * max(setup.workers, 1) + 1
        while (elapsed := time.monotonic() - start) < wanted or len(session.passed) < least:
            session.step()
            bar.update(min(elapsed, wanted) - bar.n)
        trace, background_load = session.trace(), meter.background_load()
    return summarize(setup, trace, session.waits(), session.stage_seconds(), background_load)


@contextmanager
def time_bar(seconds: float, *, shown: bool) -> Iterator[std.tqdm[None]]:
    """A bar of so many seconds, updated by those that passed; it goes away when all is done."""
    shape = "{bar} {n:.0f} of {total:.0f} s"
    with tqdm(total=seconds, bar_format=shape, leave=False, disable=not shown) as bar:
        yield bar
        # A notebook keeps a bar that is not full, in red.
        bar.update(max(0.0, seconds - bar.n))


def calibrate(pipeline: AnyPipeline, *, seconds: Quantity | str, progress: bool) -> AnyPipeline:
    """Return the pipeline with what one worker takes here, and how far several of them crowd each other."""
    positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    bare = setup_of(pipeline).replace(storage=None, link=None, device=NO_STEP)
    one = run(bare.replace(workers=min(bare.workers, 1)), seconds=seconds, repeat=True, progress=progress)
    runs = [one]
    batch_times = one.trace.prepared - one.trace.prepare_start
    cores = usable_cores(physical=True)
    contention = 0.0
    if bare.workers and cores > 1:
        many = min(cores, MAX_WORKERS)
        together = run(bare.replace(workers=many), seconds=seconds, repeat=True, progress=progress)
        runs.append(together)
        speedup = float((together.throughput / one.throughput).m_as(""))
        contention = float(np.clip((many / speedup - 1) / (many - 1), 0, 1))
    handover = Q_(max(0.0, round(float(one.period.m_as("ms") - np.mean(batch_times)), 6)), "ms")
    transfer = Q_(float(bare.layout.size / bare.batch_size), "B")
    # Of a dataset nobody knows what is stored; only a drive would ask, and it reads by itself.
    stored = getattr(bare.samples, "mean_size", transfer)
    # Workers of a run read their samples themselves.
    reads = {} if pipeline.storage is None else {"storage.read_ahead": False}
    return pipeline.replace(
        {
            **reads,
            "dataset.size": Q_(max(float(stored.m_as("B")), 1.0), "B"),
            "dataset.cpu_time": Q_(float(np.median(batch_times)) / bare.batch_size, "ms"),
            "dataset.transfer": transfer,
            "dataset.jitter.spread": float(np.std(batch_times) / np.mean(batch_times)),
            "workers.cores": cores,
            "workers.handover.worker": handover,
            "assumptions": pipeline.assumptions.replace(
                name=f"{CALIBRATED_WHILE}{reason}" if (reason := disturbance(*runs)) else "this machine",
                contention=contention,
                coherency=0,
                crowding=0,
                second_thread=0,
            ),
        }
    )
