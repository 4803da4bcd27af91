"""What this process runs for: a learner, or a grader.

This is the only place that asks the environment for it. A grader sets the variables of `GRADING` for the
processes that run notebooks; within a process, `use` says otherwise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

from .errors import InputError

NBGRADER, CLOCK, WIDGETS = "NBGRADER_EXECUTION", "STARVELAB_CLOCK", "STARVELAB_WIDGETS"
# Google Colab sets it. Its pages show widgets of an older protocol only.
COLAB = "COLAB_RELEASE_TAG"


@dataclass(frozen=True)
class Runtime:
    """What a process runs for; only a known clock can be set."""

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


def shell() -> Any:  # Any: IPython brings no types
    """Return IPython's shell, or None where no IPython runs."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
