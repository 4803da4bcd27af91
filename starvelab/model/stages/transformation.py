"""Preparing samples on the CPU: decode, crop, augment, normalise.

It knows what a sample costs one worker, how workers scale and how many cores they have; not what the
transforms are, nor where bytes come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ...units import Q_, has_dimension, positive, whole
from ..assumptions import fewer, supply_rate
from .cost import Cost, Line, longer, plain
from .stage import Stage


@dataclass(frozen=True)
class TransformationResult:
    """The answer of `TransformationModel.solve`.

    Attributes
    ----------
    transform_time, accelerator_step_time : quantity [time]
    is_bottleneck : bool or array
        Whether the CPU takes longer than the accelerator; a tie is no bottleneck.
    accelerator_utilization : float or array
        Busy share of a step, 0 to 1.
    slowdown_factor : float or array
        Step time over the accelerator's own.
    """

    transform_time: Any
    accelerator_step_time: Any
    is_bottleneck: Any
    accelerator_utilization: Any
    slowdown_factor: Any


@dataclass(frozen=True)
class TransformationModel(Stage):
    """The CPU workers: a batch takes what it costs one of them over how many, or how many cores, there are.

    Parameters
    ----------
    assumptions : Assumptions
        `worker_rate`, `contention` and `coherency` are used when workers are counted.

    Notes
    -----
    A rate in bytes per second says that cost follows the stored size. It follows the pixels: a rate in images
    per second is the safer figure. With ``c`` the CPU time of a sample, ``h`` the hand-over of a batch, ``r``
    the wait for a read, ``n`` workers of which ``m = min(n, cores)`` can be at work, and ``S`` their speed-up
    over one, a batch of ``b`` takes ``max((c b + h) / S(m), (c b + h) / S(n) + r b / n)``: the cores bind, or
    the workers, who wait as well. Stops being true where single slow samples hold up whole batches.

    References
    ----------
    Bachkaniwala et al., IISWC 2024 (Lotus), Table II and section V-D, for measured rates and scaling.
    """

    def solve(
        self,
        *,
        batch_size: Any,
        accelerator_step_time: Any,
        sample_size_bytes: Any = None,
        cpu_throughput: Any = None,
        workers: Any = None,
        worker_rate: Any = None,
    ) -> TransformationResult:
        """Set the time to prepare a batch beside the accelerator's time to use it.

        Parameters
        ----------
        batch_size : int or array
        accelerator_step_time : quantity [time]
        sample_size_bytes : quantity [data]
            Stored size of one sample; not needed for a rate in samples.
        cpu_throughput : quantity [data/time] or [sample/time]
            What all workers supply together.
        workers : int or array
            In place of `cpu_throughput`: how many workers there are.
        worker_rate : quantity [data/time] or [sample/time]
            What one of them prepares alone; that of the assumptions unless given.

        Raises
        ------
        InputError

        Examples
        --------
        >>> from starvelab import Q_
        >>> wall = TransformationModel().solve(batch_size=64, sample_size_bytes=Q_("500 KB"),
        ...     cpu_throughput=Q_("2 GB/s"), accelerator_step_time=Q_("8 ms"))
        >>> wall.transform_time.to("ms").magnitude, wall.accelerator_utilization, wall.is_bottleneck
        (16.0, 0.5, True)
        """
        batch = whole(batch_size, "batch_size")
        if sample_size_bytes is not None:
            positive(sample_size_bytes, "B", "sample_size_bytes")
        cost = self.cost(
            sample_size=sample_size_bytes,
            cpu_throughput=cpu_throughput,
            workers=workers,
            worker_rate=worker_rate,
        )
        cpu = cost.at(batch) * 1e3
        device = positive(accelerator_step_time, "ms", "accelerator_step_time")
        step = np.maximum(cpu, device)
        return TransformationResult(
            transform_time=Q_(cpu, "ms"),
            accelerator_step_time=Q_(device, "ms"),
            is_bottleneck=longer(cpu, device),
            accelerator_utilization=plain(device / step),
            slowdown_factor=plain(step / device),
        )

    def cost(
        self,
        *,
        sample_size: Any = None,
        cpu_throughput: Any = None,
        workers: Any = None,
        worker_rate: Any = None,
        cpu_time: Any = None,
        cores: Any = None,
        read_wait: Any = None,
        handover_time: Any = None,
        figure: Any = positive,
    ) -> Cost:
        """Preparation time of a batch.

        Parameters
        ----------
        sample_size, cpu_throughput, workers, worker_rate
            As for `solve`.
        cpu_time : quantity [time]
            In place of `worker_rate`: CPU time that one worker takes for a sample, alone.
        cores : int or array
            Physical cores that the workers may use; one for each worker unless given.
        read_wait : quantity [time]
            For each sample: how long its worker waits for storage, using no core.
        handover_time : quantity [time]
            For each batch: what its worker spends on joining and handing it over, using a core.
        figure : callable
            `units.positive` for floats, `units.exact` for fractions.
        """
        if (cpu_throughput is None) == (workers is None):
            came = "neither" if workers is None else "both"
            raise InputError(
                f"The CPU's supply is cpu_throughput or a number of workers, got {came}. Pass one of them."
            )
        check_supply(
            cpu_throughput=cpu_throughput,
            worker_rate=worker_rate,
            cpu_time=cpu_time,
            cores=cores,
            read_wait=read_wait,
            handover_time=handover_time,
        )
        if workers is None:
            amount, rate = _share(cpu_throughput, "cpu_throughput", sample_size, figure)
            return Cost((Line(0, amount / rate),))
        a, count = self.assumptions, whole(workers, "workers")
        if cpu_time is None:
            given = a.worker_rate if worker_rate is None else worker_rate
            amount, rate = _share(given, "worker_rate", sample_size, figure)
        else:
            amount, rate = figure(cpu_time, "s", "cpu_time"), 1
        joining = 0 if handover_time is None else figure(handover_time, "s", "handover_time", zero=True)

        def work(workers: Any) -> Line:
            speedup = a.speedup(workers, figure)
            return Line(joining / speedup, amount / (rate * speedup))

        on_cores = work(count if cores is None else fewer(count, whole(cores, "cores")))
        if read_wait is None:
            return Cost((on_cores,))
        # A worker that waits leaves its core to others, but prepares nothing else meanwhile.
        waiting = figure(read_wait, "s", "read_wait", zero=True)
        return Cost((on_cores, work(count) + Line(0, waiting / count)))


def check_supply(*, cpu_throughput: Any, worker_rate: Any, **others: Any) -> None:
    """Refuse figures of single workers beside a supply as a whole, and two figures for one worker's speed."""
    of_workers = {"worker_rate": worker_rate, **others}
    given = [name for name, value in of_workers.items() if value is not None]
    if cpu_throughput is not None and given:
        verb, them = ("goes", "it") if len(given) == 1 else ("go", "them")
        raise InputError(
            f"{' and '.join(given)} {verb} with workers, got {them} with cpu_throughput. "
            "Pass workers=... instead."
        )
    if worker_rate is not None and others["cpu_time"] is not None:
        raise InputError(
            "One worker's speed is worker_rate or cpu_time, got both. Pass one of them, None for the other."
        )


def _share(rate: Any, what: str, sample_size: Any, figure: Any) -> tuple[Any, Any]:
    """What a sample takes of a rate: one of its samples, or so many of its bytes."""
    rate = supply_rate(rate, what)
    if has_dimension(rate, "sample/s"):
        return 1, figure(rate, "sample/s", what)
    if sample_size is None:
        raise InputError(
            f"A {what} in bytes needs the size of a sample, got none. Pass it, or a rate in img/s."
        )
    return figure(sample_size, "B", "sample_size"), figure(rate, "B/s", what)
