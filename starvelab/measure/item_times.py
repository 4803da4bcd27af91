"""Where a dataset's own time goes: reading files, decoding, or something else.

Python's profiler knows each function of C by its name. It watches one item of many, since it slows what it
watches, and not the first, for which modules are loaded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import cProfile

READ, DECODE = "read", "decode"
EVERY, FIRST = 16, 1  # of so many items one is watched, from this one on

# Opening files and reading them, in the names that the profiler gives; not what is read from memory.
_READS = re.compile(
    r"_io\.(?!BytesIO|StringIO)|(posix|nt)\.(open|read|pread|stat|lstat|scandir|listdir)\b|fromfile|mmap"
)
# Decoders of Pillow, OpenCV and torchvision, and what unpacks compressed bytes.
_DECODES = re.compile(r"ImagingDecoder|imdecode|decode_(image|jpeg|png|webp|gif)|decompress|'zlib\.|_zstd")


class ItemTimes:
    """Shares of reading and of decoding in the time of the items that were watched."""

    def __init__(self) -> None:
        self.items = 0
        self.spent = {READ: 0.0, DECODE: 0.0}
        self.whole = 0.0
        self.profile: cProfile.Profile | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """One item; whether it is watched is decided here."""
        self.profile = self._begun() if self.items % EVERY == FIRST else None
        self.items += 1
        try:
            yield
        finally:
            if self.profile is not None:
                self.profile.disable()

    @staticmethod
    def _begun() -> cProfile.Profile | None:
        """A profiler at work; none where the program has one already, of which there can be one only."""
        if sys.getprofile() is not None:
            return None
        import cProfile  # loaded here: few who import this package diagnose a dataset

        profile = cProfile.Profile()
        try:
            profile.enable()
        except ValueError:
            return None
        return profile

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What runs meanwhile does not count."""
        if self.profile is None:
            yield
            return
        self.profile.disable()
        try:
            yield
        finally:
            self.profile.enable()

    def split(self, seconds: float) -> dict[str, float]:
        """The seconds of reading and of decoding in those that the last item took of its own."""
        if self.profile is not None:
            for entry in self.profile.getstats():
                # Functions of Python are given as their code; only those of C have a text.
                part = part_of(entry.code) if isinstance(entry.code, str) else ""
                if part:
                    self.spent[part] += entry.totaltime
            self.whole += seconds
            self.profile = None
        known = max(self.whole, sum(self.spent.values()))
        return {part: seconds * spent / known if known > 0 else 0.0 for part, spent in self.spent.items()}


def part_of(function: str) -> str:
    """Whether a function of C reads or decodes, by its name; empty where it does neither."""
    if _DECODES.search(function):
        return DECODE
    return READ if _READS.search(function) else ""
