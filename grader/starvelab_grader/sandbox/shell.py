"""IPython without a kernel: it runs a cell, and keeps the outputs as a notebook does, up to a limit."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from pygments.lexer import words
from traitlets import Type
from traitlets.config import Config

from ..plugins import declared
from .channel import Message
from .check_messages import CheckMessages
from .clock import time_limit

MAX_OUTPUT = 1_000_000  # characters that a cell may put out; a figure has about 50,000
MORE_OUTPUT = "\n[More output follows, which is not kept.]\n"
MAX_ERROR = 4000  # characters of the message of an error that comes after so much


@dataclass
class Outputs:
    """The outputs of a cell, in the order and the form of a notebook."""

    entries: list[Message] = field(default_factory=list)
    left: int = MAX_OUTPUT

    def add(self, kind: str, **content: object) -> None:
        """Keep one more output, unless there were too many."""
        if self.left <= 0:
            return
        self.left -= len(str(content))
        if self.left <= 0:
            kind, content = "stream", {"name": "stdout", "text": MORE_OUTPUT}
        self.entries.append({"output_type": kind, **content})

    def write(self, name: str, text: str) -> None:
        """Keep text of a stream, together with what it wrote just before."""
        last = self.entries[-1] if self.entries else {}
        if last.get("output_type") == "stream" and last["name"] == name and 0 < len(text) < self.left:
            last["text"] += text
            self.left -= len(text)
        elif text:
            self.add("stream", name=name, text=text[: self.left + 1])


class _Stream(io.TextIOBase):
    """sys.stdout or sys.stderr of a cell."""

    def __init__(self, outputs: Outputs, name: str, messages: CheckMessages | None = None) -> None:
        self.outputs, self.name, self.messages = outputs, name, messages

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.outputs.write(self.name, str(text))
        if self.messages is not None:
            self.messages.print(str(text))
        return len(text)


class _Publisher(DisplayPublisher):
    shell: "Shell"

    def publish(self, data: object, metadata: object = None, source: object = None, **_: object) -> None:  # noqa: ARG002
        self.shell.outputs.add("display_data", data=data, metadata=metadata or {})

    def clear_output(self, wait: bool = False) -> None:  # noqa: ARG002
        self.shell.outputs.entries.clear()


class _Hook(DisplayHook):
    shell: "Shell"

    def __call__(self, result: object = None) -> None:
        self.shell.result = result
        if result is not None and not self.quiet():
            formatter = self.shell.display_formatter
            assert formatter is not None  # every shell makes one
            data, metadata = formatter.format(result)
            self.shell.outputs.add("execute_result", data=data, metadata=metadata, execution_count=None)


class Shell(InteractiveShell):
    """Runs the cells of one notebook in one namespace."""

    run_apart: Callable[..., object] | None = None  # where a check can have a text run elsewhere
    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)

    def __init__(self, **more: object) -> None:
        self.outputs = Outputs()
        self.messages: CheckMessages | None = None  # of the check that runs
        self.result: object = None
        config = Config()
        config.HistoryManager.enabled = False
        super().__init__(config=config, **more)

    def enable_gui(self, gui: object = None) -> None:
        """There is no window here."""

    def _format_exception_for_storage(self, *_: object, **__: object) -> dict[str, object]:
        """Show no error once more, for a history that nobody reads."""
        return {}

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        lines = [str(line) for line in stb]
        self.outputs.add("error", ename=str(etype.__name__), evalue=text_of(evalue), traceback=lines)

    def run(self, source: str, seconds: float | None = None) -> tuple[Outputs, BaseException | None]:
        """Run a cell: its outputs, and the error that it ended with."""
        self.outputs, self.result = Outputs(), None
        with self.captured(), time_limit(seconds):
            result = self.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if error is not None and not any(one["output_type"] == "error" for one in self.outputs.entries):
            # There was too much output before the error, which has to be shown all the same.
            name, text = type(error).__name__, text_of(error)[:MAX_ERROR]
            shown = {"ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}
            self.outputs.entries.append({"output_type": "error", **shown})
        return self.outputs, error

    def warm_up(self) -> None:
        """Run a cell that shows a value and one that fails: what that takes the first time is taken here."""
        # For each frame of a traceback a new lexer is made, of the same lists of words.
        words.get = cache(words.get)
        for source in ("0", "raise RuntimeError"):
            with self.captured():
                self.run_cell(source)
        self.outputs, self.result = Outputs(), None

    def ask_exit(self) -> None:
        """End the cell for `exit` and `quit`; a terminal of IPython would ask first."""
        raise SystemExit("exit")

    @contextmanager
    def captured(self) -> Iterator[Outputs]:
        """Send to the outputs what is printed meanwhile."""
        streams = _Stream(self.outputs, "stdout", self.messages), _Stream(self.outputs, "stderr")
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            yield self.outputs


def text_of(error: BaseException) -> str:
    """The message of an error, as a plugin puts it; a student's own may fail even there."""
    try:
        return str(declared("error_texts").get(type(error).__name__, str)(error))
    except Exception as failure:
        return f"(its message fails with {type(failure).__name__})"
