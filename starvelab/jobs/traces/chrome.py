"""The events of a trace in Chrome's JSON format, one by one: a trace never stands in memory whole.

`kineto` says what an event means.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from ...errors import InputError

# Any: whatever JSON holds.
Event: TypeAlias = dict[str, Any]

CHUNK = 1 << 20  # characters that are read at once
MAX_EVENT = 64 << 20  # characters; no event is that long, so what does not end by then is no JSON
GZIP = b"\x1f\x8b"


def events(path: Path) -> Iterator[Event]:
    """Each event of a trace, and before them one for what stands in the file beside them, under `"beside"`.

    Raises
    ------
    InputError
        If the file is no such trace, or damaged.
    """
    with path.open("rb") as raw:
        is_packed = raw.read(2) == GZIP
    try:
        with (gzip.open if is_packed else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            yield from _Reader(file, path).events()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"A compressed trace must be whole, and {path} is not: {error}. Let the profiler write it again, "
            "or copy it again."
        ) from error


class _Reader:
    """A window on the text of a file, in which values are decoded one after the other."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self.file, self.path = file, path
        self.text, self.place, self.ended = "", 0, False
        # Traces hold paths of Windows and names of kernels with control characters in them.
        self.decoder = json.JSONDecoder(strict=False)
        self.count = 0

    def events(self) -> Iterator[Event]:
        """What stands beside the events, and then each of them."""
        opening = self._next_character()
        if opening == "{":
            yield {"beside": self._to_events()}
        elif opening == "[":  # a bare list, the other form of the format
            yield {"beside": {}}
        else:
            raise self._foreign("it does not begin like JSON")
        while True:
            character = self._next_character()
            if character == "]":
                return
            if character == ",":
                continue
            self.place -= 1
            event = self._value()
            if not isinstance(event, dict):
                raise self._foreign("its list holds something else than events")
            self.count += 1
            yield event

    def _to_events(self) -> Event:
        """Read on until the list of events begins; what stands before it."""
        beside = {}
        while True:
            character = self._next_character()
            if character == "}":
                raise self._foreign("it has no traceEvents")
            if character == ",":
                continue
            self.place -= 1
            name = self._value()
            if not isinstance(name, str) or self._next_character() != ":":
                raise self._foreign("it is no JSON")
            if name != "traceEvents":
                beside[name] = self._value()
            elif self._next_character() == "[":
                return beside
            else:
                raise self._foreign("its traceEvents are no list")

    def _next_character(self) -> str:
        """The next character that is no space."""
        while True:
            while self.place < len(self.text):
                character = self.text[self.place]
                self.place += 1
                if not character.isspace():
                    return character
            if not self._more():
                raise self._cut_off()

    def _value(self) -> object:
        self._next_character()
        self.place -= 1
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.place)
            except json.JSONDecodeError as error:
                if len(self.text) - self.place > MAX_EVENT:
                    raise self._foreign(f"it is no JSON: {error.msg}") from error
                if not self._more():
                    raise self._cut_off() from error
                continue
            # A number at the very end may go on in the next chunk.
            if end == len(self.text) and self._more():
                continue
            self.place = end
            return value

    def _more(self) -> bool:
        chunk = self.file.read(CHUNK)
        self.text, self.place = self.text[self.place :] + chunk, 0
        return bool(chunk)

    def _cut_off(self) -> InputError:
        return InputError(
            f"A trace must be whole, and {self.path} ends or breaks off after {self.count} events. Let the "
            "profiler write it again: it writes the end when the program leaves its `with` block."
        )

    def _foreign(self, why: str) -> InputError:
        return InputError(
            "read_trace reads traces of PyTorch's profiler (export_chrome_trace) and exports of Nsight "
            f"Systems to SQLite, and {self.path} is neither: {why}. Pass one of these."
        )
