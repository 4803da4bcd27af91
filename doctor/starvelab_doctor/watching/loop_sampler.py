"""The work of a training loop's own thread beside its model: a packer, augmentation in the loop.

Nothing tells what a line of a loop is for. So the loop's thread is looked at now and then while it is in a
step: which line it is at, and how much it computes there. What PyTorch's modules, optimizers and gradients
compute, and functions called `step` or `train`, is the training. What a generator computes between its loader
and its `yield` is input work. Looks come late where Python's lock is held: they share out what is computed.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from linecache import getline
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeAlias

from ..finding.loop_work import LoopWork
from ..host import core_times, this_thread
from .places import Stack
from .stack_samples import GOLDEN, stack_at

LoopLine: TypeAlias = tuple[str, bool] | None  # a line, and whether it is input work; None in training
TRAINS = re.compile(r"step|train|forward|backward|loss|optim|model", re.IGNORECASE)  # in a function's name
TRAINING_CALLS = r"\.(backward|item|step|zero_grad|synchronize|cpu|tolist)"
TRAINED = re.compile(rf"{TRAINING_CALLS}\(")  # in a line
INTERVAL, LOOK = 0.01, 0.001  # seconds between two looks, and of each: it computes for some 40 microseconds
# Share of the time in which it wants a core that the thread has one, at least. Where it has one less often,
# a line takes at most so many times as long as it computes.
CROWDED, STRETCHED = 0.75, 4.0
TRAINING = tuple(f"/torch/{part}/" for part in ("nn", "optim", "autograd", "cuda", "distributed", "amp"))


class LoopSampler:
    """Looks at one thread while this lasts; `at` says in which loop it is.

    `see` gets the moment of each look, the seconds since the last one, and the stack.
    """

    def __init__(self, see: Callable[[float, float, Stack], None] | None = None) -> None:
        self.see = see
        self.thread, self.number, self.since = threading.get_ident(), this_thread(), 0.0
        self.loop: tuple[CodeType, int] | None = None  # and the line at which it asks for batches
        # Seconds of each loop's steps: by line, None in training, as looks say; those of its core, and all.
        self.computed: dict[CodeType, dict[LoopLine, float]] = defaultdict(lambda: defaultdict(float))
        self.seen, self.spent = (defaultdict[CodeType, float](float) for _ in range(2))

    def at(self, loop: tuple[CodeType, int] | None) -> None:
        """Note that the thread goes on in a step of that loop; None while it waits for a batch."""
        now, own = time.thread_time(), threading.get_ident() == self.thread
        if own and self.loop is not None:
            self.spent[self.loop[0]] += now - self.since
        self.loop, self.since = (loop, now) if own else (self.loop, self.since)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the thread for as long as this lasts, where that tells anything."""
        if self._times() is None and self.see is None:
            yield
            return
        ended = threading.Event()
        looker = threading.Thread(target=self._look, args=(ended,), daemon=True, name="starvelab-doctor")
        looker.start()
        try:
            yield
        finally:
            ended.set()
            looker.join()

    def _look(self, ended: threading.Event) -> None:
        # A look is short: what it sees computed is of the lines at its beginning and its end. It stands for
        # all of the time since the last one, at whatever point of the loop that was.
        looked = seen = time.perf_counter()
        pause, due = 0.0, looked + 0.5 * INTERVAL
        while not ended.wait(INTERVAL * (0.5 + pause)):
            now = time.perf_counter()
            if self.see is not None and (stack := stack_at(self.thread, now - due)):
                self.see(now, now - seen, stack)
            # No multiple of what a batch takes, and no import beside a fork.
            seen, pause = now, (pause + GOLDEN) % 1
            due = now + LOOK + INTERVAL * (0.5 + pause)
            before, begun, there = self._times(), time.perf_counter(), self._lines()
            if ended.wait(LOOK):
                return
            times, lines, now = self._times(), [*there, *self._lines()], time.perf_counter()
            since, looked = now - looked, now
            if not lines or before is None or times is None:
                continue
            ran, queued = ((after - then) / (now - begun) for after, then in zip(times, before, strict=True))
            part = since / len(lines)
            for code, place in lines:
                self.computed[code][place] += part * min(ran + queued, 1.0)
                self.seen[code] += part * min(ran, 1.0)

    def _lines(self) -> list[tuple[CodeType, LoopLine]]:
        """Return the loop in whose step the thread is, and its line; nothing while it waits for a batch."""
        frame, loop = sys._current_frames().get(self.thread), self.loop
        return [(loop[0], _place(frame, *loop))] if loop is not None else []

    def _times(self) -> tuple[float, float] | None:
        return core_times(f"self/task/{self.number}")

    def work(self, code: CodeType, passed: float, released: float = 0.0) -> tuple[LoopWork, ...]:
        """Return where the loop of that code computed, of so many seconds, most first."""
        found = self.computed.get(code, {}) if passed else {}
        spent, looked = max(self.spent[code] - released, 0.0), sum(found.values())
        crowded = self.seen[code] < CROWDED * looked  # then looks also see what waits for a core
        part = min(STRETCHED * spent / looked, 1.0) if crowded else spent / max(self.seen[code], 1e-9)
        lines = (LoopWork(place[0], part * each / passed, place[1]) for place, each in found.items() if place)
        return tuple(sorted(lines, key=lambda line: -line.share))


def loop_of(caller: FrameType) -> tuple[CodeType, int]:
    """Return the code and line of the loop that asked for a batch, and not those of a progress bar."""
    frame: FrameType = caller
    while "site-packages" in frame.f_code.co_filename and frame.f_code.co_flags & CO_GENERATOR:
        if frame.f_back is None:
            break
        frame = frame.f_back
    return frame.f_code, frame.f_lineno


def _place(frame: FrameType | None, code: CodeType, asking: int) -> LoopLine:
    """Return the line of the loop that a thread is at, and whether it is input work; None in training."""
    while frame is not None and frame.f_code is not code:
        name = frame.f_code.co_filename.replace("\\", "/")
        if any(part in name for part in TRAINING) or TRAINS.search(frame.f_code.co_name):
            return None
        frame = frame.f_back
    # Without a frame a generator has the loop, and this is the training. Where the loop asks for a batch, it
    # releases the last one. A line that trains, or waits for a result of that, is not told apart from it.
    if frame is None or frame.f_lineno == asking or TRAINED.search(getline(code.co_filename, frame.f_lineno)):
        return None
    place = f"{Path(code.co_filename).name}:{frame.f_lineno}"
    return place, bool(code.co_flags & CO_GENERATOR)
