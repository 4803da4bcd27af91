"""`watch`: one line around a loader, that says while the job trains how long it waits for data.

The loop is measured from outside; `diagnose` says which stage of the loader is slow.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from tqdm.auto import tqdm

from ..errors import InputError
from ..measure.training_step import Cuda
from .finding import JobFinding
from .probe import Probe
from .times import LoopTimes, ready_batches

Batch = TypeVar("Batch")

REFRESH = 0.5  # seconds between two looks of the line

# The passes that are under way in each thread, the innermost last.
_open = threading.local()


def watch(
    loader: Iterable[Batch],
    *,
    batch_size: int | None = None,
    workers: int | None = None,
    progress: bool = True,
    probe: bool = False,
    device: str | None = None,
    cuda: Cuda | None = None,
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
        Show a line while it runs, and what was found at the end of each pass.
    probe : bool
        Time what the stages of a PyTorch DataLoader take, in its workers and in a sample of its batches; it
        spends at most 5 % of the time on it, and changes no batch. `result.stages` says which is the largest.
    device : str, optional
        Where the loop copies its batches, such as "cuda". A probe copies a sample of them there once more and
        times that.
    cuda : optional
        In place of `torch.cuda`, which is used as soon as the program works with a GPU.

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

    A probe tells what packing and unpacking a batch costs. How long its way from a worker takes it tells only
    for batches for which the loop waited: the others lie ready for a time that nobody can tell apart from it.

    Examples
    --------
    >>> watched = watch(range(100), progress=False)
    >>> for batch in watched:
    ...     pass
    >>> watched.result.batches
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
    if device is not None and not probe:
        raise InputError(
            f"device is where a probe copies a sample of the batches, got {device!r:.80} without a probe. "
            "Pass probe=True as well."
        )
    return Watch(
        loader,
        batch_size=batch_size,
        workers=workers,
        progress=progress,
        probe=Probe(device) if probe else None,
        cuda=cuda,
    )


class Watch(Generic[Batch]):
    """A loader that is watched; it has the length and the attributes of its loader."""

    def __init__(
        self,
        loader: Iterable[Batch],
        *,
        batch_size: int | None,
        workers: int | None,
        progress: bool,
        probe: Probe | None,
        cuda: Cuda | None,
    ) -> None:
        self.loader = loader
        self._times = LoopTimes(batch_size=batch_size, workers=workers, cuda=cuda, probe=probe)
        self._times.learn(loader)
        self._progress = progress

    def __iter__(self) -> Iterator[Batch]:
        return _Pass(self)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]  # a loader without a length says so itself

    def __getattr__(self, name: str) -> Any:  # Any: the attributes are those of whatever is watched
        if name == "loader":  # not set yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.loader, name)

    @property
    def result(self) -> JobFinding:
        """What was found so far, also while the loop runs."""
        return self._times.finding()


class _Pass(Iterator[Batch]):
    """One pass over the loader: its times go to the watch it belongs to."""

    def __init__(self, owner: Watch[Batch]) -> None:
        self.owner = owner
        self.count = 0
        self.elsewhere = 0.0  # seconds of this step that went to a loop within it that is watched as well
        self.counted_wait: float | None = None  # of the batch in use; None if it does not count
        self.follows_error = False
        self.bar: Any = None  # Any: tqdm brings no types
        self.begun = self.received = self.shown = time.perf_counter()
        passes = _open_passes()
        self.outer = passes[-1]() if passes else None
        self.outer_count = self.outer.count if self.outer is not None else 0
        self.reference = weakref.ref(self)
        passes.append(self.reference)
        probe = owner._times.probe
        self.source = iter(owner.loader) if probe is None else probe.source_of(owner.loader)
        self.start_up = time.perf_counter() - self.begun
        if owner._progress:
            self.bar = tqdm(total=_length(owner.loader), desc="watch", unit="batch")

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        times, asked = self.owner._times, time.perf_counter()
        if self.counted_wait is not None:
            times.waits.add(self.counted_wait, max(0.0, asked - self.received - self.elsewhere))
            self.counted_wait = None
        ready = ready_batches(self.source)
        if ready is not None:
            times.ready.add(ready)
        device = times.device()
        if device is not None:
            device.asked()
        probe = times.probe
        if probe is not None:
            probe.asks()
        spent = time.thread_time()
        try:
            batch = next(self.source)
        except StopIteration:
            self.close()
            raise
        except BaseException:
            self.follows_error = True
            raise
        received = time.perf_counter()
        first = self.count == 0
        if device is not None:
            device.received(first=first or self.follows_error)
        if first:
            times.waits.first.append(self.start_up + received - asked)
        elif not self.follows_error:
            self.counted_wait = received - asked
            if times.workers == 0:
                times.cpu.add(time.thread_time() - spent, received - asked)
        times.waits.batches += 1
        self.count += 1
        self.elsewhere, self.follows_error = 0.0, False
        if first or received - self.shown > REFRESH:
            times.cpu.look(self.source)
            if self.bar is not None and not first:
                self.bar.set_postfix_str(times.line(ready), refresh=False)
                self.bar.update(self.count - self.bar.n)
            self.shown = received
        if probe is not None:
            probe.received(batch)
        self.received = time.perf_counter()
        return batch

    def close(self) -> None:
        """End the pass, and say what was found."""
        passes = _open_passes()
        if self.reference not in passes:
            return
        passes.remove(self.reference)
        if self.outer is not None and self.outer.count == self.outer_count:
            self.outer.elsewhere += time.perf_counter() - self.begun
        if self.bar is not None:
            self.bar.update(self.count - self.bar.n)
            self.bar.close()
            tqdm.write(self.owner.result.summary, file=sys.stderr)

    def __del__(self) -> None:
        # A loop that is left early, or that ends with an error, drops its iterator.
        if not sys.is_finalizing():
            self.close()


def _open_passes() -> list[weakref.ref[_Pass[Any]]]:  # Any: passes over whatever loaders
    if not hasattr(_open, "passes"):
        _open.passes = []
    passes: list[weakref.ref[_Pass[Any]]] = _open.passes
    return passes


def _length(loader: Iterable[object]) -> int | None:
    try:
        return len(loader)  # type: ignore[arg-type]  # not every loader has a length
    except TypeError:
        return None
