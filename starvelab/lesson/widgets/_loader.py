"""The loader that a learner writes: saved for the notebooks that follow, and held against a real one."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ... import runtime
from ...host import whole_file
from ...model.parts import Accelerator, Workers
from ...pipeline import Pipeline
from ...units import Q_
from .. import notices
from ..notices import say
from ._evidence import QuietRun, show_disturbed

if TYPE_CHECKING:  # each notebook has widgets, and few of them measure
    from ...measure import Measurement

FILE = "loader.txt"
# Begins what a later notebook has added to the loader.
MARK = "\n# --- repaired ---\n"
MAX_BYTES = 100_000
BATCHES = 120
HEADERS = ("workers", "predicted", "measured", "error", "one batch takes a worker")
StepEnds: TypeAlias = Callable[[list[float], float, int, int, float], Sequence[float]]


def step_ends(prepare: list[float], step: float, workers: int, prefetch: int, start_up: float) -> list[float]:
    """Return when the step on each batch ends [ms], as the lab's own simulation says."""
    pipeline = Pipeline(
        batch_size=1,
        workers=Workers(workers, prefetch=prefetch, start_up=Q_(start_up, "ms")),
        hardware=Accelerator(rate=Q_(step, "ms"), in_flight=1),
    )
    trace = pipeline.simulate(prepare_times=Q_(prepare, "ms"), warm_up=0).trace()
    ends: list[float] = trace.step_end.tolist()
    return ends


def save_loader(loader: StepEnds) -> None:
    """Save the cell of a loader beside the notebook; one that repairs `step_ends` is added to it."""
    if runtime.current().is_grading:
        return
    cell = "".join(linecache.getlines(loader.__code__.co_filename))
    if loader.__name__ != step_ends.__name__:
        cell = _saved().partition(MARK)[0] + MARK + cell
    with whole_file(Path(FILE)) as part:
        part.write_text(cell, encoding="utf-8")
    say(f"Your loader is saved in {FILE}, for the notebooks that follow.")


def load_loader(name: str = "repaired") -> StepEnds:
    """Return the learner's saved loader, as "step_ends" or "repaired"; the lab's if there is none."""
    # Any: whatever the text defines.
    names: dict[str, Any] = {"np": np, step_ends.__name__: step_ends}
    text = "" if runtime.current().is_grading else _saved()
    try:
        cell = ast.parse(text, FILE)
        # What the cell shows below its loader is of the notebook that saved it.
        cell.body = [statement for statement in cell.body if not isinstance(statement, ast.Expr)]
        exec(compile(cell, FILE, "exec"), names)
    except Exception as error:
        say(f"{FILE} does not run ({type(error).__name__}: {error}), so this is the lab's own loader.")
        return step_ends
    say(
        f"This is your loader, from {FILE}." if text else "No loader is saved here, so this is the lab's own."
    )
    found: StepEnds = names.get(name, names[step_ends.__name__])
    return found


def _saved() -> str:
    path = Path(FILE)
    return path.read_text(encoding="utf-8", errors="replace")[:MAX_BYTES] if path.is_file() else ""


@dataclass(frozen=True)
class LoaderRun:
    """What a real loader did: how long its workers took for each batch, and how often a batch came."""

    workers: int
    prepare: list[float]  # ms of a worker, by batch
    step: float  # ms
    period: float  # ms from batch to batch
    rate: float  # img/s

    @classmethod
    def of(cls, run: Measurement) -> LoaderRun:
        """Return what counts of a measurement."""
        return cls(
            workers=1 + int(run.trace.worker.max()),
            prepare=(run.trace.prepared - run.trace.prepare_start).round(3).tolist(),
            step=run.step_time.m_as("ms"),
            period=run.period.m_as("ms"),
            rate=run.throughput.m_as("img/s"),
        )


def beside_real(loader: StepEnds, runs: Sequence[Measurement], *, quiet: str = "") -> None:
    """Show what a loader predicts, and what real ones reached with these numbers of workers.

    Parameters
    ----------
    loader : function
        Takes the times [ms] of a worker for each batch, that of a step, workers, prefetch and start-up, and
        returns when each step ends.
    runs : sequence of Measurement
        The first has one worker: the loader gets the times of this worker.
    quiet : str
        Key of a recorded quiet run, which is offered in place of disturbed runs.
    """
    from ...measure import disturbance

    disturbed = disturbance(*runs)

    def chosen(recorded: QuietRun) -> str:
        rows, said = _compare(loader, [LoaderRun(**run) for run in recorded.loaders])
        return notices.widget_table(HEADERS, rows) + notices.paragraphs(said)

    if disturbed and not runtime.current().is_grading:
        show_disturbed(quiet, disturbed, chosen=chosen)
        return
    rows, said = _compare(loader, [LoaderRun.of(run) for run in runs])
    notices.table(HEADERS, rows)
    say(said)


def _compare(loader: StepEnds, runs: Sequence[LoaderRun]) -> tuple[list[list[Any]], str]:
    """Return a row for each run, with what the loader predicts, and what is to be seen."""
    took, rows = [sum(run.prepare) / len(run.prepare) for run in runs], []
    for run, each in zip(runs, took, strict=True):
        ends = loader((runs[0].prepare * BATCHES)[:BATCHES], run.step, run.workers, 2, 0.0)
        period = (ends[-1] - ends[BATCHES // 2 - 1]) / (BATCHES // 2)
        predicted = run.rate * run.period / period
        percent = round(100 * (predicted / run.rate - 1))  # of a float, -0.2 % would be -0 %
        error = f"{percent:+d} %" if percent else "0 %"
        rows.append([run.workers, Q_(predicted, "img/s"), Q_(run.rate, "img/s"), error, Q_(each, "ms")])
    longer = took[-1] / took[0]
    said = f"Each of {runs[-1].workers} workers takes {longer:.1f} times as long for a batch as one alone."
    return rows, said
