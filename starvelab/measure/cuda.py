"""A real GPU at work: a ResNet-50 that trains, timed by CUDA events.

No value is fetched from the GPU on the way, since that would wait for it: the events are read at the end.
The network is torchvision's ResNet-50 (v1.5: the stride stands in the 3 x 3 convolution), for timing only.

References
----------
He et al., Deep residual learning for image recognition, CVPR 2016, Table 1.
"""

from __future__ import annotations

import time
from collections import deque
from math import inf

import torch
from torch import Tensor, nn

from .batches import Batch
from .devices import CudaDevice, DeviceRun, Passage

CLASSES = 1000
WARM_UP = 5  # steps
# Blocks and inner channels of the four groups of layers.
GROUPS = ((3, 64), (4, 128), (6, 256), (3, 512))
EXPANSION = 4


class CudaRun(DeviceRun):
    """The model on the GPU, its streams, and the events of each batch."""

    def __init__(self, gpu: CudaDevice, *, batch_size: int, pinned: bool) -> None:
        self.in_flight, self.pinned = gpu.in_flight, pinned
        self.device = torch.device("cuda", gpu.device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = gpu.precision != "fp32"
        torch.backends.cudnn.benchmark = True
        self.model = resnet50(classes=CLASSES).train().to(self.device)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types tensors only
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        amp = gpu.precision == "amp"
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
        self.autocast = torch.autocast("cuda", torch.float16, enabled=amp)
        self.compute = self.side = torch.cuda.current_stream(self.device)
        if gpu.overlapped:
            self.side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        self.labels = torch.randint(CLASSES, (batch_size,), device=self.device)
        self.events: list[tuple[torch.cuda.Event, ...]] = []
        # The end of each step under way, and its batch, whose memory must stay until then.
        self.unfinished: deque[tuple[torch.cuda.Event, Batch]] = deque()
        self.resident: Tensor | None = None

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
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(stream)
        return event

    def _train(self, batch: Tensor) -> None:
        images = batch.float().contiguous(memory_format=torch.channels_last)
        if batch.dtype == torch.uint8:
            images = images / 255 - 0.45
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = nn.functional.cross_entropy(self.model(images), self.labels)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def take(self, batch: Batch, *, resident: bool = False) -> None:
        """Order the copy of a batch unless it is `resident`, and a step; returns when the loop may go on."""
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
        if self.in_flight != inf and len(self.unfinished) >= self.in_flight:
            self.unfinished.popleft()[0].synchronize()

    def keep(self, batch: Batch) -> Tensor:
        """A batch as the copy wants it: its images, in pinned memory where the pipeline pins."""
        images = torch.as_tensor(batch[0] if isinstance(batch, list | tuple) else batch)
        return images.pin_memory() if self.pinned and not images.is_pinned() else images

    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock."""
        torch.cuda.synchronize(self.device)
        return time.monotonic()

    def finish(self) -> list[Passage]:
        """Wait for the last step; what happened to each batch."""
        torch.cuda.synchronize(self.device)
        return [Passage(*map(self._seconds, events)) for events in self.events]

    def _seconds(self, event: torch.cuda.Event) -> float:
        """When the GPU reached an event, on the monotonic clock."""
        return self.zero_at + float(self.zero.elapsed_time(event)) / 1e3

    def close(self) -> None:
        """Give the memory back."""
        del self.model, self.optimizer, self.resident
        torch.cuda.empty_cache()


class Bottleneck(nn.Module):
    """Three convolutions and a way round them."""

    def __init__(self, before: int, inner: int, stride: int) -> None:
        super().__init__()
        after = inner * EXPANSION
        self.body = nn.Sequential(
            *_convolution(before, inner, 1),
            nn.ReLU(inplace=True),
            *_convolution(inner, inner, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(inner, after, 1),
        )
        same = before == after and stride == 1
        self.way_round = nn.Identity() if same else nn.Sequential(*_convolution(before, after, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways, where it is positive."""
        return nn.functional.relu(self.body(x) + self.way_round(x))


def resnet50(*, classes: int = CLASSES) -> nn.Sequential:
    """The network: 25.6 million parameters with a thousand classes."""
    layers: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for group, (blocks, inner) in enumerate(GROUPS):
        for block in range(blocks):
            layers.append(Bottleneck(channels, inner, stride=2 if block == 0 and group > 0 else 1))
            channels = inner * EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def _convolution(before: int, after: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
    return convolution, nn.BatchNorm2d(after)
