"""Data that is pickled for processes that start: no fork needs it, and each other process needs all of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import reduction
from typing import Any


@contextmanager
def timing_pickles(spent: list[float]) -> Iterator[None]:
    """Append the seconds of each pickle for a process that starts while this lasts."""
    original = reduction.dump

    def dump(obj: object, file: Any, protocol: int | None = None) -> None:  # Any: a file or a pipe
        begun = time.perf_counter()
        original(obj, file, protocol)
        spent.append(time.perf_counter() - begun)

    reduction.dump = dump
    try:
        yield
    finally:
        reduction.dump = original
