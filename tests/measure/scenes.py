"""Small images, and setups over them whose own work takes no time worth mentioning.

Functions are made inside functions, so that they travel to a worker by value and no worker imports a test.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from starvelab import Pipeline
from starvelab.measure import StoredSource, Transform
from starvelab.measure.devices import VirtualAccelerator
from starvelab.measure.setup import RunSetup

STORED = 1000  # bytes of each


def tiny_samples(home: Path, count: int = 8) -> StoredSource:
    """Files of one size that are no images: most pipelines here do not look at what they read."""
    paths = tuple(home / f"{number}.jpg" for number in range(count))
    for path in paths:
        path.write_bytes(bytes(STORED))
    return StoredSource("tiny", paths)


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
    return {"workers": 0} if loader == "inline" else {"kind": loader}


def pipeline(home: Path, **changes: Any) -> RunSetup:
    """Batches of four, two workers, a step of 5 ms; everything can be changed."""
    usual = {
        "description": Pipeline(hardware="5 ms"), "samples": tiny_samples(home), "transforms": [zeros()],
        "batch_size": 4, "workers": 2, "device": VirtualAccelerator(0.005),
    }  # fmt: skip
    return RunSetup(**usual | changes)


def described(**changes: Any) -> RunSetup:
    """A setup whose samples are only described: batches of 32, two workers, a step of 30 ms."""
    usual = {
        "description": Pipeline(hardware="30 ms"),
        "samples": StoredSource("samples", (b"",), noun=""),
        "transforms": (),
        "batch_size": 32,
        "workers": 2,
        "device": VirtualAccelerator(0.03),
    }
    return RunSetup(**usual | changes)
