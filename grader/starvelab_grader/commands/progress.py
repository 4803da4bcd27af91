"""A bar on the terminal which says, when nothing finishes, who is still worked on and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tqdm import tqdm

from ..text import shown

DELAY = 1.0  # seconds before there is a bar
STILL_AFTER = 5.0  # seconds in which nothing has finished


@contextmanager
def progress(what: str, total: int, unit: str, busy: Collection[str] = ()) -> Iterator[Callable[[], None]]:
    """Show a bar, and give what counts one as done; `busy` holds who is worked on, in their order."""
    last, ended = time.monotonic(), Event()

    def tick() -> None:
        while not ended.wait(1):
            seconds = time.monotonic() - last
            if seconds >= STILL_AFTER:
                names = list(busy)
                more = f" and {len(names) - 1} more" if names[1:] else ""
                who = f" {shown(names[0])[:20]}{more}" if names else ""
                bar.set_postfix_str(f"still {what}{who}, {seconds:.0f} s")
                bar.last_print_t = time.time()  # or tqdm leaves the line as if it had shown none

    def count() -> None:
        nonlocal last
        last = time.monotonic()
        bar.set_postfix_str("", refresh=False)
        bar.update()

    # What fails at once is said alone, where it is all there is to do.
    delay = DELAY if total == 1 else 0.0
    with tqdm(total=total, desc=what, unit=unit, smoothing=0.05, disable=not total, delay=delay) as bar:
        ticking = Thread(target=tick, daemon=True)
        ticking.start()
        try:
            yield count
        finally:
            ended.set()
            ticking.join()
