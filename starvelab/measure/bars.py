"""The progress bar of work that has a time budget.

It counts seconds; what is done in them is written beside it.
"""

from __future__ import annotations

from typing import Any

from tqdm.auto import tqdm


def time_bar(seconds: float, *, shown: bool) -> Any:
    """A bar of so many seconds, to be updated by those that have passed; it goes away when they have."""
    form = "{bar} {n:.0f} of {total:.0f} s"
    return tqdm(total=seconds, bar_format=form, ncols=60, leave=False, disable=not shown)
