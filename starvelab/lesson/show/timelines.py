"""Timelines of a loader's run and of a profiler's trace: lanes with a box for each batch, and a table."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from ...errors import InputError
from ...model.resources import ACCELERATOR, CPU, LINK
from ...simulate import Simulation, Trace
from ...tables import count_of, percent
from ...units import Q_, format_quantity, positive_int
from .drawing import HATCHED
from .figure import StaticFigure, render_figure
from .lanes import GAP, Boxes, boxes_of, draw_lanes, held_back, waits_of, worker_name

_COPIES = {"fill": LINK.color, "stroke": "currentColor", "stroke_dasharray": "2 2"}
_IDLE = {"fill": "none", "stroke": "currentColor", "stroke_opacity": "0.4"}


# --- of a loader ------------------------------------------------------------------------------------------


def loader_timeline(run: Trace | Simulation, *, batches: int = 24) -> StaticFigure:
    """Draw worker lanes with numbered batches, the queue's depth, and the GPU with its waits hatched.

    Parameters
    ----------
    run : Trace or Simulation
        For a simulation, its first replica without the warm-up.
    batches : int
        How many to draw, from the start of the run; `Trace.after` leaves out the first ones.
    """
    run = _trace(run)
    trace = run.first(positive_int(batches, "batches"))
    end = float(trace.step_end[-1])
    # Workers are already at later batches by then, which are seen as far as the figure goes.
    seen = run.first(int(np.flatnonzero(run.prepare_start < end)[-1]) + 1)
    kinds, waits = boxes_of(seen, end), waits_of(trace)
    lanes = ", ".join(dict.fromkeys(kind.lane for kind in kinds))
    columns: dict[str, tuple[np.ndarray, ...]] = {"from (ms)": (trace.prepare_start,)}
    if trace.read_start is not None and trace.read_done is not None:
        columns["read (ms)"] = (trace.read_start, trace.read_done)
    columns |= {"to (ms)": (trace.prepared,), "received (ms)": (trace.received,)}
    columns |= {"step (ms)": (trace.step_start, trace.step_end), "waited (ms)": (waits,)}
    alt = f"Timeline with a lane for each of {lanes}."
    return render_figure(
        draw_lanes(kinds, end, title=f"The GPU waits {percent(trace.stall)} of the time", description=alt),
        alt=alt,
        caption=f"{trace.source.capitalize()} run, {count_of(len(trace), 'batch')}.",
        found=(_loader_summary(trace, waits, held_back(seen, end)),),
        headers=["batch", "prepared by", *columns],
        rows=[
            (
                int(trace.batch[i]) + 1,
                worker_name(trace.worker[i]),
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


def _loader_summary(trace: Trace, waits: np.ndarray, held: int) -> str:
    busy, stall = percent(trace.utilization), percent(trace.stall)
    share = f"The GPU is busy {busy} and waits {stall} of the time"
    count, longest = int((waits > GAP).sum()), int(np.argmax(waits))
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
    """Draw lanes for the training loop and the GPU: steps, waits for data, copies, and when the GPU is idle.

    Parameters
    ----------
    finding : object
        With `steps`, such as `starvelab_doctor.read_trace` returns. Of several ranks the one that waits most
        is drawn.
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
    waits, *others = ((f"{name} (ms)", times) for name, times in steps.amounts.items())
    columns = dict([("from (ms)", steps.asked), waits, ("to (ms)", steps.end), *others])
    kinds, summary = _of_trace(steps), _trace_summary(steps)
    alt = f"Timeline with a lane for each of {', '.join(dict.fromkeys(kind.lane for kind in kinds))}."
    return render_figure(
        draw_lanes(kinds, float(steps.end[-1]), title=summary.partition(".")[0], description=alt),
        alt=alt,
        caption=f"From a trace, {count_of(len(steps), 'batch')}.",
        found=(summary,),
        headers=["step", *columns],
        rows=[(i + 1, *(f"{times[i]:.1f}" for times in columns.values())) for i in range(len(steps))],
    )


def _of_trace(steps: TraceSteps) -> list[Boxes]:
    loop, chip, numbers = "training loop", ACCELERATOR.label, np.arange(len(steps))
    waits, works = "waiting for data", "the loop works on a step"
    kinds = [
        Boxes(waits, loop, steps.asked, steps.received, HATCHED),
        Boxes(works, loop, steps.received, steps.end, {"fill": CPU.color}, numbers, CPU.ink),
    ]
    if steps.busy is None or steps.computing is None:
        return kinds
    # What is drawn later covers what is drawn before it: a kernel covers the copies and the idle times.
    return [
        *kinds,
        Boxes("idle for another reason", chip, steps.asked[:1], steps.end[-1:], _IDLE),
        Boxes("waiting for data, and idle meanwhile", chip, steps.asked, steps.received, HATCHED),
        Boxes("only copying", chip, steps.busy[:, 0], steps.busy[:, 1], _COPIES),
        Boxes("computing", chip, steps.computing[:, 0], steps.computing[:, 1], {"fill": ACCELERATOR.color}),
    ]


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
