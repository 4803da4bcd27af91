"""A moment of a run as a picture, where no script can move it."""

from __future__ import annotations

import numpy as np

from ...model.resources import ACCELERATOR, CPU, LINK, STORAGE
from ...simulate import Trace
from ...tables import percent
from .svg import WIDTH, frame, hatching, rect, text


def still_picture(trace: Trace, end: float) -> str:
    """One moment of a run that ends then: from the drive to the accelerator, where each batch is.

    It is a moment in which the accelerator waits, if it does so for most of the time.
    """
    steps = trace.first(max(1, int((trace.step_end <= end + 1e-6).sum())))
    spans = {
        STORAGE.name: (trace.read_start, trace.read_done, STORAGE.color),
        f"workers: {len(set(trace.worker))}": (trace.prepare_start, trace.prepared, CPU.color),
        "queue": (trace.prepared, trace.received, CPU.color),
        LINK.name: (trace.copy_start, trace.copied, LINK.color),
        ACCELERATOR.name: (trace.step_start, trace.step_end, ACCELERATOR.color),
    }
    some = len(steps) // 2
    moment = float(steps.step_start[some] + steps.step_end[some]) / 2
    if steps.stall > 0.5:
        free = np.concatenate(([0.0], steps.step_end[:-1]))
        longest = int(np.argmax(steps.step_start - free))
        moment = float(free[longest] + steps.step_start[longest]) / 2
    seen = {
        name: (start, done, color)
        for name, (start, done, color) in spans.items()
        if start is not None and done is not None and (name == "queue" or (done > start).any())
    }
    drawn, said, wide = hatching("waits"), [], WIDTH // len(seen)
    for place, (name, (start, done, color)) in enumerate(seen.items()):
        here, x = int(((start <= moment) & (moment < done)).sum()), wide * place + 6
        waits = name == ACCELERATOR.name and not here
        note = "waits" if waits else f"{here} batch{'' if here == 1 else 'es'}"
        drawn += rect(x, 28, wide - 12, 116, stroke="currentColor", fill="url(#waits)" if waits else "none")
        drawn += "".join(
            rect(x + 8 + 18 * (one // 6), 122 - 18 * (one % 6), 14, 14, fill=color)
            for one in range(min(here, 6 * ((wide - 28) // 18)))
        )
        for y, words in ((18, name), (162, note)):
            drawn += text(x + wide / 2 - 6, y, words, text_anchor="middle")
        said.append(f"{name}: {note}")
    waiting = percent(steps.stall)
    return frame(
        drawn,
        height=172,
        title=f"A moment of the run; the accelerator waits {waiting} of the time",
        description=f"From left to right: {'; '.join(said)}.",
    )
