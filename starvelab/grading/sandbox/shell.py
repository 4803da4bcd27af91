"""IPython without a kernel: runs a cell, and keeps what it put out as a notebook does, up to a limit.

It knows neither sandboxes nor checks.
"""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from .clock import own_time

ALARM = 0.01  # seconds that an interruption may be early
MOST = 1_000_000  # bytes that a cell may put out; a figure has some 50,000
MAX_ERROR = 4000  # characters of the message of an error that comes after so much


class CellTimeoutError(Exception):
    """A cell took longer than it may."""


@dataclass
class Outputs:
    """What a cell put out, in the order and the form of a notebook."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    left: int = MOST

    def add(self, kind: str, **content: Any) -> None:
        """Keep one more output, unless there were too many."""
        size = len(str(content))
        if self.left <= 0:
            return
        self.left -= size
        if self.left <= 0:
            kind, content = "stream", {"name": "stdout", "text": "\n[More was put out than is kept.]\n"}
        self.entries.append({"output_type": kind, **content})

    def write(self, name: str, text: str) -> None:
        """Keep text of a stream, together with what it wrote just before."""
        last = self.entries[-1] if self.entries else {}
        if last.get("output_type") == "stream" and last["name"] == name and 0 < len(text) < self.left:
            last["text"] += text
            self.left -= len(text)
        elif text:
            self.add("stream", name=name, text=text[: self.left + 1])


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr of a cell."""

    def __init__(self, outputs: Outputs, name: str) -> None:
        self.outputs, self.name = outputs, name

    def writable(self) -> bool:
        """As print wants to know."""
        return True

    def write(self, text: str) -> int:
        """Keep it."""
        self.outputs.write(self.name, str(text))
        return len(text)


class _Publisher(DisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, **_: Any) -> None:
        self.shell.outputs.add("display_data", data=data, metadata=metadata or {})

    def clear_output(self, wait: bool = False) -> None:  # noqa: ARG002
        self.shell.outputs.entries.clear()


class _Hook(DisplayHook):
    def __call__(self, result: Any = None) -> None:
        self.shell.result = result
        if result is not None and not self.quiet():
            data, metadata = self.shell.display_formatter.format(result)
            self.shell.outputs.add("execute_result", data=data, metadata=metadata, execution_count=None)


class Shell(InteractiveShell):
    """Runs the cells of one notebook in one namespace."""

    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)

    def __init__(self, **more: Any) -> None:
        self.outputs, self.result = Outputs(), None
        config = Config()
        config.HistoryManager.enabled = False
        super().__init__(config=config, **more)

    def enable_gui(self, gui: Any = None) -> None:
        """There is no window here."""

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        self.outputs.add(
            "error", ename=str(etype.__name__), evalue=_text(evalue), traceback=[str(line) for line in stb]
        )

    def run(self, source: str, seconds: float | None = None) -> tuple[Outputs, BaseException | None]:
        """Run a cell.

        Returns
        -------
        outputs : Outputs
        error : exception or None
        """
        self.outputs, self.result = Outputs(), None
        with self.captured(), time_limit(seconds):
            done = self.run_cell(source, store_history=True)
        error = done.error_before_exec or done.error_in_exec
        if error is not None and not any(one["output_type"] == "error" for one in self.outputs.entries):
            # Too much was put out before: but whoever reads the cell must see that it failed, and why.
            name, text = type(error).__name__, _text(error)[:MAX_ERROR]
            self.outputs.entries.append(
                {"output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}
            )
        return self.outputs, error

    def ask_exit(self) -> None:
        """What `exit` and `quit` call; a terminal of IPython would ask first."""
        raise SystemExit("exit")

    @contextlib.contextmanager
    def captured(self) -> Iterator[Outputs]:
        """What is printed meanwhile goes to the outputs."""
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = Stream(self.outputs, "stdout"), Stream(self.outputs, "stderr")
        try:
            yield self.outputs
        finally:
            sys.stdout, sys.stderr = before


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt what takes longer; for those who do not catch it, and others have a deadline outside."""
    if seconds is None:
        yield
        return

    begun = own_time()

    def stop(*_: Any) -> None:
        left = seconds - (own_time() - begun)
        if left > ALARM:
            # Others had the cores meanwhile.
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
