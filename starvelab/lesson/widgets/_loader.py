"""The loader that a learner writes: saved for the notebooks that follow, and held against a real one."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ... import runtime
from ...host import whole_file
from ...pipeline import Pipeline
from ...units import Q_, Quantity
from ..endings import step_ends
from ..show.figure import say, table
from ._report import save_measurement

FILE = "loader.txt"
# Begins what a later notebook has added to the loader.
MARK = "\n# --- repaired ---\n"
MAX_BYTES = 100_000
BATCHES = 120
StepEnds: TypeAlias = Callable[[list[float], float, int, int, float], Sequence[float]]


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
    """Return the loader that the learner has saved, as "step_ends" or "repaired"; the lab's where none is."""
    # Any: whatever the text defines.
    names: dict[str, Any] = {"np": np, step_ends.__name__: step_ends}
    text = "" if runtime.current().is_grading else _saved()
    try:
        exec(compile(text, FILE, "exec"), names)
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


def beside_real(loader: StepEnds, pipeline: Pipeline) -> None:
    """Show what a loader predicts for 1, 2 and 4 workers, and what a real one reaches on this machine.

    The loader gets the times that one worker took for its batches when it was alone.
    """
    rows, alone, took = [], [0.0], 0.0
    for workers in (1, 2, 4):
        real = pipeline.replace(workers=workers).measure(seconds="0.7 s", progress=False)
        times = (real.trace.prepared - real.trace.prepare_start).tolist()
        alone, took = (times if workers == 1 else alone), sum(times) / len(times)
        ends = loader((alone * BATCHES)[:BATCHES], real.step_time.m_as("ms"), workers, 2, 0.0)
        period = Q_((ends[-1] - ends[BATCHES // 2 - 1]) / (BATCHES // 2), "ms")
        predicted: Quantity = (real.throughput * (real.period / period)).to(real.throughput.units)
        save_measurement(f"own loader, {workers} workers", real.throughput, predicted)
        error = f"{(predicted / real.throughput).m_as('') - 1:+.0%}".replace("%", " %")
        rows.append([workers, predicted, real.throughput, error, Q_(took, "ms")])
    table(["workers", "your loader", "measured", "error", "one batch takes a worker"], rows)
    times_as_long = took / (sum(alone) / len(alone))
    say(f"Beside three others, a worker takes {times_as_long:.1f} times as long for a batch as alone.")
