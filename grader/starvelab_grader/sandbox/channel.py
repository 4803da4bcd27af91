"""Messages between a grader and a runner: JSON with its length before it, over a pair of pipes.

The other end may be silent, send too much, or be closed: an error says so in time.
"""

import json
import math
import os
import select
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from ..errors import GraderError

# An object of JSON: the type of a value depends on the question, and each reader checks what it needs.
Message: TypeAlias = dict[str, Any]

MAX_MESSAGE = 8_000_000  # bytes
HEADER = struct.Struct(">I")
CHUNK = 1 << 16  # bytes


class ChannelError(GraderError):
    """No more messages can be sent or received."""


class MessageTooLongError(ChannelError):
    """A message is longer than the other end reads. No byte of it was sent."""


class Channel:
    """Two ends of pipes, to read from and to write to, with a clock for timeouts, which may stand still."""

    def __init__(self, source: int, sink: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.source, self.sink, self.clock = source, sink, clock
        for end in (source, sink):
            os.set_blocking(end, False)

    def send(self, message: Message, seconds: float = math.inf) -> None:
        """Write a message, or raise a `ChannelError`."""
        body, deadline = json.dumps(message).encode(), self.clock() + seconds
        if len(body) > MAX_MESSAGE:
            text = f"A message has at most {MAX_MESSAGE} bytes, and this one has {len(body)}."
            raise MessageTooLongError(text)
        data = memoryview(HEADER.pack(len(body)) + body)
        while data:
            self._wait([], [self.sink], deadline)
            try:
                with suppress(BlockingIOError):
                    data = data[os.write(self.sink, data[:CHUNK]) :]
            except BrokenPipeError as error:
                raise ChannelError("The other end is gone.") from error

    def receive(self, seconds: float = math.inf) -> Message:
        """Read a message, and not a byte more, or raise a `ChannelError`."""
        deadline = self.clock() + seconds
        (length,) = HEADER.unpack(self._read(HEADER.size, deadline))
        if length > MAX_MESSAGE:
            raise ChannelError(f"A message has at most {MAX_MESSAGE} bytes, and this one announces {length}.")
        try:
            message = json.loads(self._read(length, deadline))
        # Nesting as deep as Python's own stack is no message either, nor is a number of a million digits.
        except (ValueError, RecursionError) as error:
            raise ChannelError(f"What was received is no message: {type(error).__name__}.") from error
        if not isinstance(message, dict):
            raise ChannelError("What was received is no message: it must be a mapping.")
        return message

    def _read(self, length: int, deadline: float) -> bytes:
        read = bytearray()
        while missing := length - len(read):
            self._wait([self.source], [], deadline)
            with suppress(BlockingIOError):
                part = os.read(self.source, min(missing, CHUNK))
                if not part:
                    raise ChannelError("The other end is gone.")
                read += part
        return bytes(read)

    def _wait(self, readable: list[int], writable: list[int], deadline: float) -> None:
        left = math.inf
        while left > 0:
            left = max(0.0, deadline - self.clock())
            if any(select.select(readable, writable, [], None if left == math.inf else left)):
                return
        raise ChannelError("Nothing came in time.")

    def close(self) -> None:
        """Close both pipes."""
        for end in (self.source, self.sink):
            os.close(end)
