"""A real GPU behind the interface of the simulated one: a ResNet-50 that trains, timed by CUDA events.

No value is fetched from the GPU on the way, since that would wait for it: the events are read at the end.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ..errors import InputError, MissingValueError
from .devices import check_in_flight
from .protocols import Batch, Passage, Pipeline

if TYPE_CHECKING:
    import torch

PRECISIONS = ("fp32", "tf32", "amp")
CLASSES = 1000
WARM_UP = 5  # steps


@dataclass(frozen=True, kw_only=True)
class CudaAccelerator:
    """A GPU that trains a ResNet-50 on the batches it is given.

    Parameters
    ----------
    precision : {"amp", "tf32", "fp32"}
        amp is autocast to fp16 with gradient scaling.
    in_flight : int or inf
        Steps that may be under way when the loop asks for the next batch; 1 waits for each.
    overlapped : bool
        Copy on a stream of its own, from pinned memory; else on the stream that computes.
    device : int

    Raises
    ------
    InputError
    """

    precision: str = "amp"
    in_flight: float = 2
    overlapped: bool = True
    device: int = 0

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r:.80}. "
                "Pass one of these."
            )
        check_in_flight(self.in_flight)

    def open(self, pipe: Pipeline) -> CudaDevice:
        """The device at work behind that pipeline.

        Raises
        ------
        MissingValueError
            If there is no PyTorch that sees a GPU.
        """
        try:
            import torch

            usable = torch.cuda.is_available()
        except ImportError:
            usable = False
        if not usable:
            raise MissingValueError(
                "CudaAccelerator needs PyTorch and a GPU that it can use, and there is none here. "
                'Use VirtualAccelerator(step_time="30 ms") instead.'
            )
        return CudaDevice(self, pipe)


class CudaDevice:
    """The model on the GPU, its streams, and the events of each batch."""

    def __init__(self, accelerator: CudaAccelerator, pipe: Pipeline) -> None:
        import torch

        from .resnet import resnet50

        self.torch, self.accelerator = torch, accelerator
        self.device = torch.device("cuda", accelerator.device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = (
            accelerator.precision != "fp32"
        )
        torch.backends.cudnn.benchmark = True
        self.model = resnet50(classes=CLASSES).train().to(self.device)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types tensors only
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        amp = accelerator.precision == "amp"
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
        self.autocast = torch.autocast("cuda", torch.float16, enabled=amp)
        self.compute = torch.cuda.current_stream(self.device)
        self.side = self.compute
        if accelerator.overlapped:
            self.side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        self.pinned = pipe.pinned
        self.labels = torch.randint(CLASSES, (pipe.batch_size,), device=self.device)
        self.events: list[tuple[torch.cuda.Event, ...]] = []
        # The end of each step under way, and its batch, whose memory must stay until then.
        self.unfinished: deque[tuple[torch.cuda.Event, Batch]] = deque()
        self.resident: torch.Tensor | None = None

    def warm_up(self, batch: Batch) -> None:
        """The first steps choose algorithms and allocate: they would count as stall."""
        for _ in range(WARM_UP):
            self.take(batch)
        self.events.clear()
        self.unfinished.clear()
        # Where the device's clock and the host's meet.
        self.zero = self._event(self.compute)
        self.zero_at = self.now()

    def _event(self, stream: torch.cuda.Stream) -> torch.cuda.Event:
        event = self.torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(stream)
        return event

    def _train(self, batch: torch.Tensor) -> None:
        images = batch.float().contiguous(memory_format=self.torch.channels_last)
        if batch.dtype == self.torch.uint8:
            images = images / 255 - 0.45
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = self.torch.nn.functional.cross_entropy(self.model(images), self.labels)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def take(self, batch: Batch, *, resident: bool = False) -> None:
        """Order the copy of a batch unless it is `resident`, and a step; returns when the loop may go on."""
        torch = self.torch
        copy_start = copied = self._event(self.side)
        if not resident or self.resident is None:
            host = self.keep(batch)
            with torch.cuda.stream(self.side):
                moved = host.to(self.device, non_blocking=True)
            copied = self._event(self.side)
            self.compute.wait_event(copied)
            moved.record_stream(self.compute)
            self.resident = moved
        start = self._event(self.compute)
        self._train(self.resident)
        end = self._event(self.compute)
        self.events.append((copy_start, copied, start, end))
        self.unfinished.append((end, batch))
        if self.accelerator.in_flight != inf and len(self.unfinished) >= self.accelerator.in_flight:
            self.unfinished.popleft()[0].synchronize()

    def keep(self, batch: Batch) -> torch.Tensor:
        """A batch as the copy wants it: its images, in pinned memory where the pipeline pins."""
        images = self.torch.as_tensor(batch[0] if isinstance(batch, list | tuple) else batch)
        return images.pin_memory() if self.pinned and not images.is_pinned() else images

    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock."""
        self.torch.cuda.synchronize(self.device)
        return time.monotonic()

    def finish(self) -> list[Passage]:
        """Wait for the last step; what happened to each batch."""
        self.torch.cuda.synchronize(self.device)
        return [Passage(*map(self._seconds, events)) for events in self.events]

    def _seconds(self, event: torch.cuda.Event) -> float:
        """When the GPU reached an event, on the monotonic clock."""
        return self.zero_at + float(self.zero.elapsed_time(event)) / 1e3

    def close(self) -> None:
        """Give the memory back."""
        del self.model, self.optimizer, self.resident
        self.torch.cuda.empty_cache()
