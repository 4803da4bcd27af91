"""All times of one training loop, and what was found in them.

`watch` fills it from the loop itself, and the callbacks from the hooks of their framework.
"""

from __future__ import annotations

import numpy as np

from ..measure.training_step import Cuda, cuda_in_use
from ..units import Q_
from .cpu import PrepareCpu
from .device import DeviceTimes
from .finding import JobFinding
from .probe import Probe
from .waits import Mean, Waits, share_of, without_interruptions

RECENT = 1000  # batches that the line speaks of


class LoopTimes:
    """The waits of a loop, those of its GPU, and how many batches were ready.

    Parameters
    ----------
    batch_size, workers : int or None
        As given; `learn` finds what is not.
    cuda : Cuda, optional
        In place of `torch.cuda`.
    probe : Probe, optional
        Times the stages of the loader as well.
    """

    def __init__(
        self,
        *,
        batch_size: int | None,
        workers: int | None,
        cuda: Cuda | None = None,
        probe: Probe | None = None,
    ) -> None:
        self.probe = probe
        self.batch_size, self.workers, self.cuda = batch_size, workers, cuda
        self.waits, self.ready, self.cpu = Waits(), Mean(), PrepareCpu()
        self._device: DeviceTimes | None = None

    def learn(self, loader: object) -> None:
        """Take from a loader like PyTorch's what is not known yet: its batch size and its workers."""
        sampler = getattr(loader, "batch_sampler", None)
        size = getattr(loader, "batch_size", None) or getattr(sampler, "batch_size", None)
        workers = getattr(loader, "num_workers", None)
        if self.batch_size is None and isinstance(size, int):
            self.batch_size = size
        if self.workers is None and isinstance(workers, int):
            self.workers = workers

    def device(self) -> DeviceTimes | None:
        """The times of the GPU, from the moment on that the program works with one."""
        if self._device is None and (cuda := self.cuda or cuda_in_use()) is not None:
            self._device = DeviceTimes(cuda)
        return self._device

    def finding(self) -> JobFinding:
        """What was found so far."""
        waits, steps = self.waits.pairs()
        burst = max(self.workers or 1, 1)
        ordinary = without_interruptions(steps)
        gpu = None
        if self._device is not None:
            idle, apart = self._device.times()
            if len(apart):
                gpu = share_of(idle, apart, without_interruptions(apart), burst)
                # The GPU's own times tell which step is long: those of the loop hold its waits for the GPU.
                ordinary = np.ones(len(steps), dtype=bool)
        host = share_of(waits, waits + steps, ordinary, burst)
        counted = gpu or host
        total = float(np.sum((waits + steps)[ordinary]))
        rate = host.counted / total if total else 0.0
        middle, high, highest = 1e3 * np.percentile(waits, [50, 95, 99]) if len(waits) else (0.0, 0.0, 0.0)
        return JobFinding(
            host_wait=host.value,
            interval=host.interval,
            stall=gpu.value if gpu else None,
            stall_interval=gpu.interval if gpu else None,
            batches=self.waits.batches,
            counted=counted.counted,
            wait_p50=Q_(float(middle), "ms"),
            wait_p95=Q_(float(high), "ms"),
            wait_p99=Q_(float(highest), "ms"),
            batch_rate=Q_(rate, "1/s"),
            step_time=Q_(1e3 * float(np.mean(steps[ordinary])), "ms") if host.counted else None,
            prepare_cpu=self.cpu.share,
            prepare_queued=self.cpu.queued_share,
            loop_cpu=self._loop_cpu(host.value),
            throughput=Q_(rate * self.batch_size, "img/s") if self.batch_size else None,
            first_waits=tuple(Q_(1e3 * wait, "ms") for wait in self.waits.first),
            interruptions=counted.interruptions,
            interrupted=Q_(counted.interrupted, "s"),
            queue_depth=self.ready.value,
            workers=self.workers,
            batch_size=self.batch_size,
            stages=self.probe.costs() if self.probe else None,
            asynchronous=gpu is None and cuda_in_use() is not None,
        )

    def _loop_cpu(self, host_wait: float) -> float | None:
        cores = self.cpu.loop_share
        if cores is None or self.workers != 0 or not self.cpu.passed:
            return cores
        # Without workers its own process prepares, while the loop waits for that.
        return max(cores - host_wait * self.cpu.busy / self.cpu.passed, 0.0)

    def line(self, ready: int | None = None) -> str:
        """The recent batches in one line."""
        waits, steps = self.waits.pairs(RECENT)
        total = float(np.sum(waits + steps))
        if not total:
            return ""
        parts = [f"{waits.sum() / total:.0%} waiting"]
        if self.batch_size:
            parts.append(f"{len(waits) * self.batch_size / total:.4g} samples/s")
        middle, high, highest = 1e3 * np.percentile(waits, [50, 95, 99])
        parts.append(f"waits {middle:.3g}, {high:.3g}, {highest:.3g} ms (50, 95, 99 %)")
        return ", ".join(parts if ready is None else [*parts, f"{ready} ready"])


def ready_batches(source: object) -> int | None:
    """Batches that wait for the loop, where PyTorch's own iterator keeps them in a queue."""
    queue = getattr(source, "_data_queue", None)
    if queue is None:
        return None
    try:
        waiting: int = queue.qsize()
    except NotImplementedError:  # on macOS
        return None
    # Of a batch that arrived before its turn the iterator keeps the worker and the data, else the worker.
    return waiting + sum(len(task) > 1 for task in getattr(source, "_task_info", {}).values())
