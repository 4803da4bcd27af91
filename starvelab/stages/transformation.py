"""Preparing samples on the CPU: decode, crop, augment, normalise.

It knows a rate per worker and how workers scale; not what the transforms are, nor where bytes come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..assumptions import supply_rate
from ..errors import InputError
from ..units import Q_, has_dimension, positive, whole
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
    """The CPU workers: preparing a batch takes its size over what all workers supply together.

    Parameters
    ----------
    assumptions : Assumptions
        `worker_rate`, `contention` and `coherency` are used when workers are counted.

    Notes
    -----
    A rate in bytes per second says that cost follows the stored size. It follows the pixels: a rate in images
    per second is the safer figure. Stops being true past the physical cores of the host, which it does not
    know, and where single slow samples hold up whole batches.

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
        figure: Any = positive,
    ) -> Cost:
        """Preparation time of a batch."""
        if (cpu_throughput is None) == (workers is None):
            came = "neither" if workers is None else "both"
            raise InputError(
                f"The CPU's supply is cpu_throughput or a number of workers, got {came}. Pass one of them."
            )
        if cpu_throughput is not None and worker_rate is not None:
            raise InputError(
                "worker_rate goes with workers, got it with cpu_throughput. Pass workers=... instead."
            )
        if workers is None:
            what, speedup = "cpu_throughput", 1
            rate = supply_rate(cpu_throughput, what)
        else:
            what, speedup = "worker_rate", self.assumptions.speedup(whole(workers, "workers"), figure)
            rate = supply_rate(self.assumptions.worker_rate if worker_rate is None else worker_rate, what)
        if has_dimension(rate, "sample/s"):
            return Cost((Line(0, 1 / (figure(rate, "sample/s", what) * speedup)),))
        if sample_size is None:
            raise InputError(
                f"A {what} in bytes needs the size of a sample, got none. Pass it, or a rate in img/s."
            )
        size = figure(sample_size, "B", "sample_size")
        return Cost((Line(0, size / (figure(rate, "B/s", what) * speedup)),))
