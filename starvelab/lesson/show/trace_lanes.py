"""The timeline of a profiler's trace: the training loop with its waits, and what the GPU does meanwhile."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...errors import InputError
from ...model.resources import ACCELERATOR, CPU, LINK
from ...simulate.trace import counted
from ...tables import percent
from ...units import positive_int
from .axes import bare
from .canvas import Axes, Figure, new_figure, patch
from .figure import StaticFigure, render_figure
from .loader_lanes import HEIGHT, NARROW, WAITS
from .style import GRAY, INK, Options

_LOOP: Options = {"facecolor": CPU.color, "edgecolor": "white", "linewidth": 1.2}
_COMPUTES: Options = {"facecolor": ACCELERATOR.color, "linewidth": 0.0}
_COPIES: Options = {"facecolor": LINK.color, "edgecolor": "white", "hatch": LINK.hatch, "linewidth": 0.0}
_IDLE: Options = {"facecolor": "white", "edgecolor": GRAY, "hatch": "....", "linewidth": 0.0}


class Steps(Protocol):
    """The steps of a trace, as `read_trace` finds them; all times are milliseconds."""

    def __len__(self) -> int:
        """How many."""

    def first(self, steps: int) -> Steps:
        """The first so many."""

    @property
    def asked(self) -> np.ndarray:
        """When the loop asked for each batch."""

    @property
    def received(self) -> np.ndarray:
        """When it had the batch."""

    @property
    def end(self) -> np.ndarray:
        """When it asked for the next."""

    @property
    def busy(self) -> np.ndarray | None:
        """Starts and ends of what the GPU did; None without a GPU."""

    @property
    def computing(self) -> np.ndarray | None:
        """Starts and ends of its kernels."""

    @property
    def waited(self) -> np.ndarray:
        """How long the loop waited for each batch."""

    @property
    def computed(self) -> np.ndarray:
        """How long the GPU ran kernels."""

    @property
    def copied(self) -> np.ndarray:
        """How long it only copied."""

    @property
    def idle_in_wait(self) -> np.ndarray:
        """How long it was idle while the loop waited."""

    @property
    def idle_otherwise(self) -> np.ndarray:
        """How long it was idle otherwise."""


class Finding(Protocol):
    """What `read_trace` returns."""

    @property
    def steps(self) -> Steps | None:
        """None for a job that was watched and not traced."""


def trace_timeline(finding: Finding, *, batches: int = 10) -> StaticFigure:
    """Lanes for the training loop and the GPU: steps, waits for data, copies, and when the GPU is idle.

    Parameters
    ----------
    finding : JobFinding
        From `starvelab.jobs.read_trace`. Of several ranks it is drawn for that which waits most.
    batches : int
        How many to draw, from the first that counts.

    Raises
    ------
    InputError
    """
    found = getattr(finding, "steps", None)
    if found is None:
        raise InputError(
            f"trace_timeline draws the steps of a trace, and this {type(finding).__name__} holds none. Pass "
            "what read_trace returns of a trace with two steps or more."
        )
    steps: Steps = found.first(positive_int(batches, "batches"))
    has_gpu = steps.busy is not None
    lanes = ["training loop", "GPU"] if has_gpu else ["training loop"]
    figure = new_figure(9.6, 1.3 + 0.5 * len(lanes))
    axes = figure.add_subplot()
    _draw_loop(axes, steps)
    if has_gpu:
        _draw_gpu(axes, steps)
    axes.set_yticks(range(len(lanes)), lanes)
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, float(steps.end[-1]))
    axes.set_xlabel("time since the first of these steps (ms), from a trace")
    bare(axes)
    _legend(figure, has_gpu)
    shares = _summary(steps)
    return render_figure(
        figure,
        alt=f"Timeline with a lane for each of {', '.join(lanes)}. {shares}",
        caption=f"From a trace, {counted(len(steps))}. {shares}",
        headers=_headers(has_gpu),
        rows=_rows(steps),
    )


def _draw_loop(axes: Axes, steps: Steps) -> None:
    width = float(steps.end[-1])
    axes.broken_barh(list(zip(steps.asked, steps.waited, strict=True)), (-HEIGHT / 2, HEIGHT), **WAITS)
    works = steps.end - steps.received
    axes.broken_barh(list(zip(steps.received, works, strict=True)), (-HEIGHT / 2, HEIGHT), **_LOOP)
    for number, (start, length) in enumerate(zip(steps.received, works, strict=True), start=1):
        if length > NARROW * width:
            middle = start + length / 2
            axes.text(middle, 0, str(number), ha="center", va="center", color=INK[CPU.name], fontsize=9)


def _draw_gpu(axes: Axes, steps: Steps) -> None:
    # The ground of the lane is what shows where nothing runs: idle, in a wait or not.
    assert steps.busy is not None
    assert steps.computing is not None
    place = (1 - HEIGHT / 2, HEIGHT)
    axes.broken_barh(list(zip(steps.asked, steps.waited, strict=True)), place, **WAITS)
    rest = zip(steps.received, steps.end - steps.received, strict=True)
    axes.broken_barh(list(rest), place, **_IDLE)
    # White below, so that no hatch of the ground shines through that of a copy.
    busy = [(start, end - start) for start, end in steps.busy if start < steps.end[-1]]
    axes.broken_barh(busy, place, **_COPIES)
    computing = [(start, end - start) for start, end in steps.computing if start < steps.end[-1]]
    axes.broken_barh(computing, place, **_COMPUTES)


def _legend(figure: Figure, has_gpu: bool) -> None:
    entries = [patch("Patch", **_LOOP, label="the loop works on a step")]
    if has_gpu:
        entries.append(patch("Patch", **_COMPUTES, label="computing"))
        entries.append(patch("Patch", **_COPIES, label="only copying"))
    waits = "waiting for data, and idle meanwhile" if has_gpu else "waiting for data"
    entries.append(patch("Patch", **WAITS, label=waits))
    if has_gpu:
        entries.append(patch("Patch", **_IDLE, label="idle for another reason"))
    figure.legend(
        handles=entries, loc="outside lower center", ncols=len(entries), frameon=False, fontsize=9,
        handlelength=1.6, columnspacing=1.4,
    )  # fmt: skip


def _summary(steps: Steps) -> str:
    whole = float(np.sum(steps.end - steps.asked))

    def share(times: np.ndarray) -> str:
        return percent(float(np.sum(times)) / whole)

    loop = f"The training loop waits {share(steps.waited)} of the time for data"
    if steps.busy is None:
        return f"{loop}. The trace holds no GPU."
    return (
        f"{loop}. The GPU computes {share(steps.computed)} of the time, only copies {share(steps.copied)}, "
        f"is idle in the waits {share(steps.idle_in_wait)}, and idle otherwise {share(steps.idle_otherwise)}."
    )


def _headers(has_gpu: bool) -> list[str]:
    gpu = ["GPU computes (ms)", "only copies (ms)", "idle in the wait (ms)", "idle otherwise (ms)"]
    return ["step", "from (ms)", "loop waits (ms)", "to (ms)", *(gpu if has_gpu else [])]


def _rows(steps: Steps) -> list[list[object]]:
    columns = [steps.asked, steps.waited, steps.end]
    if steps.busy is not None:
        columns += [steps.computed, steps.copied, steps.idle_in_wait, steps.idle_otherwise]
    return [[i + 1, *(f"{column[i]:.1f}" for column in columns)] for i in range(len(steps))]
