"""Lanes of time in SVG, with a box for each batch: what the workers, the queue, the copies and the GPU do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...model.resources import ACCELERATOR, CPU, LINK, STORAGE
from ...simulate import Trace
from ...tables import count_of, percent
from ...units import format_number
from .drawing import HATCHED, LEFT, LENGTH, TOP, frame, hatching, legend, rect, tag, text, ticks

_SPAN = 600.0  # ms that an explorer shows, so that its pictures compare
_LANE, _BOX = 18, 14  # pixels: from one lane to the next, and the height of a box
GAP = 1e-6  # ms: less is rounding
# Sky blue is what the workers' blue has made.
_READY, _HELD = {"fill": "#56B4E9"}, {"fill": "url(#hatched)"}
# A worker whose turn at the storage has not come.
_QUEUED = {"fill": "none", "stroke": STORAGE.color}


@dataclass(frozen=True)
class Boxes:
    """Boxes of one kind in one lane: what they mean, when each begins and ends [ms], and how it looks.

    `batches` numbers them, in the color `ink`. `heights` are shares of the lane's.
    """

    meaning: str
    lane: str
    starts: np.ndarray
    ends: np.ndarray
    style: Mapping[str, str]
    batches: np.ndarray | None = None
    ink: str = "black"
    heights: np.ndarray | None = None

    def within(self, end: float) -> np.ndarray:
        """Return the boxes that are seen up to a time, a row each: x, width, height, number of the batch."""
        starts, ends = np.clip(self.starts, 0, end), np.clip(self.ends, 0, end)
        scale, numbered = LENGTH / end, self.batches is not None
        batches = self.batches if self.batches is not None else np.full(len(starts), -1)
        heights = np.ones(len(starts)) if self.heights is None else self.heights
        seen = (ends - starts > GAP) & (heights > 0)
        # Batches that follow each other are told apart by what is left free between them.
        widths = np.maximum(scale * (ends - starts) - 1.5 * numbered, 0.8)
        boxes: np.ndarray = np.c_[LEFT + scale * starts, widths, _BOX * heights, batches][seen]
        return boxes


def draw_lanes(kinds: Sequence[Boxes], end: float, *, title: str, description: str) -> str:
    """Draw lanes below each other, in the order in which boxes name them, and say what each kind means."""
    lanes = list(dict.fromkeys(kind.lane for kind in kinds))
    drawn, swatches = hatching(), dict[str, str]()
    for kind in kinds:
        bottom = TOP + _LANE * lanes.index(kind.lane) + _BOX
        boxes = kind.within(end)
        path = "".join(f"M{x:.1f} {bottom}h{w:.1f}v{-h:.1f}h{-w:.1f}z" for x, w, h, _ in boxes)
        if path:
            drawn += tag("path", d=path, **kind.style)
            swatches.setdefault(kind.meaning, rect(0, 0, 24, 12, rx=0, **kind.style))
        for x, w, _, batch in boxes:
            if batch >= 0 and w > 4 + 7 * len(number := str(int(batch) + 1)):
                looks = {"text_anchor": "middle", "fill": kind.ink, "class": "token"}
                drawn += text(x + w / 2, bottom - 3, number, size=11, **looks)
    for place, lane in enumerate(lanes):
        drawn += text(LEFT - 8, TOP + _LANE * place + 12, lane, size=12, text_anchor="end")
    below = TOP + _LANE * len(lanes) + 16
    said, height = legend(swatches, below + 10)
    return frame(
        drawn + ticks(end, below - 4, " ms") + said, height=height, title=title, description=description
    )


def loader_lanes(trace: Trace, *, whole: bool = False, chip: str = ACCELERATOR.label) -> str:
    """The first 600 milliseconds of a loader: a lane for each worker, the queue, the copies, and the GPU.

    Where the GPU's lane is hatched it waits; a box is one batch. The span is always the same, so that
    figures of two settings compare: more boxes are more batches. It is doubled until the last step has ended
    where the `whole` trace is to be seen. `chip` names the GPU. `show.loader_timeline` has a table and more
    to say.
    """
    if not isinstance(trace, Trace):
        raise InputError(
            f"loader_lanes draws a trace, got {type(trace).__name__}. "
            "Pass pipeline.simulate().trace(), or the trace of a measurement."
        )
    span = _SPAN
    while whole and span < trace.step_end[-1]:
        span *= 2
    workers, busy = count_of(len(np.unique(trace.worker)), "worker"), percent(trace.utilization)
    return draw_lanes(
        boxes_of(trace, span, chip),
        span,
        title=f"{format_number(span)} ms of a loader, {workers}; the {chip} is busy {busy}",
        description=f"A box is one batch. Where the {chip}'s lane is hatched it waits.",
    )


def worker_name(worker: int) -> str:
    """Name a lane."""
    return "training loop" if worker < 0 else f"worker {worker + 1}"


def boxes_of(trace: Trace, end: float, chip: str = ACCELERATOR.label) -> list[Boxes]:
    """Return the boxes of a run up to a time."""
    kinds = []
    for worker in np.unique(trace.worker):
        mine, lane = trace.worker == worker, worker_name(worker)
        batches, start = trace.batch[mine], trace.prepare_start[mine]
        if trace.read_start is not None and trace.read_done is not None:
            read, done = trace.read_start[mine], trace.read_done[mine]
            kinds += [
                Boxes("waiting for the drive", lane, start, read, _QUEUED),
                Boxes("reading a batch", lane, read, done, {"fill": STORAGE.color}, batches, STORAGE.ink),
            ]
            start = done
        prepared = trace.prepared[mine]
        kinds.append(Boxes("preparing a batch", lane, start, prepared, {"fill": CPU.color}, batches, CPU.ink))
    if (trace.worker >= 0).any():
        times, total, in_turn = _depths(trace, end)
        lane, most = f"queue, up to {total.max()}", max(total.max(), 1)
        kinds += [
            Boxes(meaning, lane, times[:-1], times[1:], style, heights=depth[:-1] / most)
            for meaning, style, depth in (
                ("ready, held back by an earlier batch", _HELD, total * (total > in_turn)),
                ("ready for the loop", _READY, in_turn),
            )
        ]
    if (trace.copied - trace.copy_start > GAP).any():
        copies = {"fill": LINK.color}
        kinds.append(Boxes("copying", "copy", trace.copy_start, trace.copied, copies, trace.batch, LINK.ink))
    computing, waits = {"fill": ACCELERATOR.color}, waits_of(trace)
    return [
        *kinds,
        Boxes("waiting", chip, trace.step_start - waits, trace.step_start, HATCHED),
        Boxes("computing", chip, trace.step_start, trace.step_end, computing, trace.batch, ACCELERATOR.ink),
    ]


def waits_of(trace: Trace) -> np.ndarray:
    """Return how long the GPU waited for each batch [ms]."""
    waits: np.ndarray = np.maximum(trace.step_start - np.concatenate(([0.0], trace.step_end[:-1])), 0.0)
    return waits


def _depths(trace: Trace, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return when the queue changes, how many batches are ready from then on, and how many are in turn."""
    both = [trace.queue_depth(in_turn=in_turn) for in_turn in (False, True)]
    times = np.unique(np.concatenate(([0.0, end], *(changes for changes, _ in both))))
    times = times[(times >= 0) & (times <= end)]
    # The value of each step function from each time on; 0 before its first change.
    total, in_turn = (
        np.concatenate(([0], depths))[np.searchsorted(changes, times, side="right")]
        for changes, depths in both
    )
    return times, total, in_turn


def held_back(trace: Trace, end: float) -> int:
    """Return the most batches that a missing one holds back at once."""
    _, total, in_turn = _depths(trace, end)
    return int((total - in_turn).max()) if (trace.worker >= 0).any() else 0
