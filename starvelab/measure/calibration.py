"""From what one worker takes to what any number of them deliver: calibrate, predict, compare.

The predictions are those of the package's models; here they only get their figures from this machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import InputError, check_names
from ..host import usable_cores
from ..model.assumptions import TUTORIAL
from ..model.pipeline import CALLED, Pipeline, Step
from ..simulate import Loader, Simulation, simulate
from ..tables import TableRepr, percent
from ..units import Q_, as_quantity, check_magnitude, format_quantity, positive
from .record import Record
from .run import machine, run
from .saved import Saved
from .stand_ins import VirtualAccelerator

# Next to nothing, so that the loader shows all it can.
NO_STEP = VirtualAccelerator(step_time="1 us")


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibration(TableRepr, Saved):
    """What one worker takes on this machine, and how several get in each other's way.

    Attributes
    ----------
    loader : str
    batch_size : int
        The batch that `handover_time` belongs to.
    cpu_time : quantity [time]
        Of one sample in one worker, with everything from reading to joining.
    handover_time : quantity [time]
        Of one batch, from its worker to the training loop.
    stage_times : mapping of str to quantity [time]
        What `cpu_time` is made of.
    sent_size : quantity [data]
        Bytes of one prepared sample.
    cores : int
        Physical cores that workers can use here.
    contention : float
        Of the universal scalability law: two workers reach 2 / (1 + contention) times the rate of one.
    jitter : float
        Standard deviation over mean of a batch's time in its worker.
    machine : mapping of str to object
    """

    called: ClassVar[str] = "calibration"

    loader: str
    batch_size: int
    cpu_time: Any
    handover_time: Any
    stage_times: Mapping[str, Any]
    sent_size: Any
    cores: int
    contention: float
    jitter: float
    machine: Mapping[str, Any]

    def but(self, **changes: Any) -> Calibration:
        """A copy with some figures changed, such as the contention of another one."""
        check_names(changes, [f.name for f in dataclasses.fields(self)], "A calibration")
        return dataclasses.replace(self, **changes)

    @property
    def headers(self) -> tuple[str, str]:
        """Of the table that shows it."""
        return ("figure", "value")

    @property
    def rows(self) -> list[list[Any]]:
        """One row for each figure."""
        return [
            ["CPU time of a sample", self.cpu_time],
            *([f"  {name}", time] for name, time in self.stage_times.items()),
            [f"handing over a batch of {self.batch_size}", self.handover_time],
            ["physical cores", self.cores],
            ["contention", self.contention],
            ["variation from batch to batch", percent(self.jitter)],
        ]

    @property
    def summary(self) -> str:
        """The main figure, in one line."""
        alone = Q_(1 / self.cpu_time.m_as("s"), "img/s")
        return f"One worker ({self.loader}) prepares {format_quantity(alone)}."


def calibrate(
    pipe: Any, *, seconds: Any = "2 s", contention: float | None = None, progress: bool = True
) -> Calibration:
    """Take the measure of one worker, and of as many as there are cores.

    Whole batches in a worker of the pipeline's own kind, since single samples in the training loop read
    dearer. Storage, link and accelerator are left out: what they take is known.

    Parameters
    ----------
    pipe : InputPipeline
    seconds : quantity [time]
        Of each of the two runs.
    contention : float, optional
        From another calibration; then only one worker is measured.
    progress : bool

    Raises
    ------
    InputError, WorkerError
    """
    positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    if contention is not None:
        check_magnitude(contention, "contention", zero=True)
    bare = pipe.but(storage=None, link=None, accelerator=NO_STEP)
    one = run(bare if pipe.worker_count == 0 else bare.but(workers=1), seconds=seconds, progress=progress)
    made = one.trace.prepared - one.trace.prepare_start
    cores = usable_cores(physical=True)
    if contention is None:
        contention = 0.0
        if pipe.worker_count and cores > 1:
            # More than eight would say no more, and take their time to start.
            many = min(cores, 8)
            speedup = (
                run(bare.but(workers=many), seconds=seconds, progress=progress).throughput / one.throughput
            )
            contention = float(np.clip((many / speedup.m_as("") - 1) / (many - 1), 0, 1))
    work = float(np.median(made))
    return Calibration(
        loader=pipe.loader,
        batch_size=pipe.batch_size,
        cpu_time=Q_(work / pipe.batch_size, "ms"),
        handover_time=Q_(max(0.0, one.period.m_as("ms") - float(np.mean(made))), "ms"),
        stage_times=one.stage_times,
        sent_size=Q_(float(pipe.batch_bytes / pipe.batch_size), "B"),
        cores=cores,
        contention=float(contention),
        jitter=float(np.std(made) / np.mean(made)),
        machine=machine(),
    )


@dataclass(frozen=True, repr=False)
class Prediction(TableRepr):
    """What the models say about a pipeline on this machine.

    Attributes
    ----------
    step : Step
        Of the model that knows mean rates.
    simulated : Simulation
        Of the simulation, which knows order and chance as well.
    """

    step: Step
    simulated: Simulation

    @property
    def throughput(self) -> Any:
        """By the model [sample/time]."""
        return self.step.throughput

    @property
    def utilization(self) -> float:
        """By the model."""
        return self.step.utilization

    @property
    def stall(self) -> float:
        """By the model."""
        return self.step.stall

    @property
    def binding(self) -> str:
        """The slowest resource."""
        return self.step.binding

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("figure", "model", "simulation")

    @property
    def rows(self) -> list[list[Any]]:
        """One row for each figure."""
        return [
            ["throughput", self.throughput, self.simulated.throughput],
            ["accelerator busy", percent(self.utilization), percent(self.simulated.utilization)],
        ]

    @property
    def summary(self) -> str:
        """What binds, in one line."""
        return f"{format_quantity(self.throughput)} predicted: {CALLED[self.binding]} binds."


def predict(calibration: Calibration, pipe: Any) -> Prediction:
    """What a pipeline will do here, by the model of mean rates and by the simulation.

    Parameters
    ----------
    calibration : Calibration
        Of the same images, transforms and loader; workers, prefetch, batch size and devices may differ.
    pipe : InputPipeline

    Raises
    ------
    InputError
    """
    if not isinstance(pipe.accelerator, VirtualAccelerator):
        raise InputError(
            f"predict needs the time of a step, got {type(pipe.accelerator).__name__}. "
            "Measure it, and pass a VirtualAccelerator with that step_time."
        )
    return Prediction(
        step=_pipeline(calibration, pipe).solve(),
        simulated=simulate(_loader(calibration, pipe), batches=420, replicas=16, warm_up=20),
    )


def _handover(calibration: Calibration, pipe: Any) -> float:
    """Milliseconds for a batch of the pipeline's size: handing over follows the bytes."""
    return calibration.handover_time.m_as("ms") * pipe.batch_size / calibration.batch_size


def _pipeline(calibration: Calibration, pipe: Any) -> Pipeline:
    inline = pipe.worker_count == 0
    devices: dict[str, Any] = {}
    if pipe.storage is not None:
        devices = {"storage": pipe.storage.bandwidth, "read_wait": pipe.storage.latency}
    if pipe.link is not None:
        sent = calibration.sent_size
        rate = pipe.batch_size * sent.m_as("B") / pipe.link.copy_time(pipe.batch_size * sent.m_as("B"))
        waits = not pipe.link.overlapped or pipe.accelerator.in_flight == 1
        devices |= {"link": Q_(rate, "B/s"), "sent_size": sent, "copy_overlaps": not waits}
    return Pipeline(
        batch_size=pipe.batch_size,
        accelerator_rate=Q_(pipe.batch_size / pipe.accelerator.step_time.m_as("s"), "img/s"),
        sample_size=pipe.samples.mean_size,
        workers=max(pipe.worker_count, 1),
        cpu_time=calibration.cpu_time,
        handover_time=Q_(_handover(calibration, pipe), "ms"),
        cores=calibration.cores,
        # A loop that prepares by itself and waits for each step does one thing after the other.
        overlap=not (inline and pipe.accelerator.in_flight == 1),
        assumptions=TUTORIAL.but(name="this machine", contention=calibration.contention),
        **devices,
    )


def _loader(calibration: Calibration, pipe: Any) -> Loader:
    workers = pipe.worker_count
    # The simulation stretches work past the cores, and the calibration knows what happens below.
    crowd = 1 + calibration.contention * (min(max(workers, 1), calibration.cores) - 1)
    own = pipe.batch_size * calibration.cpu_time.m_as("ms") + _handover(calibration, pipe)
    batch_bytes = pipe.batch_size * calibration.sent_size.m_as("B")
    storage, link = pipe.storage, pipe.link
    stored = pipe.batch_size * pipe.samples.mean_size.m_as("B")
    return Loader(
        step_time=pipe.accelerator.step_time,
        in_flight=pipe.accelerator.in_flight,
        prepare_time=Q_(own * crowd, "ms"),
        batch_size=pipe.batch_size,
        workers=workers,
        prefetch=pipe.prefetch,
        in_order=pipe.in_order,
        copy_time=Q_(0.0 if link is None else 1e3 * link.copy_time(batch_bytes), "ms"),
        copy_overlaps=link is None or link.overlapped,
        read_time=Q_(0.0 if storage is None else 1e3 * stored / storage.bandwidth.m_as("B/s"), "ms"),
        read_wait=Q_(0.0 if storage is None else pipe.batch_size * storage.latency.m_as("ms"), "ms"),
        cores=calibration.cores,
        jitter=calibration.jitter,
    )


@dataclass(frozen=True, repr=False)
class Comparison(TableRepr):
    """A measurement beside what was predicted.

    Attributes
    ----------
    record : Record
    prediction : Prediction
    """

    record: Record
    prediction: Prediction

    @property
    def error(self) -> float:
        """Predicted over measured throughput, less one, by the model."""
        return float((self.prediction.throughput / self.record.throughput).m_as("")) - 1

    @property
    def simulated_error(self) -> float:
        """The same by the simulation."""
        return float((self.prediction.simulated.throughput / self.record.throughput).m_as("")) - 1

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("figure", "measured", "model", "simulation")

    @property
    def rows(self) -> list[list[Any]]:
        """One row for each figure."""
        seen, told = self.record, self.prediction
        return [
            ["throughput", seen.throughput, told.throughput, told.simulated.throughput],
            ["off by", "", f"{self.error:+.1%}", f"{self.simulated_error:+.1%}"],
            *(
                [name, *(percent(getattr(each, field)) for each in (seen, told, told.simulated))]
                for name, field in (("accelerator busy", "utilization"), ("accelerator waits", "stall"))
            ),
        ]

    @property
    def summary(self) -> str:
        """How far off, in one line."""
        return (
            f"{format_quantity(self.record.throughput)} measured, "
            f"{format_quantity(self.prediction.throughput)} predicted ({self.error:+.1%})."
        )


def compare(record: Record, prediction: Prediction) -> Comparison:
    """Put a measurement and a prediction side by side."""
    return Comparison(record, prediction)
