"""Data that is pickled for processes that start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import reduction
from typing import Any

from starvelab.units import Q_, Quantity, data_size


class Pickled:
    """What is pickled for processes that start: no fork needs it, and each other process needs all of it."""

    def __init__(self) -> None:
        self.seconds, self.bytes = 0.0, 0  # in all, and for the process that got most

    def add(self, more: Pickled) -> None:
        """Count what another one counted."""
        self.seconds, self.bytes = self.seconds + more.seconds, max(self.bytes, more.bytes)

    @property
    def found(self) -> tuple[Quantity, Quantity] | None:
        """The two with their units; None where nothing was pickled."""
        return (Q_(1e3 * self.seconds, "ms"), data_size(self.bytes)) if self.seconds else None

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is pickled while this lasts."""
        original = reduction.dump

        def dump(obj: object, file: Any, protocol: int | None = None) -> None:  # Any: a file or a pipe
            begun, before = time.perf_counter(), file.tell() if file.seekable() else 0
            original(obj, file, protocol)
            self.seconds += time.perf_counter() - begun
            self.bytes = max(self.bytes, file.tell() - before if file.seekable() else 0)

        reduction.dump = dump
        try:
            yield
        finally:
            reduction.dump = original
