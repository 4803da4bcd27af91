"""Queues by which a thread hands the batches of a `DataLoader` on to the training loop.

What such a thread waits is not what the loop waits. So where a thread puts something into a queue after it
fetched a batch, it is timed what the thread that takes it out waits there.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from .recorder import Pass, Recorder

Queue = queue.Queue[Any]  # Any: whatever a program hands on


class HandedOn:
    """The passes over the queues that carry batches, and the recorders of their loops."""

    def __init__(self) -> None:
        # By the recorder of the thread that fetches, the one of the loop that takes the batches.
        self.loops: dict[Recorder, Recorder] = {}
        self._fetching = threading.local()
        # The thread that fills each, the recorder of the loop that empties it, and the pass of that one.
        self._queues: WeakKeyDictionary[Queue, tuple[int, Recorder, list[Pass]]] = WeakKeyDictionary()

    def fetched(self, recorder: Recorder) -> None:
        """Note that this thread, which is none of a training loop, has a batch."""
        self._fetching.recorder = recorder

    def _put(self, carrier: Queue) -> None:
        recorder: Recorder | None = getattr(self._fetching, "recorder", None)
        if recorder is None or carrier in self._queues:
            return
        if recorder not in self.loops:
            # A thread without workers prepares beside the loop, as no number of workers does.
            self.loops[recorder] = Recorder(batch_size=recorder.batch_size, workers=recorder.workers or None)
        self._queues[carrier] = (threading.get_ident(), self.loops[recorder], [])

    def _get(self, carrier: Queue, get: Callable[..., object], *how: Any, **more: Any) -> object:
        giver, recorder, passes = self._queues.get(carrier, (None, None, []))
        if recorder is None or giver == threading.get_ident():
            return get(carrier, *how, **more)
        if not passes:
            passes.append(recorder.begin())
        record = passes[0]
        if not record.asking:  # else it asked before, and nothing came in time
            record.ask()
        batch = get(carrier, *how, **more)
        if batch is None:  # the usual mark for the end
            record.end()
        else:
            record.receive(batch)
        return batch

    def judged(self, recorder: Recorder) -> Recorder:
        """Return the recorder whose waits count: that of the loop behind a queue, if there is one."""
        loop = self.loops.get(recorder, recorder)
        if loop is not recorder:
            loop.use, loop.probe = recorder.use, recorder.probe
        return loop

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at every queue between threads for as long as this lasts."""
        from unittest.mock import patch  # loaded here: only `starvelab doctor` replaces anything

        put, get = queue.Queue.put, queue.Queue.get

        def putting(carrier: Queue, *how: Any, **more: Any) -> None:
            self._put(carrier)
            put(carrier, *how, **more)

        def getting(carrier: Queue, *how: Any, **more: Any) -> object:
            return self._get(carrier, get, *how, **more)

        with patch.object(queue.Queue, "put", putting), patch.object(queue.Queue, "get", getting):
            yield
