"""`watch`: one line around a loader, that says while the job trains how long it waits for data.

The loop is measured from outside. A framework that has the
loop to itself is watched by its hooks: `LoopCallback` is what the callbacks for all of them share.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from operator import length_hint
from typing import Any, Generic, TypeVar

import numpy as np
from tqdm.auto import tqdm

from starvelab.errors import InputError
from starvelab.runtime import shell

from ..finding.job import JobFinding
from ..host import this_thread
from ..torch_internals import ready_batches
from .recorder import Pass, Recorder

Batch = TypeVar("Batch")
OWN_LOOP = "Install it, or put watch(loader) around the loader of your own loop."  # without a framework
RECENT = 1000  # batches that the line speaks of
LINE_INTERVAL = 60.0  # seconds between two lines in a log file


def watch(
    loader: Iterable[Batch],
    *,
    batch_size: int | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> Watch[Batch]:
    """Watch how long a training loop waits for its batches.

    Parameters
    ----------
    loader : iterable
        What the loop goes over: a PyTorch DataLoader, a tf.data pipeline, a generator, anything.
    batch_size : int, optional
        Samples of a batch; a DataLoader is asked.
    workers : int, optional
        Workers that prepare batches; a DataLoader is asked.
    progress : bool
        Show a line while it runs, or write one each minute into a log file, and what was found at the end of
        each pass.

    Returns
    -------
    Watch
        To be looped over in place of the loader, as often as that one can be; its `result` holds what was
        found so far.

    Raises
    ------
    InputError

    Notes
    -----
    The GPU works on its own while the loop waits, so a wait of the loop need not be one of the GPU. With
    CUDA, events on its stream tell the two apart; without, only the wait of the loop is known.

    Examples
    --------
    >>> watched = watch(range(100), progress=False)
    >>> for batch in watched:
    ...     pass
    >>> watched.result.waits.batches
    100
    """
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise InputError(
            f"watch takes something to loop over, such as a DataLoader, got {type(loader).__name__}. "
            "Pass the loader that your training loop uses."
        )
    for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise InputError(f"{name} must be a whole number from {least} on, got {value!r:.80}. Pass one.")
    recorder = Recorder(batch_size=batch_size, workers=workers, home=this_thread())
    recorder.describe(loader)
    return Watch(loader, recorder, progress=progress)


def line_of(recorder: Recorder, source: object) -> str:
    """Return the recent batches in one line."""
    waits, steps, _ = recorder.pairs(RECENT)
    total = float(np.sum(waits + steps))
    if not total:
        return ""
    parts = [f"{waits.sum() / total:.0%} waiting"]
    if recorder.batch_size:
        parts.append(f"{len(waits) * recorder.batch_size / total:.4g} samples/s")
    middle, high, highest = 1e3 * np.percentile(waits, [50, 95, 99])
    parts.append(f"waits {middle:.3g}, {high:.3g}, {highest:.3g} ms (50, 95, 99 %)")
    ready = ready_batches(source)
    return ", ".join(parts if ready is None else [*parts, f"{ready} ready"])


class Watched:
    """What is watched, and what was found of it."""

    _recorder: Recorder

    @property
    def result(self) -> JobFinding:
        """What was found so far, also while the loop runs."""
        return self._recorder.finding()


class Watch(Watched, Generic[Batch]):
    """A loader that is watched; it has the length and the attributes of its loader."""

    def __init__(self, loader: Iterable[Batch], recorder: Recorder, *, progress: bool) -> None:
        self.loader: Any = loader  # Any: whatever a loop goes over
        self._recorder, self._progress = recorder, progress

    def __iter__(self) -> Iterator[Batch]:
        return _Batches(self)

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:  # Any: as above
        if name == "loader":  # not set yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.loader, name)


class _Batches(Iterator[Batch]):
    """The batches of one pass over the loader, whose times go to the watch that it belongs to."""

    record: Pass | None = None  # until its iterator is made

    def __init__(self, owner: Watch[Batch]) -> None:
        self.owner, recorder, begun = owner, owner._recorder, time.perf_counter()
        self.bar: Any = None  # Any: tqdm brings no types
        self.drawn = begun
        with recorder.pickled.counting():
            self.source: Iterator[Batch] = iter(owner.loader)
        self.record = recorder.begin(since=begun)
        if owner._progress:
            total = length if (length := length_hint(owner.loader, -1)) >= 0 else None
            # A log file gets a line a minute.
            often = 0.1 if sys.stderr.isatty() or shell() is not None else LINE_INTERVAL
            self.bar = tqdm(total=total, desc="watch", unit="batch", mininterval=often)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        record = self.record
        assert record is not None
        try:
            batch = record.fetch(self.source)
        except StopIteration:
            self.close()
            raise
        if self.bar is not None and record.polled > self.drawn and record.batches > 1:
            self.drawn = record.polled
            self.bar.set_postfix_str(line_of(record.recorder, self.source), refresh=False)
            self.bar.update(record.batches - self.bar.n)
            record.received = time.perf_counter()
        return batch

    def close(self) -> None:
        """End the pass, and say what was found."""
        if self.record is not None:
            self.record.end()
        if self.record is not None and self.bar is not None:
            self.bar.update(self.record.batches - self.bar.n)
            self.bar.close()
            self.bar = None
            tqdm.write(self.owner.result.summary, file=sys.stderr)

    def __del__(self) -> None:
        # A loop that is left early, or that ends with an error, drops its iterator.
        if not sys.is_finalizing():
            self.close()


class LoopCallback(Watched):
    """The loop of a framework; the framework's own class of callbacks stands behind it as the second base.

    A framework fetches a batch before it says that a step begins. So the wait for it lies between the end of
    one step and the start of the next, unless something else ran there.
    """

    def __init__(self, *, progress: bool = True) -> None:
        super().__init__()
        self._recorder, self._progress = Recorder(), progress
        self._pass = self._recorder.begin()

    def _begin(self) -> None:
        """Begin a pass: the loop waits for the first batch of it."""
        self._pass.end()
        self._pass = self._recorder.begin()
        self._pass.ask()

    def _end(self) -> None:
        """End the training, and say what was found."""
        self._pass.end()
        if self._progress:
            tqdm.write(self.result.summary, file=sys.stderr)
