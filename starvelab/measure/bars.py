"""The progress bar of work that has a time budget.

It counts seconds; what is done in them is written beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm


@contextmanager
def time_bar(seconds: float, *, shown: bool) -> Iterator[Any]:
    """A bar of so many seconds, updated by those that passed; it goes away when all is done."""
    form = "{bar} {n:.0f} of {total:.0f} s"
    with tqdm(total=seconds, bar_format=form, leave=False, disable=not shown) as bar:
        yield bar
        # A notebook keeps a bar that is not full, in red.
        bar.update(max(0.0, seconds - bar.n))
