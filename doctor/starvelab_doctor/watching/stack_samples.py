"""Samples of a thread's stack: a thread beside it looks some fifty times a second, and notes where it is.

A Python thread gets its turn only when the other one lets go of Python's lock. So looks are due at moments
that do not depend on what the other one does, a late look stands for all that fell due meanwhile, and in a
worker the lock changes hands after 0.1 ms or less, where Python waits for 5 ms: else whatever waits is seen
more often than it is there, and whatever keeps the lock less often. Where a further thread works, Python's
5 ms stay. So they do in the process of the loop, which else goes on in the middle of a look: what the loop
drops then, such as an iterator and its workers, would end late, and in this thread.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import NamedTuple

from .places import CodeLine, Stack, moved_to_search, stack_of

INTERVAL = 0.022  # seconds between two samples
MANY, RARELY = 3_000, 10  # samples, some minute, after which one is taken so many times less often
GOLDEN = 0.618  # its multiples, less whole numbers, are spread evenly
LATE = 1e-3  # seconds after which a look that was due lets the sampler in sooner
KEPT = 5e-4  # seconds after which it says that the lock was kept until then
SWITCH, QUICKEST = 1e-4, 1e-5  # most and fewest seconds after which the sampler is let in
RESOLUTION = 1.5e-6  # seconds: Python keeps whole microseconds of it
SLOWER = 1.1  # times as long after a look in time, and half as long after a late one
FLUSH = 1.0  # seconds between two writes
# Where a thread waits for another one, and for other processes, as one does in a worker that sends tensors.
WAITS = tuple(f"{os.sep}{name}.py" for name in ("threading", "queue", f"futures{os.sep}_base"))
LISTENS = tuple(f"{os.sep}{name}.py" for name in ("socket", "selectors", "connection"))


class Uncollected:
    """Lets Python 3.11 begin no collection of garbage while the frames of another thread are read.

    There an object is made for each frame that is read, and that may begin a collection. Its finalizers let
    the other thread go on, whose frame may end before the object is whole: then the program hangs or crashes
    (python/cpython#106883). `gc.disable` is left to the program, which may call it meanwhile.
    """

    threshold = 0  # of the program, while this lasts

    def __enter__(self) -> None:
        if sys.version_info < (3, 12):
            self.threshold = gc.get_threshold()[0]
            gc.set_threshold(0)

    def __exit__(self, *_: object) -> None:
        if self.threshold and not gc.get_threshold()[0]:  # else the program has set its own meanwhile
            gc.set_threshold(self.threshold)
        self.threshold = 0


class Sample(NamedTuple):
    """What a thread did at a moment [s, of the clock that all processes share], and for how long."""

    moment: float
    seconds: float
    phase: str
    place: CodeLine | None


class StackSampler:
    """Looks at one thread of this process, and hands each sample on.

    `see` gets the moment, the seconds that the sample stands for, and the stack. `idle` is called once a
    second.
    """

    def __init__(
        self,
        see: Callable[[float, float, Stack], None],
        idle: Callable[[], None] = lambda: None,
        *,
        quick: bool = True,
    ) -> None:
        self.thread, self.see, self.idle, self.quick = threading.get_ident(), see, idle, quick
        self.usual = self.switch = sys.getswitchinterval()  # the program's own, and the one in force
        # A lock, whose wait ends in C: Python code between the end of a wait and the look would take so long
        # that the other thread gets its turn before.
        self.going = threading.Lock()
        self.going.acquire()
        self.uncollected = Uncollected()
        self.looker = threading.Thread(target=self._look, daemon=True, name="starvelab sampler")

    def start(self) -> None:
        """Begin to look."""
        self.looker.start()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=partial(self._let_in, None))
            os.register_at_fork(after_in_child=self.uncollected.__exit__)

    def stop(self) -> None:
        """End, and wait until the last look is over."""
        self.going.release()
        if self.looker is not threading.current_thread():
            self.looker.join()

    def _let_in(self, seconds: float | None) -> None:
        """Let a thread in that waits so long for Python's lock; None is as long as the program has it."""
        if abs((switch := sys.getswitchinterval()) - self.switch) > RESOLUTION:
            self.usual = switch  # the program has changed it meanwhile
        self.switch = self.usual if seconds is None else seconds
        sys.setswitchinterval(self.switch)  # at once: only a call lets another thread in

    def _is_alone(self) -> bool:
        """True if each other thread waits, so that nothing but the sampler is let in sooner."""
        pair = self.thread, self.looker.ident
        others = (frame for thread, frame in sys._current_frames().items() if thread not in pair)
        return all(frame.f_code.co_filename.endswith((*WAITS, *LISTENS)) for frame in others)

    def _look(self) -> None:
        switch, number = SWITCH, 0
        due = idled = time.perf_counter()
        pause = 0.0
        while True:
            with self.uncollected:
                alone = self.quick and self._is_alone()
            self._let_in(switch if alone else None)
            if self.going.acquire(timeout=max(due - time.perf_counter(), 0.0)):
                break
            # The thread that is watched waits until the look is over: what ends in one would end here.
            self._let_in(None)
            with self.uncollected:
                stack = stack_at(self.thread, due)
            now = time.perf_counter()
            # Code that lets go of the lock and takes it back at once, as pandas does, keeps others out.
            switch = max(switch / 2, QUICKEST) if now - due > LATE else min(SLOWER * switch, SWITCH)
            if not stack:
                break
            seconds = 0.0
            while due <= now:
                seconds, number = seconds + pause, number + 1
                # No multiple of what anything else takes.
                pause = INTERVAL * (0.5 + number * GOLDEN % 1) * (RARELY if number > MANY else 1)
                due += pause
            self.see(now, seconds, stack)
            if now - idled >= FLUSH:
                idled = now
                self.idle()
        self._let_in(None)  # also where the program goes on without that thread


def stack_at(thread: int, due: float) -> Stack:
    """Return what a thread does at a moment that was due then; nothing if the thread has ended."""
    if (frame := sys._current_frames().get(thread)) is None:
        return ()
    stack = stack_of(frame)
    if _waits(frame) and (other := _worker_thread(thread)) is not None:
        while stack and stack[-1][0].co_filename.endswith(WAITS):
            stack = stack[:-1]
        return (*stack, *stack_of(other))
    return moved_to_search(frame, stack) if time.perf_counter() - due > KEPT else stack


def _waits(frame: FrameType) -> bool:
    """True if a thread waits for another one of this process."""
    return frame.f_code.co_filename.endswith(WAITS)


def _worker_thread(waiting: int) -> FrameType | None:
    """Return what a thread of the user does for one that waits; None where none does anything."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for number, frame in sys._current_frames().items():
        name = names.get(number) or ""
        if number != waiting and not name.startswith(("starvelab", "QueueFeeder")) and not _waits(frame):
            return frame
    return None
