"""Evidence: a disturbed measurement is not shown, and a recorded quiet run is one click away."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ipywidgets
from IPython.display import display

from ... import runtime
from .. import notices
from .keyboard import Box, spoken

# Written by `python -m benchmarks.quiet_runs`.
QUIET_RUNS = Path(__file__).parents[1] / "quiet_runs.json"
DISTURBED = (
    "This measurement was disturbed ({}), so its numbers are no evidence, and are not shown. Close what else "
    "runs on this machine, and run the measuring cell again."
)
BUTTON = "Show a recorded quiet run"


@dataclass(frozen=True, kw_only=True)
class QuietTable:
    """A table of a quiet run, as text, below what is said of it."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    @property
    def html(self) -> str:
        """The table, and above it what is said of it."""
        return notices.paragraphs(self.caption) + notices.widget_table(self.headers, self.rows)


@dataclass(frozen=True, kw_only=True)
class QuietRun:
    """What was measured, once, on a machine on which nothing disturbed it.

    `value` is the answer to a prediction, in a `unit` that is empty for a plain number; None where the answer
    depends on what a learner has written. `quality` says how quiet it was. `loaders` are runs of a loader,
    which a learner's own loader is held against.
    """

    machine: str
    date: str
    quality: str
    notebook: str
    value: float | None = None
    unit: str = ""
    tables: tuple[QuietTable, ...] = ()
    loaders: tuple[Mapping[str, Any], ...] = ()

    @property
    def origin(self) -> str:
        """Say where and when it was measured, and how quiet it was."""
        return f"Measured on a quiet machine ({self.machine}) on {self.date}: {self.quality}."


def show_notice(text: str, word: str) -> None:
    """Display a notice."""
    show_object(notices.formats(text, word), raw=True)


def show_object(shown: object, *, raw: bool = False) -> None:
    """Display an object, or formats of it where they are `raw`."""
    display(shown, raw=raw)  # type: ignore[no-untyped-call]


@cache
def quiet_runs(record: Path = QUIET_RUNS) -> Mapping[str, QuietRun]:
    """Read every recorded quiet run, by the key under which a notebook asks for it."""
    runs = json.loads(record.read_text(encoding="utf-8"))
    return {
        key: QuietRun(**{**run, "tables": tuple(QuietTable(**table) for table in run.get("tables", ()))})
        for key, run in runs.items()
    }


def show_measured(key: str, shown: Callable[[], object] | object, *, disturbed: str = "") -> None:
    """Show a measurement; if it was disturbed, say so and offer the recorded quiet run.

    Parameters
    ----------
    key : str
        Key of the recorded run.
    shown : function without arguments, or object
        Displays the measurement, or is displayed itself.
    disturbed : str
        What disturbed any of what is shown; empty if nothing did.
    """
    if not disturbed or runtime.current().is_grading:
        result = shown() if callable(shown) else shown
        if result is not None:
            show_object(result)
        return
    show_disturbed(key, disturbed)


def show_disturbed(
    key: str, disturbed: str, said: str = "", chosen: Callable[[QuietRun], str] = lambda _: ""
) -> None:
    """Say that a measurement was disturbed, and offer the recorded quiet run; see `QuietRunBox`."""
    show_notice(" ".join(filter(None, (said, DISTURBED.format(disturbed)))), "Please note")
    if (quiet := quiet_runs().get(key)) is not None:
        show_object(QuietRunBox(quiet, chosen))


class QuietRunBox(Box):
    """A `button` that shows a recorded quiet run; `chosen` is called first, and its HTML is shown above."""

    def __init__(self, quiet: QuietRun, chosen: Callable[[QuietRun], str] = lambda _: "") -> None:
        self._quiet, self._chosen = quiet, chosen
        self.button = ipywidgets.Button(description=BUTTON, layout={"width": "max-content"})
        self.button.on_click(lambda _button: self.show_errors(self._show))
        self.message, self.tables = spoken(), ipywidgets.HTML()
        super().__init__("A recorded quiet run", [self.button, self.message, self.tables])

    def _show(self) -> None:
        self.message.value = self._chosen(self._quiet) + notices.paragraphs(self._quiet.origin)
        self.tables.value = "".join(table.html for table in self._quiet.tables)
        self.button.disabled = True

    def html(self) -> str:
        """Return the run, folded away, for a page on which no button can be pressed."""
        tables = "".join(table.html for table in self._quiet.tables)
        origin = notices.paragraphs(self._quiet.origin)
        return f"<details><summary>A recorded quiet run</summary>{origin}{tables}</details>"
