"""Messages between a grader and a runner: JSON with its length before it, over a pair of pipes.

Whoever is at the other end may be silent, too loud, or gone: each is an error of its own, within its time.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

from ...errors import StarvelabError

LONGEST = 8_000_000  # bytes of a message
MAX_DIGITS = 1000  # of a whole number in a message; what crosses as a value has fewer
HEAD = struct.Struct(">I")


class ChannelError(StarvelabError):
    """The other end cannot be talked to any more."""


class SilentError(ChannelError):
    """Nothing came in time."""


class ClosedError(ChannelError):
    """The other end is gone."""


class UnreadableError(ChannelError):
    """What came is too long, or no message."""


class TooLongError(ChannelError):
    """What was to be sent is too long to be read at the other end; not a byte of it was sent."""


class Channel:
    """One end.

    Parameters
    ----------
    source, sink : int
        File descriptors to read from and to write to.
    clock : callable
        Tells the seconds by which the other end may be late. It may stand still for a while.
    """

    def __init__(self, source: int, sink: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.source, self.sink, self.clock = source, sink, clock
        for end in (source, sink):
            os.set_blocking(end, False)

    def send(self, message: dict[str, Any], seconds: float | None = None) -> None:
        """Write a message.

        Raises
        ------
        TooLongError, SilentError, ClosedError
        """
        body = json.dumps(message).encode()
        if len(body) > LONGEST:
            raise TooLongError(f"A message has at most {LONGEST} bytes, and this one has {len(body)}.")
        data, deadline = memoryview(HEAD.pack(len(body)) + body), self._deadline(seconds)
        while data:
            self._wait([], [self.sink], deadline)
            try:
                data = data[os.write(self.sink, data[: 1 << 16]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise ClosedError("The other end is gone.") from error

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        """Read a message, and not a byte more.

        Raises
        ------
        ChannelError
        """
        deadline = self._deadline(seconds)
        (length,) = HEAD.unpack(self._read(HEAD.size, deadline))
        if length > LONGEST:
            raise UnreadableError(f"A message has at most {LONGEST} bytes, and this one announces {length}.")
        try:
            message = json.loads(self._read(length, deadline), parse_int=_short_int)
        # Nesting as deep as Python's own stack is no message either, nor is a number of a million digits.
        except (ValueError, RecursionError) as error:
            raise UnreadableError(f"What came is no message: {type(error).__name__}.") from error
        if not isinstance(message, dict):
            raise UnreadableError("What came is no message: a mapping is expected.")
        return message

    def _read(self, length: int, deadline: float | None) -> bytes:
        parts, missing = [], length
        while missing:
            self._wait([self.source], [], deadline)
            try:
                part = os.read(self.source, min(missing, 1 << 16))
            except BlockingIOError:
                continue
            if not part:
                raise ClosedError("The other end is gone.")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _wait(self, readable: list[int], writable: list[int], deadline: float | None) -> None:
        left = None if deadline is None else max(0.0, deadline - self.clock())
        while not any(select.select(readable, writable, [], left)):
            left = max(0.0, deadline - self.clock())
            if left == 0.0:
                raise SilentError("Nothing came in time.")

    def _deadline(self, seconds: float | None) -> float | None:
        return None if seconds is None else self.clock() + seconds

    def close(self) -> None:
        """Give both ends back."""
        for end in (self.source, self.sink):
            os.close(end)


def _short_int(digits: str) -> int:
    """A whole number of a message. Thousands of the longest that Python reads would take seconds."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number of more than {MAX_DIGITS} digits")
    return int(digits)
