"""Timelines, in matplotlib, of a loader's run and of a profiler's trace: lanes with a bar for each batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from ...errors import InputError
from ...model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE
from ...simulate import Simulation, Trace
from ...tables import count_of, percent
from ...units import Q_, format_quantity, positive_int
from .figure import (
    GRAY,
    Options,
    StaticFigure,
    legend,
    name_lanes,
    new_figure,
    render_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HEIGHT = 0.72  # of a bar in its lane
_NARROW = 0.021  # of the width: a shorter bar has no room for its number
_GAP = 1e-6  # ms: less is rounding
# Sky blue is what the workers' blue has made; gray outlines it, as it is too light on its own.
READY: Options = {"facecolor": "#56B4E9", "linewidth": 0.0}
WAITS: Options = {"facecolor": "#ececec", "edgecolor": GRAY, "hatch": "////", "linewidth": 0.0}
# A worker whose turn at the storage has not come.
_QUEUED: Options = {"facecolor": "none", "edgecolor": STORAGE.color, "hatch": "....", "linewidth": 0.0}
HELD: Options = {"facecolor": "#e3f1fb", "edgecolor": CPU.color, "hatch": "xx", "linewidth": 0.0}
_LOOP: Options = {"facecolor": CPU.color, "edgecolor": "white", "linewidth": 1.2}
_COMPUTES: Options = {"facecolor": ACCELERATOR.color, "linewidth": 0.0}
_COPIES: Options = {"facecolor": LINK.color, "edgecolor": "white", "hatch": LINK.hatch, "linewidth": 0.0}
_IDLE: Options = {"facecolor": "white", "edgecolor": GRAY, "hatch": "....", "linewidth": 0.0}


def _bar(axes: Axes, lane: int, start: float, end: float, resource: str, batch: int, width: float) -> None:
    """One batch in its lane, with its number where that has room in a figure of so many milliseconds."""
    look = RESOURCES[resource]
    style: Options = {"facecolor": look.color, "edgecolor": "white", "linewidth": 1.2}
    axes.barh(lane, end - start, left=start, height=_HEIGHT, **style)
    _number(axes, lane, max(start, 0.0), min(end, width), batch, look.ink, width)


def _number(axes: Axes, lane: int, start: float, end: float, batch: int, ink: str, width: float) -> None:
    if end - start > _NARROW * width:
        style: Options = {"ha": "center", "va": "center", "color": ink, "fontsize": 9}
        axes.text((start + end) / 2, lane, str(batch + 1), **style)


# --- of a loader ------------------------------------------------------------------------------------------


def loader_timeline(run: Trace | Simulation, *, batches: int = 24) -> StaticFigure:
    """Worker lanes with numbered batches, the queue's depth, and the accelerator with its waits hatched.

    Parameters
    ----------
    run : Trace or Simulation
        Of a simulation its first replica, without the warm-up.
    batches : int
        How many to draw, from the start of the run; `Trace.after` leaves out the first ones.
    """
    run = _trace(run)
    trace = run.first(positive_int(batches, "batches"))
    end = float(trace.step_end[-1])
    # Workers are already at later batches by then, which are seen as far as the figure goes.
    seen = run.first(int(np.flatnonzero(run.prepare_start < end)[-1]) + 1)
    inline = bool((trace.worker < 0).all())
    copies = bool((trace.copied - trace.copy_start > _GAP).any())
    lanes = [_worker_name(worker) for worker in np.unique(seen.worker)]
    below = ["copy", ACCELERATOR.label] if copies else [ACCELERATOR.label]
    heights = [0.36 * len(lanes), *([] if inline else [0.85]), 0.36 * len(below)]
    figure = new_figure(9.6, 1.75 + sum(heights))
    parts = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    _draw_workers(parts[0], seen, lanes, end)
    held = 0 if inline else _draw_queue(parts[1], seen, end)
    waits = _draw_accelerator(parts[-1], trace, below, end)
    title = f"The GPU waits {percent(trace.stall)} of the time"
    figure.suptitle(title, fontsize=12, fontweight="bold")
    reads = trace.read_start is not None
    entries: list[tuple[str, Options, bool]] = [
        ("waiting for the drive", _QUEUED, reads),
        ("reading a batch", {"color": STORAGE.color}, reads),
        ("preparing a batch", {"color": CPU.color}, True),
        ("ready for the loop", READY, not inline),
        ("ready, held back by an earlier batch", HELD, held > 0),
        ("copying", {"color": LINK.color}, copies),
        ("computing", {"color": ACCELERATOR.color}, True),
        ("waiting", WAITS, True),
    ]
    legend(figure, {label: options for label, options, is_drawn in entries if is_drawn})
    for axes in parts[:-1]:
        axes.tick_params(axis="x", labelbottom=False)
    # A stretch from the middle begins with batches that were begun before it.
    start = "the start" if seen.prepare_start.min() >= 0 else "the start of this stretch"
    parts[-1].set(xlim=(0, end), xlabel=f"time since {start} (ms), {trace.source}")
    queue = "" if inline else ", and between them the number of batches in the queue"
    columns: dict[str, tuple[np.ndarray, ...]] = {"from (ms)": (trace.prepare_start,)}
    if trace.read_start is not None and trace.read_done is not None:
        columns["read (ms)"] = (trace.read_start, trace.read_done)
    columns |= {"to (ms)": (trace.prepared,), "received (ms)": (trace.received,)}
    columns |= {"step (ms)": (trace.step_start, trace.step_end), "waited (ms)": (waits,)}
    return render_figure(
        figure,
        alt=f"Timeline with a lane for each of {', '.join(lanes + below)}{queue}.",
        caption=f"{trace.source.capitalize()} run, {count_of(len(trace), 'batch')}.",
        found=(_loader_summary(trace, waits, held),),
        headers=["batch", "prepared by", *columns],
        rows=[
            (
                int(trace.batch[i]) + 1,
                _worker_name(trace.worker[i]),
                *(" to ".join(f"{times[i]:.1f}" for times in column) for column in columns.values()),
            )
            for i in range(len(trace))
        ],
    )


def _trace(run: Trace | Simulation) -> Trace:
    if isinstance(run, Simulation):
        trace = run.trace()
        return trace.after(run.warm_up) if run.warm_up else trace
    if not isinstance(run, Trace):
        raise InputError(
            f"loader_timeline draws a trace or a simulation, got {type(run).__name__}. "
            "Pass pipeline.simulate(), or the trace of a measurement."
        )
    return run


def _worker_name(worker: int) -> str:
    return "training loop" if worker < 0 else f"worker {worker + 1}"


def _draw_workers(axes: Axes, trace: Trace, lanes: list[str], end: float) -> None:
    for i, batch in enumerate(trace.batch):
        y, start = lanes.index(_worker_name(trace.worker[i])), trace.prepare_start[i]
        if trace.read_start is not None and trace.read_done is not None:
            axes.barh(y, trace.read_start[i] - start, left=start, height=_HEIGHT, **_QUEUED)
            start = trace.read_done[i]
            _bar(axes, y, trace.read_start[i], start, STORAGE.name, batch, end)
        _bar(axes, y, start, trace.prepared[i], CPU.name, batch, end)
    name_lanes(axes, lanes)


def _draw_queue(axes: Axes, trace: Trace, end: float) -> int:
    """Draw finished batches, on top those that a missing one holds back; return the most of these at once."""
    both = [trace.queue_depth(in_turn=in_turn) for in_turn in (False, True)]
    times = np.unique(np.concatenate(([0.0, end], *(changes for changes, _ in both))))
    times = times[(times >= 0) & (times <= end)]
    # The value of each step function from each time on; 0 before its first change.
    total, in_turn = (
        np.concatenate(([0], depths))[np.searchsorted(changes, times, side="right")]
        for changes, depths in both
    )
    axes.fill_between(times, in_turn, step="post", **READY)
    if (total > in_turn).any():
        axes.fill_between(times, in_turn, total, step="post", **HELD)
    axes.plot(times, total, drawstyle="steps-post", color=GRAY, linewidth=1.2)
    axes.set_ylim(0, max(2, total.max() + 0.5))
    axes.locator_params(axis="y", nbins=3, integer=True, steps=None)
    axes.set_ylabel("batches\nin queue", rotation=0, ha="right", va="center")
    return int((total - in_turn).max())


def _draw_accelerator(axes: Axes, trace: Trace, lanes: list[str], end: float) -> np.ndarray:
    """The accelerator's steps and its waits; returns how long it waited for each batch [ms]."""
    y = lanes.index(ACCELERATOR.label)
    free = np.concatenate(([0.0], trace.step_end[:-1]))
    waits: np.ndarray = np.maximum(trace.step_start - free, 0.0)
    for i, batch in enumerate(trace.batch):
        if trace.copied[i] - trace.copy_start[i] > _GAP:
            _bar(axes, lanes.index("copy"), trace.copy_start[i], trace.copied[i], LINK.name, batch, end)
        _bar(axes, y, trace.step_start[i], trace.step_end[i], ACCELERATOR.name, batch, end)
        if waits[i] > _GAP:
            axes.barh(y, waits[i], left=free[i], height=_HEIGHT, **WAITS)
    name_lanes(axes, lanes)
    return waits


def _loader_summary(trace: Trace, waits: np.ndarray, held: int) -> str:
    busy, stall = percent(trace.utilization), percent(trace.stall)
    share = f"The GPU is busy {busy} and waits {stall} of the time"
    count, longest = int((waits > _GAP).sum()), int(np.argmax(waits))
    if not count:
        return f"{share}."
    times = "once" if count == 1 else f"{count} times"
    time = format_quantity(Q_(float(waits[longest]), "ms"), 3)
    summary = f"{share}, {times}; longest for batch {trace.batch[longest] + 1}: {time}."
    if not held:
        return summary
    were = "batch was" if held == 1 else "batches were"
    return f"{summary} Up to {held} finished {were} held back by an earlier one."


# --- of a profiler's trace --------------------------------------------------------------------------------


class TraceSteps(Protocol):
    """The steps of a trace one by one, in milliseconds since the first of them began."""

    asked: np.ndarray  # when the loop asked for each batch
    received: np.ndarray  # when it had it
    end: np.ndarray  # when it asked for the next
    busy: np.ndarray | None  # when the GPU was at work, as spans; None where there is none
    computing: np.ndarray | None  # with a kernel

    def __len__(self) -> int:
        """Return how many steps there are."""

    def first(self, steps: int) -> Self:
        """Return the first so many steps."""

    @property
    def amounts(self) -> dict[str, np.ndarray]:
        """Milliseconds of each step by what they went to."""


def trace_timeline(finding: object, *, batches: int = 10) -> StaticFigure:
    """Lanes for the training loop and the GPU: steps, waits for data, copies, and when the GPU is idle.

    Parameters
    ----------
    finding : object
        With `steps`, such as `starvelab_doctor.read_trace` returns. Of several ranks it is drawn for that
        which waits most.
    batches : int
        How many to draw, from the first that counts.
    """
    found: TraceSteps | None = getattr(finding, "steps", None)
    if found is None:
        raise InputError(
            f"trace_timeline draws the steps of a trace, and this {type(finding).__name__} holds none. Pass "
            "what read_trace returns of a trace with two steps or more."
        )
    steps = found.first(positive_int(batches, "batches"))
    has_gpu = steps.busy is not None
    lanes = ["training loop", "GPU"] if has_gpu else ["training loop"]
    figure = new_figure(9.6, 1.3 + 0.5 * len(lanes))
    axes = figure.add_subplot()
    _spans(axes, 0, steps.asked, steps.received - steps.asked, WAITS)
    _spans(axes, 0, steps.received, steps.end - steps.received, _LOOP)
    for number, (start, end) in enumerate(zip(steps.received, steps.end, strict=True)):
        _number(axes, 0, start, end, number, CPU.ink, float(steps.end[-1]))
    _draw_gpu(axes, steps)
    name_lanes(axes, lanes)
    axes.set(xlim=(0, float(steps.end[-1])), xlabel="time since the first of these steps (ms), from a trace")
    entries = {"the loop works on a step": _LOOP}
    if has_gpu:
        entries |= {"computing": _COMPUTES, "only copying": _COPIES}
        entries |= {"waiting for data, and idle meanwhile": WAITS, "idle for another reason": _IDLE}
    else:
        entries |= {"waiting for data": WAITS}
    legend(figure, entries)
    waits, *others = ((f"{name} (ms)", times) for name, times in steps.amounts.items())
    columns = dict([("from (ms)", steps.asked), waits, ("to (ms)", steps.end), *others])
    return render_figure(
        figure,
        alt=f"Timeline with a lane for each of {', '.join(lanes)}.",
        caption=f"From a trace, {count_of(len(steps), 'batch')}.",
        found=(_trace_summary(steps),),
        headers=["step", *columns],
        rows=[(i + 1, *(f"{times[i]:.1f}" for times in columns.values())) for i in range(len(steps))],
    )


def _spans(axes: Axes, lane: int, starts: Iterable[float], lengths: Iterable[float], style: Options) -> None:
    """Bars of one style, drawn as one shape: a trace may have thousands of kernels."""
    axes.broken_barh(list(zip(starts, lengths, strict=True)), (lane - _HEIGHT / 2, _HEIGHT), **style)


def _draw_gpu(axes: Axes, steps: TraceSteps) -> None:
    if steps.busy is None or steps.computing is None:
        return
    # The ground of the lane is what shows where nothing runs: idle, in a wait or not.
    _spans(axes, 1, steps.asked, steps.received - steps.asked, WAITS)
    _spans(axes, 1, steps.received, steps.end - steps.received, _IDLE)
    # White below, so that no hatch of the ground shines through that of a copy.
    for spans, style in ((steps.busy, _COPIES), (steps.computing, _COMPUTES)):
        drawn = spans[spans[:, 0] < steps.end[-1]]
        _spans(axes, 1, drawn[:, 0], drawn[:, 1] - drawn[:, 0], style)


def _trace_summary(steps: TraceSteps) -> str:
    whole = float(np.sum(steps.end - steps.asked))
    waited, *gpu = (percent(float(np.sum(times)) / whole) for times in steps.amounts.values())
    loop = f"The training loop waits {waited} of the time for data"
    if not gpu:
        return f"{loop}. The trace holds no GPU."
    return (
        f"{loop}. The GPU computes {gpu[0]} of the time, only copies {gpu[1]}, "
        f"is idle in the waits {gpu[2]}, and idle otherwise {gpu[3]}."
    )
