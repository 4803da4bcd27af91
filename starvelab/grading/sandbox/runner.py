"""The process that runs cells: one in a sandbox for what a student wrote, one outside for the checks.

It imports once, and forks for each notebook, so that no notebook finds what another left in memory. It is
started by `process`, and takes messages on its standard input.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import gc
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import tee
from pathlib import Path
from typing import Any

from .channel import Channel, ChannelError
from .codec import NAME, Decoder, Encoder, NotPlainError, storable
from .shell import Outputs, Shell, time_limit

WORDS = 4000  # letters of an error, or of one of its frames, that cross
FRAMES = 10


class StudentError(Exception):
    """An error in a student's function, of a type that the checks do not know."""


class Notebook:
    """The cells of one notebook, and what the other side asks of their names.

    Parameters
    ----------
    channel : Channel
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.shell = Shell.instance()
        self.callbacks: list[Callable[..., Any]] = []
        self.theirs: dict[str, object] = {}  # names of the student's that the checks have, and their values
        self.mistakes: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, about: tuple[Any, ...]) -> None:
        if event == "starvelab.lesson.checks.mistake":
            self.mistakes.append(str(about[0])[:WORDS])

    def serve(self) -> None:
        """Answer until the notebook is over."""
        while (message := self.channel.receive())["do"] != "close":
            try:
                reply = self.answer(message)
            except ChannelError:
                raise
            # A question that cannot be answered is answered so; whoever waits must not be left waiting.
            except Exception as error:
                reply = {"error": self.described(error), "failed": True, "outputs": [], "value": None}
            self.channel.send(reply)

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked."""
        tasks = (self.run, self.names, self.bind, self.look, self.call, self.read, self.write)
        return {task.__name__: task for task in tasks}[message["do"]](message)

    # --- cells ----------------------------------------------------------------------------------------

    def run(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Run a cell: its outputs, whether it failed, its value if a number, and mistakes that were named."""
        self.mistakes.clear()
        outputs, error = self.shell.run(message["source"], message.get("seconds"))
        _show_whose(outputs, getattr(error, "their_frames", []))
        return {
            "outputs": _jsonable(outputs),
            "failed": error is not None,
            "value": _number(self.shell.result),
            "mistakes": list(dict.fromkeys(self.mistakes)),
        }

    def bind(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Give names of the student to the checks: values as they are, functions as `Remote`."""
        for name, value in self.theirs.items():
            # A check may have given the name another value, which is its own.
            if self.shell.user_ns.get(name) is value:
                self.shell.user_ns.pop(name, None)
        self.theirs.clear()
        for name, found in message["names"].items():
            if found["kind"] == "function":
                self.shell.user_ns[name] = Remote(self, name)
            elif found["kind"] == "value":
                try:
                    self.shell.user_ns[name] = Decoder().decode(found["value"])
                except NotPlainError as error:
                    self.shell.user_ns[name] = Unreadable(str(error))
            elif found["kind"] == "other":
                self.shell.user_ns[name] = Unreadable(str(found["why"])[:WORDS])
            else:
                continue
            self.theirs[name] = self.shell.user_ns[name]
        return {}

    def names(self, message: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Names that mean something here, but for those that were bound for the student."""
        known = self.shell.user_ns.items()
        here = {name for name, value in known if self.theirs.get(name, self) is not value}
        return {"names": sorted(here | set(dir(builtins)))}

    # --- what the checks ask of the student's side ----------------------------------------------------

    def look(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """What stands behind a name."""
        if message["name"] not in self.shell.user_ns:
            return {"kind": "missing"}
        value = self.shell.user_ns[message["name"]]
        if isinstance(value, Iterator):
            # To look at it must not use it up: the next check looks again.
            self.shell.user_ns[message["name"]], value = tee(value)
        try:
            with time_limit(message.get("seconds")):
                return {"kind": "value", "value": Encoder().encode(value)}
        except Exception as error:
            return {"kind": "function"} if callable(value) else {"kind": "other", "why": str(error)[:WORDS]}

    def call(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Call a function of the student."""
        before, self.shell.outputs = self.shell.outputs, Outputs()
        try:
            with self.shell.captured() as printed:
                reply = self._called(message)
        finally:
            self.shell.outputs = before
        text = "".join(one["text"] for one in printed.entries if one.get("name") == "stdout")
        return {**reply, "printed": text}

    def _called(self, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            decoder = Decoder(call=lambda number: lambda *args, **more: self._back(number, args, more))
            args, more = decoder.decode(message["args"]), decoder.decode(message["more"])
            with time_limit(message.get("seconds")):
                result = self.shell.user_ns[message["name"]](*args, **more)
                # A generator runs, and may fail, only now.
                return {"value": Encoder().encode(result)}
        except NotPlainError as error:
            return {"strange": str(error)[:WORDS]}
        # SystemExit is an answer like any other error.
        except BaseException as error:
            if isinstance(error, ChannelError):
                raise
            return {"error": self.described(error)}

    def described(self, error: BaseException) -> dict[str, Any]:
        """An error as text: its type, its message, and how IPython shows where it happened."""
        try:
            shown = self.shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
        # A student's error may be such that not even showing it works.
        except Exception:
            shown = []
        frames = [str(part)[:WORDS] for part in shown[2:-1] if not _of_the_runner(str(part))]
        return {"type": type(error).__name__[:60], "message": _message(error), "frames": frames[-FRAMES:]}

    def _back(self, number: int, args: Any, more: Any) -> Any:
        encoder = Encoder()
        self.channel.send({"callback": number, "args": encoder.encode(args), "more": encoder.encode(more)})
        return given(self.channel.receive())

    def read(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A file of the student, as it stands after the cells have run."""
        path = Path(message["file"])
        try:
            with path.open("rb") as file:
                content = file.read(message["most"] + 1)
        except OSError:
            content = b""
        kept = content if len(content) <= message["most"] else b""
        return {"content": base64.b64encode(kept).decode()}

    def write(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A file of the student, for checks that read it; nothing is written of what cannot be read."""
        with contextlib.suppress(ValueError, TypeError):
            if content := base64.b64decode(message["content"], validate=True):
                Path(message["file"]).write_bytes(content)
        return {}

    # --- what the student's side asks back ------------------------------------------------------------

    def refer(self, function: Callable[..., Any]) -> int:
        """A number by which the student's side may call one of the checks' own functions."""
        self.callbacks.append(function)
        return len(self.callbacks) - 1

    def called_back(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Call it."""
        try:
            decoder = Decoder()
            function = self.callbacks[message["callback"]]
            args, more = decoder.decode(message["args"]), decoder.decode(message["more"])
            with time_limit(message["seconds"]):
                return {"value": Encoder().encode(function(*args, **more))}
        except Exception as error:
            return {"error": {"type": type(error).__name__, "message": _message(error)}}


class Remote:
    """A function of the student, as the checks have it: called over there, with plain data both ways."""

    def __init__(self, notebook: Notebook, name: str) -> None:
        self.notebook, self.__name__ = notebook, name

    def __call__(self, *args: Any, **more: Any) -> Any:
        """What the student's function returns.

        Raises
        ------
        Exception
            What it raises.
        """
        book = self.notebook
        encoder = Encoder(refer=book.refer)
        ask = {"name": self.__name__, "args": encoder.encode(args), "more": encoder.encode(more)}
        book.channel.send({"ask": "call", **ask})
        while "callback" in (reply := book.channel.receive()):
            book.channel.send({"ask": "called", **book.called_back(reply)})
        print(str(reply.get("printed", "")), end="")
        return given(reply)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class Unreadable:
    """Stands for something that cannot cross."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"<something that no check can read: {self.why}>"


def given(reply: Mapping[str, Any]) -> Any:
    """The value of a reply, or its error raised."""
    if "error" in reply:
        raise raised(reply["error"])
    if "value" not in reply:
        return Unreadable(str(reply.get("strange", "nothing came"))[:WORDS])
    try:
        return Decoder().decode(reply["value"])
    except NotPlainError as error:
        return Unreadable(str(error))


def raised(error: Any) -> Exception:
    """The error again: of Python's own type of that name, or of a new type that is called so."""
    told = error if isinstance(error, dict) else {}
    name, message = str(told.get("type")), str(told.get("message", ""))[:WORDS]
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(kind, StopIteration):
        kind = type(name if NAME.fullmatch(name) else "StudentError", (StudentError,), {})
    try:
        made = kind(message)
    except TypeError:  # some want more than a message
        made = StudentError(message)
    frames = told.get("frames")
    made.their_frames = [str(frame)[:WORDS] for frame in frames[:FRAMES]] if isinstance(frames, list) else []
    return made


def _message(error: BaseException) -> str:
    try:
        return str(error)[:WORDS]
    except Exception:
        return ""


def _of_the_runner(frame: str) -> bool:
    return "starvelab/grading/" in frame


def _show_whose(outputs: Outputs, frames: list[str]) -> None:
    """Put the frames of the student's function where the checks called it."""
    for entry in outputs.entries:
        if entry["output_type"] == "error":
            *before, last = [one for one in entry["traceback"] if not _of_the_runner(one)] or [""]
            entry["traceback"] = [*before, *frames, last]


def _number(value: Any) -> Any:
    try:
        return Encoder().encode(value)
    except NotPlainError:
        return None


def _jsonable(outputs: Outputs) -> list[dict[str, Any]]:
    """Outputs with bytes, such as a picture's, as text, and all text such that a file can hold it."""

    def text(value: Any) -> Any:
        if isinstance(value, str):
            return storable(value)
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if isinstance(value, Mapping):
            return {storable(str(key)): text(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [text(each) for each in value]
        return value if isinstance(value, int | float | bool | None) else storable(str(value))

    return [text(entry) for entry in outputs.entries]


def _limit(limits: Mapping[str, int]) -> None:
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, name), (most, most))


def main() -> None:
    """Import, and fork for each notebook, until nobody asks any more."""
    channel = Channel(os.dup(0), os.dup(1))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for end in (0, 1, 2):
        os.dup2(nowhere, end)
    begin = channel.receive()
    # Where it is installed pint imports it, for arrays that no notebook has.
    sys.modules.setdefault("dask", None)
    gc.disable()
    for name in begin["imports"]:
        with contextlib.suppress(ImportError):
            import_module(name)
    # What is imported stays: no notebook's collection need look at it, or copy the memory that it shares.
    gc.freeze()
    gc.enable()
    _limit(begin["limits"])
    channel.send({"ready": sys.version})
    with contextlib.suppress(ChannelError):
        while True:
            opened = channel.receive()
            child = os.fork()
            if child == 0:
                _open(channel, opened)
            _, status = os.waitpid(child, 0)
            channel.send({"ended": status})


def _open(channel: Channel, opened: Mapping[str, Any]) -> None:
    try:
        os.chdir(opened["folder"])
        for name, content in opened["files"].items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(content))
        notebook = Notebook(channel)
        channel.send({"open": True})
        notebook.serve()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
