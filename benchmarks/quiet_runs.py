"""Records quiet runs of the notebooks that measure, for learners whose own measurement is disturbed.

It runs each notebook's own cells. A measurement waits until nothing else runs on this machine, and is
repeated while something disturbed it. A notebook's runs are written when nothing disturbed any of them;
notebooks whose runs are recorded are left out, so that a second call goes on where the first one ended:

    python -m benchmarks.quiet_runs --minutes 15
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import asdict
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import jupytext
import psutil

from starvelab import Pipeline
from starvelab.host import usable_cores
from starvelab.lesson.widgets._loader import LoaderRun
from starvelab.measure import disturbance, transforms
from starvelab.measure.quality import Quality
from starvelab.tables import cell, count_of, percent
from starvelab.units import Quantity, unit_name

from .report import options

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = REPOSITORY / "starvelab/lesson/quiet_runs.json"
NOTEBOOKS = (
    "find-the-bottleneck/01_measure_your_machine", "find-the-bottleneck/02_who_waits",
    "find-the-bottleneck/03_caching_ladder", "find-the-bottleneck/04_published_ladder",
    "master-the-loader/01_write_the_loader", "master-the-loader/03_beyond_images",
)  # fmt: skip
# Their answers depend on what a learner has written: of these only what was measured is recorded.
OF_THE_LEARNER = {"my-repair", "rewrite"}
# Of all cores: above this somebody else is at work.
IDLE_PERCENT = 10
SKIPPED = ("predict", "explore", "play", "finish", "progress", "report", "scorecard",
           "save_loader")  # fmt: skip


class Patience:
    """Measures when nothing else runs, until nothing disturbed it or the time is over."""

    def __init__(self, minutes: float) -> None:
        self.end = time.monotonic() + 60 * minutes
        self.qualities: list[Quality] = []

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Let each way to measure wait and repeat."""
        with ExitStack() as stack:
            for owner, name in (
                (Pipeline, "measure"), (Pipeline, "diagnose"), (Pipeline, "calibrated"),
                (transforms, "decode_times"),
            ):  # fmt: skip
                stack.enter_context(patch.object(owner, name, self._patient(getattr(owner, name))))
            yield

    def _patient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **how: Any) -> Any:
            if how.get("clock") is not None:  # simulated
                return function(*arguments, **how)
            if function.__name__ != "decode_times":
                how["progress"] = False
            while True:
                while psutil.cpu_percent(interval=0.5) > IDLE_PERCENT and time.monotonic() < self.end:
                    pass
                found = function(*arguments, **how)
                if not disturbance(found) or time.monotonic() > self.end or "0.5 s" in how.values():
                    break
            if isinstance(quality := getattr(found, "quality", None), Quality):
                self.qualities.append(quality)
            return found

        return call

    def quality(self) -> str:
        """Say how quiet the measurements were since the last call."""
        qualities, self.qualities = self.qualities, []
        if not qualities:
            return "nothing disturbed it"
        load = percent(max(one.background_load for one in qualities), 0)
        differ = percent(max(one.variation for one in qualities), 0)
        return f"other programs used at most {load} of the cores, and its parts differed by {differ} or less"


class Recorder:
    """Stands in a notebook for what shows a measurement, and keeps what it would have shown."""

    def __init__(self, notebook: str, patience: Patience) -> None:
        self.notebook, self.patience = notebook, patience
        self.runs: dict[str, dict[str, Any]] = {}
        self.disturbed: list[str] = []
        self._tables: list[dict[str, Any]] = []

    @property
    def names(self) -> dict[str, Any]:
        """What takes the place of the notebook's own names."""
        skipped = dict.fromkeys(SKIPPED, lambda *_, **__: None)
        own = ("reveal", "show_measured", "beside_real", "table")
        return skipped | {name: getattr(self, name) for name in own}

    def reveal(
        self, key: str, truth: object = None, *, then: Any = None, disturbed: str | None = None, **_: Any
    ) -> None:
        """Keep what a reveal of a measurement shows, and its answer."""
        if disturbed is None:
            return
        self.show_measured(key, then, disturbed=disturbed)
        if key not in OF_THE_LEARNER:
            quantity = isinstance(truth, Quantity)
            value = truth.magnitude if quantity else truth
            self.runs[key] |= {
                "value": float(f"{value:.4g}") if isinstance(value, float) else value,
                "unit": unit_name(truth.units) if quantity else "",
            }

    def show_measured(self, key: str, shown: Any, *, disturbed: str = "") -> None:
        """Keep what is shown as tables of texts."""
        self._tables = []
        result = shown() if callable(shown) else shown
        if result is not None:
            caption = getattr(result, "caption", None) or result.summary
            self.table(result.headers, result.rows, caption)
        self._keep(key, disturbed, tables=self._tables)

    def beside_real(self, _loader: object, runs: Any, *, quiet: str) -> None:
        """Keep what a learner's loader is held against."""
        self._keep(quiet, disturbance(*runs), loaders=[asdict(LoaderRun.of(run)) for run in runs])

    def table(self, headers: Any, rows: Any, caption: str = "") -> None:
        """Keep a table as texts."""
        texts = [[cell(value) for value in row] for row in rows]
        self._tables.append({"caption": caption, "headers": [*headers], "rows": texts})

    def _keep(self, key: str, disturbed: str, **shown: Any) -> None:
        self.disturbed += [f"{key}: {disturbed}"] if disturbed else []
        self.runs[key] = {
            "machine": machine(),
            "date": datetime.now(UTC).date().isoformat(),
            "quality": self.patience.quality(),
            "notebook": self.notebook,
            **shown,
        }


def machine() -> str:
    """Say on which machine this runs."""
    cores = count_of(usable_cores(physical=True), "physical core")
    return f"{cores}, {platform.machine()}, {platform.system()}"


def record(notebook: str, patience: Patience, *, first: bool = False) -> Recorder:
    """Run the cells of a notebook, and return what it measured; only up to the `first` measurement if so."""
    recorder, names = Recorder(notebook, patience), {}
    script = (REPOSITORY / f"solutions/{notebook}.py").read_text(encoding="utf-8")
    with patience.patched():
        for cell_of_notebook in jupytext.reads(script, fmt="py:percent").cells:
            if cell_of_notebook.cell_type == "code":
                with redirect_stdout(StringIO()):
                    exec(compile(cell_of_notebook.source, notebook, "exec"), names)
                names |= recorder.names
            if first and recorder.runs:
                break
    return recorder


def main(arguments: list[str] | None = None) -> int:
    """Record what is not recorded yet. Returns the exit status: 1 where something is left."""
    parser = options(__doc__, minutes=(15.0, 0.0), notebooks=(None, 1))
    parser.add_argument("--minutes", type=float, help="how long to wait for a quiet machine")
    parser.add_argument("--again", action="store_true", help="record all of them anew")
    asked = parser.parse_args(arguments)
    smallest, patience, left = asked.notebooks is not None, Patience(asked.minutes), 0
    runs = json.loads(RECORD.read_text(encoding="utf-8"))
    for notebook in NOTEBOOKS[: asked.notebooks]:
        whole = [run for run in runs.values() if {"tables", "loaders"} & {*run}]
        dates = [run["date"] for run in whole if run["notebook"] == notebook]
        if dates and not (smallest or asked.again):
            print(f"{notebook}: recorded on {dates[0]}")
            continue
        start, folder = time.monotonic(), Path.cwd()
        with TemporaryDirectory() as scratch:
            os.chdir(scratch)
            try:
                found = record(notebook, patience, first=smallest)
            finally:
                os.chdir(folder)
        took = f"{time.monotonic() - start:.0f} s"
        if smallest or found.disturbed:
            left += not smallest
            why = "; ".join(found.disturbed) or "the smallest case"
            print(f"{notebook}: nothing is recorded ({why}), {took}")
            continue
        runs = {key: run for key, run in runs.items() if run["notebook"] != notebook} | found.runs
        RECORD.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{notebook}: {', '.join(found.runs)}, {took}")
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main())
