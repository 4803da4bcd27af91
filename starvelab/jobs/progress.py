"""The line of `watch`: a bar in a terminal or a notebook, and a line each minute in a log file."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm.auto import tqdm

from ..runtime import shell

INTERVAL = 60.0  # seconds between two lines


class LogLines:
    """A line each minute in place of a bar, with what is needed here of a bar's interface."""

    def __init__(self, total: int | None) -> None:
        self.of = "" if total is None else f" of {total}"
        self.n, self.text, self.last = 0, "", time.monotonic()

    def set_postfix_str(self, text: str, **_: bool) -> None:
        """Set what the next line says."""
        self.text = text

    def update(self, batches: int) -> None:
        """Count batches, and write a line if it is time."""
        self.n += batches
        if time.monotonic() - self.last >= INTERVAL:
            self.last = time.monotonic()
            print(f"watch: {self.n}{self.of} batches, {self.text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End without a line: what was found follows."""


def progress_of(total: int | None) -> Any:  # Any: tqdm brings no types
    """Return a bar where one can be seen, and lines for a log file elsewhere."""
    if sys.stderr.isatty() or shell() is not None:
        return tqdm(total=total, desc="watch", unit="batch")
    return LogLines(total)
