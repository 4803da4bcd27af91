"""Preparing samples on the CPU: decode, crop, augment, normalise.

It knows a rate per worker and how workers scale; not what the transforms are, nor where bytes come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..assumptions import TUTORIAL, Assumptions
from ..errors import InputError
from ..units import Q_, Quantity, positive, whole
from .cost import Cost, Line


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
class TransformationModel:
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

    assumptions: Assumptions = TUTORIAL

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
            What all workers supply together; or give `workers` (and `worker_rate`) instead.

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
        cost = self.cost(
            sample_size=sample_size_bytes, cpu_throughput=cpu_throughput, workers=workers, worker_rate=worker_rate
        )
        cpu = cost.at(batch) * 1e3
        device = positive(accelerator_step_time, "ms", "accelerator_step_time")
        step = np.maximum(cpu, device)
        bound = cpu > device
        return TransformationResult(
            Q_(cpu, "ms"),
            Q_(device, "ms"),
            bound if np.ndim(bound) else bool(bound),
            _plain(device / step),
            _plain(step / device),
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
            raise InputError(f"The CPU's supply is either cpu_throughput or a number of workers, got {came}. Pass one of them.")
        if cpu_throughput is not None and worker_rate is not None:
            raise InputError("worker_rate goes with workers, got it with cpu_throughput. Pass workers=... instead.")
        if workers is None:
            rate, what, speedup = cpu_throughput, "cpu_throughput", 1
        else:
            rate, what = self.assumptions.worker_rate if worker_rate is None else worker_rate, "worker_rate"
            speedup = self.assumptions.speedup(whole(workers, "workers"), figure)
        rate = Q_(rate) if isinstance(rate, str) else rate
        if isinstance(rate, Quantity) and rate.is_compatible_with("sample/s"):
            return Cost((Line(0, 1 / (figure(rate, "sample/s", what) * speedup)),))
        if sample_size is None:
            raise InputError(f"A {what} in bytes needs the size of a sample, got none. Pass it, or a rate in img/s.")
        size = figure(sample_size, "B", "sample_size")
        return Cost((Line(0, size / (figure(rate, "B/s", what) * speedup)),))


def _plain(value: Any) -> Any:
    return value if np.ndim(value) else float(value)
