"""IPython without a kernel: it runs a cell, and keeps the outputs as a notebook does, up to a limit."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from .channel import Message
from .clock import own_time

ALARM = 0.01  # seconds that an interruption may be early
MAX_OUTPUT = 1_000_000  # characters that a cell may put out; a figure has about 50,000
MORE_OUTPUT = "\n[More output follows, which is not kept.]\n"
MAX_ERROR = 4000  # characters of the message of an error that comes after so much


class CellTimeoutError(Exception):
    """A cell took longer than it may."""


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

    def __init__(self, outputs: Outputs, name: str) -> None:
        self.outputs, self.name = outputs, name

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.outputs.write(self.name, str(text))
        return len(text)


class _Publisher(DisplayPublisher):
    shell: Shell

    def publish(self, data: object, metadata: object = None, source: object = None, **_: object) -> None:  # noqa: ARG002
        self.shell.outputs.add("display_data", data=data, metadata=metadata or {})

    def clear_output(self, wait: bool = False) -> None:  # noqa: ARG002
        self.shell.outputs.entries.clear()


class _Hook(DisplayHook):
    shell: Shell

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
        self.result: object = None
        config = Config()
        config.HistoryManager.enabled = False
        super().__init__(config=config, **more)

    def enable_gui(self, gui: object = None) -> None:
        """There is no window here."""

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        self.outputs.add(
            "error", ename=str(etype.__name__), evalue=_text(evalue), traceback=[str(line) for line in stb]
        )

    def run(self, source: str, seconds: float | None = None) -> tuple[Outputs, BaseException | None]:
        """Run a cell: its outputs, and the error that it ended with."""
        self.outputs, self.result = Outputs(), None
        with self.captured(), time_limit(seconds):
            result = self.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if error is not None and not any(one["output_type"] == "error" for one in self.outputs.entries):
            # There was too much output before the error, which has to be shown all the same.
            name, text = type(error).__name__, _text(error)[:MAX_ERROR]
            shown = {"ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}
            self.outputs.entries.append({"output_type": "error", **shown})
        return self.outputs, error

    def ask_exit(self) -> None:
        """End the cell for `exit` and `quit`; a terminal of IPython would ask first."""
        raise SystemExit("exit")

    @contextlib.contextmanager
    def captured(self) -> Iterator[Outputs]:
        """Send to the outputs what is printed meanwhile."""
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _Stream(self.outputs, "stdout"), _Stream(self.outputs, "stderr")
        try:
            yield self.outputs
        finally:
            sys.stdout, sys.stderr = before


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt what takes longer. Code that catches this is ended from outside, by its deadline."""
    if seconds is None:
        yield
        return
    start = own_time()

    def stop(*_: object) -> None:
        left = seconds - (own_time() - start)
        if left > ALARM:  # other processes used the cores meanwhile
            signal.setitimer(signal.ITIMER_REAL, left)
            return
        raise CellTimeoutError(f"This took longer than {seconds:g} s.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:
        return f"(its message fails with {type(failure).__name__})"
