"""The progress bar of work that has a time budget: it counts seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tqdm.auto import tqdm

from ..host import has_processes

if TYPE_CHECKING:
    from tqdm import std

__all__ = ["time_bar", "tqdm"]

if not has_processes():
    tqdm.monitor_interval = 0  # a thread would watch over the bars, and cannot be started


@contextmanager
def time_bar(seconds: float, *, shown: bool) -> Iterator[std.tqdm[None]]:
    """A bar of so many seconds, updated by those that passed; it goes away when all is done."""
    shape = "{bar} {n:.0f} of {total:.0f} s"
    with tqdm(total=seconds, bar_format=shape, leave=False, disable=not shown) as bar:
        yield bar
        # A notebook keeps a bar that is not full, in red.
        bar.update(max(0.0, seconds - bar.n))
