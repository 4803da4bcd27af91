"""The process that a runner is: it imports once, and forks for each notebook, whose cells a process runs.

So no notebook finds what another left in memory. `process` starts it; it takes messages on its standard
input. The process of a notebook answers what the other side asks of its names.
"""

import base64
import builtins
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from itertools import tee
from pathlib import Path

from ..files import write_files
from ..plugins import NOTE, functions
from ..text import storable
from .channel import Channel, ChannelError, Message
from .check_messages import CheckMessages
from .clock import time_limit
from .codec import NAME, Decoder, Encoder, Json, SerializationError
from .shell import Outputs, Shell, text_of

OWN_FILES = "/starvelab_grader/"  # in the frames of a traceback that belong to the grader
MAX_TYPE_NAME = 60  # characters
MAX_TEXT = 4000  # characters of an error, or of one of its frames
MAX_FRAMES = 10


def main() -> None:
    """Import, and fork for each notebook, until the channel is closed."""
    channel, null = Channel(os.dup(0), os.dup(1)), os.open(os.devnull, os.O_RDWR)
    for end in (0, 1):
        os.dup2(null, end)
    start = channel.receive()
    gc.disable()
    for name in start["imports"]:
        with suppress(ImportError):
            import_module(name)
    # What packages of the course need is read, a shell is made and shows an error, once for all notebooks.
    with suppress(ImportError):
        for preload in functions("preload"):
            preload()
    Shell.instance().warm_up()
    # What is imported stays: no notebook's collection need look at it, or copy the memory that it shares.
    gc.freeze()
    gc.enable()
    for name, limit in start["limits"].items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    os.dup2(null, 2)  # whoever starts it has kept until here what went wrong
    channel.send({"ready": sys.version})
    with suppress(ChannelError):
        while True:
            message = channel.receive()
            if "folder" in message:
                channel.send({"ended": _run_notebook(channel, message)})
            elif message["do"] == "close":
                channel.send({"ended": 0})
            # Any other question was asked of a notebook that has ended, and that it has was the answer.


def _run_notebook(channel: Channel, opened: Message) -> int:
    """Fork for a notebook, and wait until it is over: with which status."""
    child = os.fork()
    if child == 0:
        _serve_notebook(channel, opened)
    _, status = os.waitpid(child, os.WUNTRACED)
    while os.WIFSTOPPED(status):
        # It makes room for another one, in which no cell of it has run.
        channel.send({"paused": True})
        channel.send({"ended": _run_notebook(channel, channel.receive())})
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, os.WUNTRACED)
    return status


def _serve_notebook(channel: Channel, opened: Message) -> None:
    try:
        os.chdir(opened["folder"])
        builtins.input = _no_input
        write_files(Path(), {name: base64.b64decode(each) for name, each in opened["files"].items()})
        if modules := opened["modules"]:
            sys.meta_path.insert(0, _Modules({name: Path.cwd() / path for name, path in modules.items()}))
        process = NotebookProcess(channel, runs_apart=opened.get("checks", False))
        channel.send({"open": True})
        process.serve()
    finally:
        os._exit(0)


def _no_input(prompt: object = "", /) -> str:  # noqa: ARG001
    raise EOFError("Nobody can type while a notebook is graded: take input() out, and write the value there.")


class _Modules(dict[str, Path]):
    """Finds modules in these files, and nothing else beside them."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return spec_from_file_location(name, self[name]) if name in self else None


class NotebookProcess:
    """The cells of one notebook on one side; if it `runs_apart`, they can have a text run apart."""

    def __init__(self, channel: Channel, *, runs_apart: bool = False) -> None:
        self.channel = channel
        self.shell = Shell.instance()
        if runs_apart:
            self.shell.run_apart = Remote(self, "a text", apart=True)
        self.hides_prints = False  # of the student's functions, in the cell that runs
        self._callbacks: list[Callable[..., object]] = []
        self._asked = 0  # questions to the student's side
        self._bound: dict[str, object] = {}  # names of the student that the checks have, and their values
        self._notes: dict[str, list[object]] = {}
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        """Keep what a check notes: a number, numbers, or a text, under a name."""
        if event == NOTE:
            name, value = arguments
            if isinstance(value, list | tuple):
                value = [float(one) for one in value if isinstance(one, int | float)]
            elif not isinstance(value, int | float):
                value = str(value)[:MAX_TEXT]
            if self.shell.messages is not None:
                self.shell.messages.note(str(name), value)
            values = self._notes.setdefault(str(name), [])
            if value not in values:
                values.append(value)

    def serve(self) -> None:
        """Answer until the notebook is over."""
        process = os.getpid()
        while (message := self.channel.receive())["do"] != "close":
            try:
                reply = getattr(self, message["do"])(message)  # it comes from the grader
            except ChannelError:
                raise
            # Every question gets an answer, also one that fails: the other side waits for it.
            except Exception as error:
                reply = {"error": self._describe_error(error), "failed": True, "outputs": [], "value": None}
            if os.getpid() != process:
                os._exit(0)  # a copy, made by os.fork() in a cell: it would take questions from this one
            if message["do"] != "pause":
                self.channel.send(reply)

    def run(self, message: Message) -> Message:
        """Run a cell: its outputs, whether it failed, its value if a number, and what its checks noted."""
        self._notes, self.hides_prints = {}, bool(message.get("hide_prints"))
        source, is_test = message["source"], bool(message.get("test"))
        messages = CheckMessages(source, self.shell.user_global_ns) if is_test else None
        self.shell.messages = messages
        try:
            outputs, error = self.shell.run(source, message.get("seconds"))
        finally:
            self.shell.messages = None
        for entry in outputs.entries:
            if entry["output_type"] == "error":
                # The frames of the student's function stand where the checks called it.
                *before, last = [frame for frame in entry["traceback"] if OWN_FILES not in frame] or [""]
                entry["traceback"] = [*before, *getattr(error, "their_frames", []), last]
        value: Json = None
        with suppress(SerializationError):
            value = Encoder().encode(self.shell.result)
        entries = [_as_json(entry) for entry in outputs.entries]
        reply = {"outputs": entries, "failed": error is not None, "value": value, "notes": self._notes}
        if messages is not None:
            is_right = messages.end(error, "" if error is None else text_of(error))
            reply |= {"messages": _as_json(messages.texts), "visibly_right": is_right}
        return reply

    @contextmanager
    def quoting(self) -> Iterator[None]:
        """Print what a function of the student printed, which is no message of the check."""
        messages = self.shell.messages
        if messages is not None:
            messages.is_quoting = True
        try:
            yield
        finally:
            if messages is not None:
                messages.is_quoting = False

    def bind(self, message: Message) -> Message:
        """Give names of the student to the checks: values as they are, functions as `Remote`."""
        for name, value in self._bound.items():
            # A check may have given the name another value, which is its own.
            if self.shell.user_ns.get(name) is value:
                self.shell.user_ns.pop(name, None)
        self._bound = {
            name: Remote(self, name) if binding["kind"] == "function" else _bound_value(name, binding)
            for name, binding in message["names"].items()
            if binding["kind"] != "missing"
        }
        self.shell.user_ns.update(self._bound)
        return {}

    def names(self, _: Message) -> Message:
        """Names that mean something here, except those that were bound for the student."""
        known = self.shell.user_ns.items()
        here = {name for name, value in known if self._bound.get(name, self) is not value}
        return {"names": sorted(here | set(dir(builtins)))}

    def look(self, message: Message) -> Message:
        """Say what a name stands for."""
        if message["name"] not in self.shell.user_ns:
            return {"kind": "missing"}
        value = self.shell.user_ns[message["name"]]
        if isinstance(value, Iterator):
            # This must not use it up: the next check looks at it again.
            self.shell.user_ns[message["name"]], value = tee(value)
        try:
            with time_limit(message.get("seconds")):
                return {"kind": "value", "value": Encoder().encode(value)}
        except Exception as error:
            strange = {"kind": "other", "strange": text_of(error)[:MAX_TEXT]}
            return {"kind": "function"} if callable(value) else strange

    def call(self, message: Message) -> Message:
        """Call a function of the student, or run a text where no cell has run."""
        before, self.shell.outputs = self.shell.outputs, Outputs()
        function = _run_text if message.get("apart") else self.shell.user_ns.get(message["name"])
        decoder = Decoder(call=lambda number: lambda *args, **more: self._call_back(number, args, more))
        try:
            with self.shell.captured() as captured:
                reply = _called(function, message, decoder)
        except SerializationError as error:
            reply = {"strange": text_of(error)[:MAX_TEXT]}
        except ChannelError:
            raise
        # SystemExit is an answer like any other error.
        except BaseException as error:
            reply = {"error": self._describe_error(error)}
        finally:
            self.shell.outputs = before
        text = "".join(output["text"] for output in captured.entries if output.get("name") == "stdout")
        return {**reply, "printed": text}

    def _call_back(self, number: int, args: tuple[object, ...], more: Mapping[str, object]) -> object:
        encoder = Encoder()
        self.channel.send({"callback": number, "args": encoder.encode(args), "more": encoder.encode(more)})
        return _value_of(self.channel.receive())

    def _describe_error(self, error: BaseException) -> Message:
        """An error as text: its type, its message, and how IPython shows where it happened."""
        parts, trace = list[str](), error.__traceback__
        while trace is not None and OWN_FILES in trace.tb_frame.f_code.co_filename:
            trace = trace.tb_next  # to show a frame takes long
        with suppress(Exception):  # a student's error may fail even where it is shown
            parts = self.shell.InteractiveTB.structured_traceback(type(error), error, trace, tb_offset=0)
        frames = [str(part)[:MAX_TEXT] for part in parts[2:-1] if OWN_FILES not in str(part)]
        name = type(error).__name__[:MAX_TYPE_NAME]
        return {"type": name, "message": text_of(error)[:MAX_TEXT], "frames": frames[-MAX_FRAMES:]}

    def read(self, message: Message) -> Message:
        """A file of the student, as it stands after the cells have run; nothing of one that is too long."""
        content = b""
        with suppress(OSError), Path(message["file"]).open("rb") as file:
            content = file.read(message["most"] + 1)
        kept = content if len(content) <= message["most"] else b""
        return {"content": base64.b64encode(kept).decode()}

    def write(self, message: Message) -> Message:
        """Write a file of the student, for checks that read it; nothing where it cannot be decoded."""
        with suppress(ValueError, TypeError):
            if content := base64.b64decode(message["content"], validate=True):
                Path(message["file"]).write_bytes(content)
        return {}

    def pause(self, _: Message) -> Message:
        """Stop until another process, which the runner forks, has run a text. The runner answers."""
        os.kill(os.getpid(), signal.SIGSTOP)
        return {}

    def ask(self, question: Message) -> Message:
        """Ask the student's side; what answers an earlier question, which was interrupted, is dropped."""
        self._asked += 1
        self.channel.send({**question, "number": self._asked})
        while (reply := self.channel.receive())["number"] != self._asked:
            pass
        answer: Message = reply["answer"]
        return answer

    def refer(self, function: Callable[..., object]) -> int:
        """A number by which the student's side may call one of the checks' own functions."""
        self._callbacks.append(function)
        return len(self._callbacks) - 1

    def called_back(self, message: Message) -> Message:
        """Call the function of that number."""
        try:
            # The number comes from the student's side, and may be anything.
            return _called(self._callbacks[message["callback"]], message, Decoder())
        # Without its frames: they show what a check does.
        except Exception as error:
            return {"error": {"type": type(error).__name__, "message": text_of(error)[:MAX_TEXT]}}


class StudentError(Exception):
    """An error in a student's function, of a type that the checks do not know."""


class Remote:
    """A function of the student, called by a check; with `apart`, a text run where no cell has run."""

    def __init__(self, process: NotebookProcess, name: str, *, apart: bool = False) -> None:
        self._process, self.__name__, self._apart = process, name, apart

    def __call__(self, *args: object, **more: object) -> object:
        """Return what the student's function returns, or raise what it raises."""
        process = self._process
        encoder = Encoder(refer=process.refer)
        call = {"name": self.__name__, "args": encoder.encode(args), "more": encoder.encode(more)}
        reply = process.ask({"ask": "call", "apart": self._apart, **call})
        while "callback" in reply:
            reply = process.ask({"ask": "called", **process.called_back(reply)})
        if not process.hides_prints:
            with process.quoting():
                print(str(reply.get("printed", "")), end="")
        return _value_of(reply)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class Unreadable:
    """Stands for a value that cannot be sent."""

    def __init__(self, reason: object) -> None:
        self.reason = str(reason)[:MAX_TEXT]

    def __repr__(self) -> str:
        return f"<something that no check can read: {self.reason}>"


def _bound_value(name: str, binding: Message) -> object:
    """What a name is to mean for the checks: they import themselves what the instructor's cells import."""
    if binding["kind"] != "import":
        return _value_of(binding)
    names: dict[str, object] = {}
    try:
        exec(binding["statement"], names)
    except ImportError as error:
        return Unreadable(error)
    return names[name]


def _value_of(reply: Message) -> object:
    """The value of a reply, or its error raised."""
    if "error" in reply:
        raise _error_of(reply["error"])
    if "value" not in reply:
        return Unreadable(reply.get("strange", "nothing came"))
    try:
        return Decoder().decode(reply["value"])
    except SerializationError as error:
        return Unreadable(error)


def _error_of(description: object) -> Exception:
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


def _called(function: Callable[..., object], message: Message, decoder: Decoder) -> Message:
    """The reply to a call with the arguments of a message."""
    args, more = decoder.decode(message["args"]), decoder.decode(message["more"])
    assert isinstance(args, tuple)
    assert isinstance(more, dict)
    with time_limit(message["seconds"]):
        # A generator runs, and may fail, only when it is encoded.
        return {"value": Encoder().encode(function(*args, **more))}


def _run_text(text: str, names: Mapping[str, object]) -> None:
    exec(compile(text, "<text>", "exec"), {"__name__": "__main__", **names})


def _as_json(value: object) -> Json:
    """A part of an output: bytes, such as a picture's, as text, and all text such that a file can hold it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {storable(str(key)): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return value if isinstance(value, int | float | bool | None) else storable(str(value))
