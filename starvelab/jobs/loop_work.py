"""The work of a training loop's own thread beside its model: a packer, augmentation in the loop.

Nothing tells what a line of a loop is for. So the loop's thread is looked at now and then while it is in a
step: which line of the loop it is at, and how much it computes there. What PyTorch's modules, optimizers and
gradients compute, and functions that are called `step` or `train`, is the training. What a generator computes
between its loader and its `yield` is input work.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType

from ..host import this_thread, wanted_core

TRAINS = re.compile(r"step|train|forward|backward|loss|optim|model", re.IGNORECASE)  # in a function's name
INTERVAL, LOOK = 0.01, 0.001  # seconds between two looks, and of each: it computes for some 40 microseconds
GOLDEN = 0.618  # its multiples, less whole numbers, are spread evenly
TRAINING = tuple(f"/torch/{part}/" for part in ("nn", "optim", "autograd", "cuda", "distributed", "amp"))


@dataclass(frozen=True)
class LoopWork:
    """A line of the loop at which its own thread computes."""

    place: str  # file and number of the line
    share: float  # of the time between two batches, 0 to 1
    certain: bool  # it is input work: a generator between the loader and the training computes there


class LoopSampler:
    """Looks at one thread while this lasts; `at` says in which loop it is."""

    def __init__(self) -> None:
        self.thread, self.number = threading.get_ident(), this_thread()
        self.loop: tuple[CodeType, int] | None = None  # and the line at which it asks for batches
        self.computed: dict[CodeType, dict[tuple[str, bool], float]] = defaultdict(lambda: defaultdict(float))

    def at(self, loop: tuple[CodeType, int] | None) -> None:
        """Note that the thread goes on in a step of that loop; None while it waits for a batch."""
        self.loop = loop

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the thread for as long as this lasts, where the system tells what it wants of a core."""
        if wanted_core(self.number) is None:
            yield
            return
        ended = threading.Event()
        looker = threading.Thread(target=self._look, args=(ended,), daemon=True, name="starvelab doctor")
        looker.start()
        try:
            yield
        finally:
            ended.set()
            looker.join()

    def _look(self, ended: threading.Event) -> None:
        # A look is short, so that what it sees computed is of the line that it finds at its end. It stands
        # for all of the time since the last one, at whatever point of the loop that was.
        looked, pause = time.perf_counter(), 0.0
        while not ended.wait(INTERVAL * (0.5 + pause)):
            pause = (pause + GOLDEN) % 1  # no multiple of what a batch takes, and no import beside a fork
            spent, begun = wanted_core(self.number), time.perf_counter()
            if ended.wait(LOOK):
                return
            wanted, loop, now = wanted_core(self.number), self.loop, time.perf_counter()
            since, looked = now - looked, now
            if loop is None or spent is None or wanted is None:
                continue
            place = _place(sys._current_frames().get(self.thread), *loop)
            if place is not None:
                self.computed[loop[0]][place] += since * min((wanted - spent) / (now - begun), 1.0)

    def work(self, code: CodeType, passed: float) -> tuple[LoopWork, ...]:
        """Return where the loop of that code computed, of so many seconds, most first."""
        found = self.computed.get(code, {}) if passed else {}
        lines = [LoopWork(place, seconds / passed, certain) for (place, certain), seconds in found.items()]
        return tuple(sorted(lines, key=lambda line: -line.share))


def loop_of(caller: FrameType) -> tuple[CodeType, int]:
    """Return the code and line of the loop that asked for a batch, and not those of a progress bar."""
    frame: FrameType = caller
    while "site-packages" in frame.f_code.co_filename and frame.f_code.co_flags & CO_GENERATOR:
        if frame.f_back is None:
            break
        frame = frame.f_back
    return frame.f_code, frame.f_lineno


def _place(frame: FrameType | None, code: CodeType, asking: int) -> tuple[str, bool] | None:
    """Return the line of the loop that a thread is at, and whether it is input work; None in training."""
    while frame is not None and frame.f_code is not code:
        name = frame.f_code.co_filename.replace("\\", "/")
        if any(part in name for part in TRAINING) or TRAINS.search(frame.f_code.co_name):
            return None
        frame = frame.f_back
    # Without a frame a generator has the loop, and this is the training. Where the loop asks for a batch, it
    # releases the last one.
    if frame is None or frame.f_lineno == asking:
        return None
    place = f"{Path(code.co_filename).name}:{frame.f_lineno}"
    return place, bool(code.co_flags & CO_GENERATOR)
