"""`watch`: one line around a loader, that says how long the loop waits for data."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from threading import get_ident
from typing import Any, Generic, TypeVar

from starvelab.errors import InputError

from ..finding.job import JobFinding
from .pickled import timing_pickles
from .recorder import Pass, Recorder

Batch = TypeVar("Batch")


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
        Say at the end of each pass what was found.

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
    recorder = Recorder(batch_size=batch_size, workers=workers, home=get_ident())
    recorder.describe(loader)
    return Watch(loader, recorder, progress=progress)


class Watch(Generic[Batch]):
    """A loader that is watched; it has the length and the attributes of its loader."""

    def __init__(self, loader: Iterable[Batch], recorder: Recorder, *, progress: bool) -> None:
        self.loader: Any = loader  # Any: whatever a loop goes over
        self._recorder, self._progress = recorder, progress

    @property
    def result(self) -> JobFinding:
        """What was found so far, also while the loop runs."""
        return self._recorder.finding()

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
        with timing_pickles(recorder.pickled):
            self.source: Iterator[Batch] = iter(owner.loader)
        self.record = recorder.begin(since=begun)

    def __next__(self) -> Batch:
        if self.record is None:  # it is over
            raise StopIteration
        try:
            return self.record.fetch(self.source)
        except StopIteration:
            self.close()
            raise

    def close(self) -> None:
        """End the pass, and say what was found."""
        record, self.record = self.record, None
        if record is not None:
            record.end()
            if self.owner._progress:
                print(self.owner.result.summary, file=sys.stderr)

    def __del__(self) -> None:
        # A loop that is left early, or that ends with an error, drops its iterator.
        if not sys.is_finalizing():
            self.close()
