"""Small images, and pipelines over them whose own work takes no time worth mentioning.

Functions are made inside functions, so that they travel to a worker by value and no worker imports a test.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from starvelab import Q_
from starvelab.measure import Calibration, ImageSource, InputPipeline, Transform, VirtualAccelerator

STORED = 1000  # bytes of each

# 1 ms a sample, 4 ms a batch of 4.
CALIBRATION = Calibration(
    loader="threads", batch_size=4, cpu_time=Q_(1, "ms"), handover_time=Q_(0.4, "ms"),
    stage_times={"read": Q_(0.2, "ms"), "blank": Q_(0.8, "ms")}, transfer_size=Q_(48, "B"), cores=2,
    contention=0.0, jitter=0.0,
)  # fmt: skip


def tiny_samples(home: Path, count: int = 8) -> ImageSource:
    """Files of one size that are no images: most pipelines here do not look at what they read."""
    paths = tuple(home / f"{number}.jpg" for number in range(count))
    for path in paths:
        path.write_bytes(bytes(STORED))
    return ImageSource("tiny", paths)


def images(home: Path, *sides: int) -> Path:
    """A folder of gray squares."""
    home.mkdir(exist_ok=True)
    for number, side in enumerate(sides):
        Image.new("RGB", (side, side), "gray").save(home / f"{number}.png")
    return home


def zeros() -> Transform:
    """A transform that makes the same small array of anything."""

    def blank(raw: Any) -> np.ndarray:
        return np.zeros((3, 4, 4), np.uint8)

    return Transform("blank", blank)


def after(calls: int, act: Callable[[], Any]) -> Transform:
    """A transform that does something else from its call number `calls` on, counted in each worker."""
    seen = []

    def work(raw: Any) -> np.ndarray:
        seen.append(1)
        if len(seen) > calls:
            act()
        return np.zeros((3, 4, 4), np.uint8)

    return Transform("trick", work)


def kind(loader: str) -> dict[str, Any]:
    """The fields that say so: "inline" stands for the training loop itself."""
    return {"workers": 0} if loader == "inline" else {"loader": loader}


def pipeline(home: Path, **changes: Any) -> InputPipeline:
    """Batches of four, two workers, a step of 5 ms; everything can be changed."""
    usual = {
        "samples": tiny_samples(home),
        "transforms": [zeros()],
        "batch_size": 4,
        "accelerator": VirtualAccelerator(step_time="5 ms"),
    }
    return InputPipeline(**usual | changes)
