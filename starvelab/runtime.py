"""What this process runs for, a learner or a grader; scripts that run in it, and the trackers that they use.

This is the only place that asks the environment for it. A grader sets the variables of `GRADING` for the
processes that run notebooks; within a process, `use` says otherwise. For trackers nothing is started: a run
of W&B or MLflow is taken while it is active, a writer of TensorBoard while it is open.
"""

from __future__ import annotations

import gc
import os
import runpy
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias

from .errors import InputError

NBGRADER, CLOCK, WIDGETS = "NBGRADER_EXECUTION", "STARVELAB_CLOCK", "STARVELAB_WIDGETS"
# Google Colab sets it. Its pages show widgets of an older protocol only.
COLAB = "COLAB_RELEASE_TAG"


@dataclass(frozen=True)
class Runtime:
    """What a process runs for; only a clock that there is can be set."""

    # nbgrader runs the notebook: then figures are not drawn, and a reveal stores nothing.
    is_grading: bool = False
    # "live" measures; "simulated" computes what a run or a diagnosis would find, so that no grade depends on
    # how busy a machine is.
    clock: str = "live"
    # nbgrader's *Validate* runs it for a student: then an open exercise is an error, as nbgrader expects.
    is_validating: bool = False
    # The page shows widgets. Where it does not, each says in words what to write instead.
    has_widgets: bool = True

    def __post_init__(self) -> None:
        if self.clock not in ("live", "simulated"):
            raise InputError(
                f"{CLOCK} must be live or simulated, got {self.clock!r:.80}. Set one of these, or unset it."
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read what the variables say."""
        execution = environment.get(NBGRADER)
        widgets = environment.get(WIDGETS) or ("off" if COLAB in environment else "on")
        if widgets not in ("on", "off"):
            raise InputError(
                f"{WIDGETS} must be on or off, got {widgets!r:.80}. Set one of these, or unset it."
            )
        return cls(
            is_grading=execution == "autograde",
            clock=environment.get(CLOCK) or "live",
            is_validating=execution == "validate",
            has_widgets=widgets == "on",
        )

    @property
    def is_for_nbgrader(self) -> bool:
        """True if nbgrader reads what a check says, and no learner."""
        return self.is_grading or self.is_validating

    def environment(self) -> dict[str, str]:
        """The variables that say so to another process."""
        execution = "autograde" if self.is_grading else "validate" if self.is_validating else ""
        widgets = "on" if self.has_widgets else "off"
        return ({NBGRADER: execution} if execution else {}) | {CLOCK: self.clock, WIDGETS: widgets}


GRADING = Runtime(is_grading=True, clock="simulated")

_used: ContextVar[Runtime | None] = ContextVar("starvelab_runtime", default=None)


def current() -> Runtime:
    """Return what was set by `use`, or else what the environment says.

    Examples
    --------
    >>> with use(GRADING):
    ...     current().is_grading
    True
    """
    return _used.get() or Runtime.from_environment(os.environ)


@contextmanager
def use(runtime: Runtime) -> Iterator[None]:
    """Let `current` return this, in this thread or task only."""
    token = _used.set(runtime)
    try:
        yield
    finally:
        _used.reset(token)


def note(name: str, value: object) -> None:
    """Tell a grader that listens what a check found, such as a known mistake; nobody else hears it."""
    sys.audit("starvelab_grader.note", name, value)


def shell() -> Any:  # Any: IPython brings no types
    """Return IPython's shell, or None where no IPython runs."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def run_apart(text: str, names: Mapping[str, object]) -> None:
    """Run a program that was submitted as a text; while grading, where it can reach nothing of this process.

    At home it runs here. The text finds the names: plain data, and functions of plain data. Whatever has to
    be counted or measured belongs into such functions: a grader runs those beside the check, where the text
    can call them and change nothing of them.

    Examples
    --------
    >>> seen = []
    >>> run_apart("for n in range(limit): count(n)", {"count": seen.append, "limit": 3})
    >>> seen
    [0, 1, 2]
    """
    elsewhere = getattr(shell(), "run_apart", None)
    if elsewhere is not None:
        elsewhere(text, dict(names))
    else:
        exec(compile(text, "<text>", "exec"), {"__name__": "__main__", **names})


INTERRUPTED, TERMINATED = 130, 143  # the statuses of a program that Ctrl+C ended, and SIGTERM


def run_script(script: str | Path, arguments: Sequence[str], *, module: bool = False) -> int:
    """Run a script as `python SCRIPT ARGUMENTS` would, or a module as `python -m` would; its exit status."""
    before = sys.argv, sys.path[0]
    folder = Path.cwd() if module else Path(script).resolve().parent
    sys.argv, sys.path[0] = [str(script), *arguments], str(folder)
    try:
        if module:
            runpy.run_module(str(script), run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        print("Interrupted. This is what is known so far.", file=sys.stderr)
        return INTERRUPTED
    except Terminated:
        print("Terminated. This is what is known so far.", file=sys.stderr)
        return TERMINATED
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[0] = before
    return 0


class Terminated(BaseException):
    """A scheduler or `kill` ends the program, which has a moment left."""


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the script and not the report, for as long as this lasts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    own = os.getpid()

    def end(number: int, _: object) -> None:
        if os.getpid() == own:
            # A scheduler ends the workers, too, for each of which PyTorch would raise an error now.
            if hasattr(signal, "SIGCHLD"):  # not on Windows
                signal.signal(signal.SIGCHLD, lambda *_: None)
            raise Terminated
        signal.signal(number, signal.SIG_DFL)  # a worker that was forked ends as it would
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


Log: TypeAlias = Callable[[Mapping[str, float], int], object]  # of metrics, at a step
WRITERS = ("torch.utils.tensorboard.writer", "tensorboardX.writer")


class Trackers:
    """What the program logs to; a tracker that fails is left out from then on, and the training goes on."""

    def __init__(self) -> None:
        self.writers = open_writers()
        self.failed: set[str] = set()

    def log(self, shares: Mapping[str, float], step: int, loggers: Sequence[Any] = ()) -> None:
        """Log shares at a step of the training, to the loggers of its framework or else what is active."""
        logs = ((type(one).__name__, one.log_metrics) for one in loggers) if loggers else self._active()
        for name, log in logs:
            if not shares or name in self.failed:
                continue
            try:
                log(shares, step)
            except Exception as error:  # whatever a tracker, its file or its server raises
                self.failed.add(name)
                warnings.warn(
                    f"starvelab logs the share of waiting to trackers, and {name} did not take it: {error}. "
                    "It gets no more of them, and the training goes on.",
                    stacklevel=2,
                )

    def _active(self) -> Iterator[tuple[str, Log]]:
        run, mlflow = getattr(sys.modules.get("wandb"), "run", None), sys.modules.get("mlflow")
        if run is not None:  # in the row that the program logs next, whose step is its own
            yield "W&B", lambda shares, _: run.log(dict(shares), commit=False)
        if mlflow is not None and mlflow.active_run() is not None:
            yield "MLflow", lambda shares, step: mlflow.log_metrics(dict(shares), step=step)
        for writer in self.writers:
            if writer.file_writer is not None:  # closed; to write would open it again
                yield "TensorBoard", partial(_write_scalars, writer)


def _write_scalars(writer: Any, shares: Mapping[str, float], step: int) -> None:
    for name, share in shares.items():
        writer.add_scalar(name, share, step)


def open_writers() -> list[Any]:
    """Return the writers of TensorBoard of this process, which frameworks keep to themselves."""
    kinds = [getattr(sys.modules[name], "SummaryWriter", None) for name in WRITERS if name in sys.modules]
    return [one for one in gc.get_objects() if any(type(one) is kind for kind in kinds)] if kinds else []
