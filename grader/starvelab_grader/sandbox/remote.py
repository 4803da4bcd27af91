"""Functions and values of the student as the checks have them. The functions run in the sandbox."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING

from .channel import Message
from .codec import NAME, Decoder, Encoder, SerializationError
from .shell import time_limit

if TYPE_CHECKING:
    from .notebook_process import NotebookProcess

MAX_TEXT = 4000  # characters of an error, or of one of its frames
MAX_FRAMES = 10


class StudentError(Exception):
    """An error in a student's function, of a type that the checks do not know."""


class Remote:
    """A function of the student, which runs in the sandbox when a check calls it.

    Parameters
    ----------
    process : NotebookProcess
    name : str
    apart : bool
        In place of a function of that name: run a text, in a process in which no cell has run. The text finds
        the names that it is given with it, such as functions of the check, which run beside the check.
    """

    def __init__(self, process: NotebookProcess, name: str, *, apart: bool = False) -> None:
        self._process, self.__name__, self._apart = process, name, apart

    def __call__(self, *args: object, **more: object) -> object:
        """What the student's function returns.

        Raises
        ------
        Exception
            What it raises.
        """
        process = self._process
        encoder = Encoder(refer=process.refer)
        call = {"name": self.__name__, "args": encoder.encode(args), "more": encoder.encode(more)}
        process.channel.send({"ask": "call", "apart": self._apart, **call})
        while "callback" in (reply := process.channel.receive()):
            process.channel.send({"ask": "called", **process.called_back(reply)})
        print(str(reply.get("printed", "")), end="")
        return value_of(reply)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class Unreadable:
    """Stands for a value that cannot be sent."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"<something that no check can read: {self.reason}>"


def value_of(reply: Message) -> object:
    """The value of a reply, or its error raised."""
    if "error" in reply:
        raise error_of(reply["error"])
    if "value" not in reply:
        return Unreadable(str(reply.get("strange", "nothing came"))[:MAX_TEXT])
    try:
        return Decoder().decode(reply["value"])
    except SerializationError as error:
        return Unreadable(str(error))


def error_of(description: object) -> Exception:
    """An error as it was described: of Python's own type of that name, or of a new type with that name."""
    fields = description if isinstance(description, dict) else {}
    name, message = str(fields.get("type")), str(fields.get("message", ""))[:MAX_TEXT]
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(kind, StopIteration):
        kind = type(name if NAME.fullmatch(name) else "StudentError", (StudentError,), {})
    try:
        error: Exception = kind(message)
    except TypeError:  # some types need more than a message
        error = StudentError(message)
    frames = fields.get("frames")
    texts = [str(frame)[:MAX_TEXT] for frame in frames[:MAX_FRAMES]] if isinstance(frames, list) else []
    error.their_frames = texts  # type: ignore[attr-defined]
    return error


def message_of(error: BaseException) -> str:
    """The message of an error; empty where even that fails."""
    try:
        return str(error)[:MAX_TEXT]
    except Exception:
        return ""


def called(function: Callable[..., object], message: Message) -> Message:
    """The reply to a call of one of the checks' own functions."""
    try:
        decoder = Decoder()
        args, more = decoder.decode(message["args"]), decoder.decode(message["more"])
        assert isinstance(args, tuple)
        assert isinstance(more, dict)
        with time_limit(message["seconds"]):
            return {"value": Encoder().encode(function(*args, **more))}
    except Exception as error:
        return {"error": {"type": type(error).__name__, "message": message_of(error)}}
