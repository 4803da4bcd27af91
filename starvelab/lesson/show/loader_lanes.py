"""The timeline of a loader: workers, the queue between them and the loop, and the accelerator's gaps."""

from __future__ import annotations

import numpy as np

from ...errors import InputError
from ...model.resources import ACCELERATOR, CPU, LINK, STORAGE
from ...simulate import Simulation, Trace
from ...simulate.trace import counted
from ...tables import percent
from ...units import Q_, format_quantity, positive_int
from .canvas import Axes, Figure, new_figure, patch
from .figure import StaticFigure, render_figure
from .style import COLORS, GRAY, INK, Options

HEIGHT = 0.72  # of a bar in its lane
NARROW = 0.021  # of the width: a shorter bar has no room for its number
_GAP = 1e-6  # ms: less is rounding
# Sky blue is what the workers' blue has made; gray outlines it, as it is too light on its own.
_READY: Options = {"facecolor": "#56B4E9", "linewidth": 0.0}
WAITS: Options = {"facecolor": "#ececec", "edgecolor": GRAY, "hatch": "////", "linewidth": 0.0}
# A worker that has asked a storage which serves another one first.
_ASKED: Options = {"facecolor": "none", "edgecolor": STORAGE.color, "hatch": "....", "linewidth": 0.0}
_HELD: Options = {"facecolor": "#e3f1fb", "edgecolor": CPU.color, "hatch": "xx", "linewidth": 0.0}


def loader_timeline(run: Trace | Simulation, *, batches: int = 24) -> StaticFigure:
    """Worker lanes with numbered batches, the queue's depth, and the accelerator with its waits hatched.

    Parameters
    ----------
    run : Trace or Simulation
        Of a simulation its first replica, without the warm-up.
    batches : int
        How many to draw, from the start of the run; `Trace.after` leaves out the first ones.

    Raises
    ------
    InputError
    """
    run = _trace(run)
    trace = run.first(positive_int(batches, "batches"))
    end = float(trace.step_end[-1])
    # Workers are already at later batches by then, which are seen as far as the figure goes.
    seen = run.first(int(np.flatnonzero(run.prepare_start < end)[-1]) + 1)
    inline = bool((trace.worker < 0).all())
    copies = bool((trace.copied - trace.copy_start > _GAP).any())
    lanes = [_named(worker) for worker in np.unique(seen.worker)]
    below = ["copy", ACCELERATOR.name] if copies else [ACCELERATOR.name]
    heights = [0.36 * len(lanes), *([] if inline else [0.85]), 0.36 * len(below)]
    figure = new_figure(9.6, 1.75 + sum(heights))
    parts = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    _draw_workers(parts[0], seen, lanes, end)
    held = 0
    if not inline:
        held = _draw_queue(parts[1], seen, end)
    waits = _draw_accelerator(parts[-1], trace, below, end)
    title = f"The accelerator waits {percent(trace.stall)} of the time"
    figure.suptitle(title, fontsize=12, fontweight="bold")
    _legend(figure, inline=inline, held=held > 0, copies=copies, reads=trace.read_start is not None)
    for axes in parts:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="x", labelbottom=axes is parts[-1])
    parts[-1].set_xlim(0, end)
    # A stretch from the middle begins with batches that were begun before it.
    start = "the start" if seen.prepare_start.min() >= 0 else "the start of this stretch"
    parts[-1].set_xlabel(f"time since {start} (ms), {trace.source}")
    summary = _summary(trace, waits, held)
    return render_figure(
        figure,
        alt=f"Timeline with a lane for each of {', '.join(lanes + below)}{_and_queue(inline)}. {summary}",
        caption=f"{trace.source.capitalize()} run, {counted(len(trace))}. {summary}",
        headers=[
            *("batch", "prepared by", "from (ms)"),
            *([] if trace.read_start is None else ["read (ms)"]),
            *("to (ms)", "received (ms)", "step (ms)", "waited (ms)"),
        ],
        rows=_rows(trace, waits),
    )


def _trace(run: Trace | Simulation) -> Trace:
    if isinstance(run, Simulation):
        trace = run.trace()
        return trace.after(run.warm_up) if run.warm_up else trace
    if not isinstance(run, Trace):
        raise InputError(
            f"loader_timeline draws a trace or a simulation, got {type(run).__name__}. "
            "Pass simulate(loader), or the trace of a record."
        )
    return run


def _named(worker: int) -> str:
    return "training loop" if worker < 0 else f"worker {worker + 1}"


def _bar(axes: Axes, y: float, start: float, end: float, resource: str, number: int, width: float) -> None:
    bar: Options = {"color": COLORS[resource], "edgecolor": "white", "linewidth": 1.2, "height": HEIGHT}
    axes.barh(y, end - start, left=start, **bar)
    start, end = max(start, 0.0), min(end, width)
    if end - start > NARROW * width:
        middle = (start + end) / 2
        axes.text(middle, y, str(number + 1), ha="center", va="center", color=INK[resource], fontsize=9)


def _draw_workers(axes: Axes, trace: Trace, lanes: list[str], end: float) -> None:
    y = [lanes.index(_named(worker)) for worker in trace.worker]
    begins = trace.prepare_start
    if trace.read_start is not None and trace.read_done is not None:
        asks, begins = begins, trace.read_done
        for i, batch in enumerate(trace.batch):
            axes.barh(y[i], trace.read_start[i] - asks[i], left=asks[i], height=HEIGHT, **_ASKED)
            _bar(axes, y[i], trace.read_start[i], begins[i], STORAGE.name, batch, end)
    for i, batch in enumerate(trace.batch):
        _bar(axes, y[i], begins[i], trace.prepared[i], CPU.name, batch, end)
    _lanes(axes, lanes)


def _draw_queue(axes: Axes, trace: Trace, end: float) -> int:
    """Finished batches as a step area: those next in turn, on top those that a missing one holds back.

    Returns the most that were held back at once.
    """
    times, total, in_turn = _depths(trace, end)
    axes.fill_between(times, in_turn, step="post", **_READY)
    if (total > in_turn).any():
        axes.fill_between(times, in_turn, total, step="post", **_HELD)
    axes.plot(times, total, drawstyle="steps-post", color=GRAY, linewidth=1.2)
    axes.set_ylim(0, max(2, total.max() + 0.5))
    axes.locator_params(axis="y", nbins=3, integer=True, steps=None)
    axes.set_ylabel("batches\nin queue", rotation=0, ha="right", va="center")
    return int((total - in_turn).max())


def _depths(trace: Trace, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times up to `end`, and from each of them on: all finished batches, and those that are next in turn."""
    both = [trace.queue_depth(in_turn=in_turn) for in_turn in (False, True)]
    times = np.unique(np.concatenate(([0.0, end], *(changes for changes, _ in both))))
    times = times[(times >= 0) & (times <= end)]
    total, in_turn = (_at(times, changes, depths) for changes, depths in both)
    return times, total, in_turn


def _at(times: np.ndarray, changes: np.ndarray, depths: np.ndarray) -> np.ndarray:
    """The value of a step function at each of `times`; 0 before its first change."""
    return np.concatenate(([0], depths))[np.searchsorted(changes, times, side="right")]


def _draw_accelerator(axes: Axes, trace: Trace, lanes: list[str], end: float) -> np.ndarray:
    """The accelerator's steps and its waits; returns how long it waited for each batch [ms]."""
    y = lanes.index(ACCELERATOR.name)
    free = np.concatenate(([0.0], trace.step_end[:-1]))
    waits: np.ndarray = np.maximum(trace.step_start - free, 0.0)
    for i, batch in enumerate(trace.batch):
        if trace.copied[i] - trace.copy_start[i] > _GAP:
            _bar(axes, lanes.index("copy"), trace.copy_start[i], trace.copied[i], LINK.name, batch, end)
        _bar(axes, y, trace.step_start[i], trace.step_end[i], ACCELERATOR.name, batch, end)
        if waits[i] > _GAP:
            axes.barh(y, waits[i], left=free[i], height=HEIGHT, **WAITS)
    _lanes(axes, lanes)
    return waits


def _lanes(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def _legend(figure: Figure, *, inline: bool, held: bool, copies: bool, reads: bool) -> None:
    entries = [
        *([patch("Patch", **_ASKED, label="waiting for the storage")] if reads else []),
        *([patch("Patch", color=STORAGE.color, label="reading a batch")] if reads else []),
        patch("Patch", color=CPU.color, label="preparing a batch"),
        *([] if inline else [patch("Patch", **_READY, label="ready for the loop")]),
        *([patch("Patch", **_HELD, label="ready, held back by an earlier batch")] if held else []),
        *([patch("Patch", color=LINK.color, label="copying")] if copies else []),
        patch("Patch", color=ACCELERATOR.color, label="computing"),
        patch("Patch", **WAITS, label="waiting"),
    ]
    figure.legend(
        handles=entries,
        loc="outside lower center",
        ncols=len(entries),
        frameon=False,
        fontsize=9,
        handlelength=1.6,
        columnspacing=1.4,
    )


def _summary(trace: Trace, waits: np.ndarray, held: int) -> str:
    share = (
        f"The accelerator is busy {percent(trace.utilization)} and waits {percent(trace.stall)} of the time"
    )
    if not (waits > _GAP).any():
        return f"{share}."
    longest = int(np.argmax(waits))
    times = "once" if (waits > _GAP).sum() == 1 else f"{(waits > _GAP).sum()} times"
    summary = (
        f"{share}, {times}; longest for batch {trace.batch[longest] + 1}: "
        f"{format_quantity(Q_(float(waits[longest]), 'ms'), 3)}."
    )
    if not held:
        return summary
    were = "batch was" if held == 1 else "batches were"
    return f"{summary} Up to {held} finished {were} held back by an earlier one."


def _and_queue(inline: bool) -> str:
    return "" if inline else ", and between them the number of batches in the queue"


def _rows(trace: Trace, waits: np.ndarray) -> list[list[object]]:
    return [
        [
            int(trace.batch[i]) + 1,
            _named(trace.worker[i]),
            _ms(trace.prepare_start[i]),
            *_read(trace, i),
            _ms(trace.prepared[i]),
            _ms(trace.received[i]),
            f"{_ms(trace.step_start[i])} to {_ms(trace.step_end[i])}",
            _ms(waits[i]),
        ]
        for i in range(len(trace))
    ]


def _read(trace: Trace, i: int) -> list[str]:
    if trace.read_start is None or trace.read_done is None:
        return []
    return [f"{_ms(trace.read_start[i])} to {_ms(trace.read_done[i])}"]


def _ms(value: float) -> str:
    return f"{value:.1f}"
