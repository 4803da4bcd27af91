"""The rungs of the caching ladder inside of a trial: a loop gets the batches of its first seconds again.

Where the items are prepared already, samplers, collate function, workers and hand-over do all of their work,
and the dataset none. From the host's memory or the device the loop gets batches that nobody prepares.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from starvelab.measure.batches import Batch
from starvelab.measure.devices import cuda_in_use

from .. import torch_internals
from ..contents import contents_of
from ..host import free_memory
from ..torch_internals import Fetcher

PREPARED, HOST, DEVICE = "prepared", "host", "device"
KEEPING = 1.0  # seconds in which batches are kept
MAX_KEPT, MAX_SHARE = 64, 0.2  # batches, and of the memory that is free

# Of a pass: when the loop asked for each batch, and when it had it.
Times: TypeAlias = list[tuple[float, float]]


class PreparedFetch:
    """A fetcher's `fetch` that asks its dataset for one batch, and collates the same items for all."""

    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher, self.original = fetcher, fetcher.fetch
        self.items: Any = None  # Any: a list of items, or a batch that the dataset makes

    def __call__(self, index: Any) -> Batch:  # Any: indices of whatever kind a sampler gives
        """Return a batch of as many items as there are indices."""
        collate = self.fetcher.collate_fn
        if self.items is not None:
            return collate(self._again(index))

        def keep(items: Any) -> Batch:
            self.items = items
            return collate(self._again(index))

        self.fetcher.collate_fn = keep
        try:
            return self.original(index)
        finally:
            self.fetcher.collate_fn = collate

    def _again(self, index: Any) -> Any:
        """Return the items as the dataset gave them, since a collate function may change what it gets."""
        if not isinstance(index, list) or not isinstance(self.items, list):
            return _fresh(self.items)
        return [_fresh(self.items[number % len(self.items)]) for number in range(len(index))]


def prepare(fetcher: Fetcher) -> None:
    """Let a fetcher ask its dataset for one batch."""
    fetcher.fetch = PreparedFetch(fetcher)


def prepare_worker(worker: Any) -> None:  # Any: what PyTorch says of it
    """Let a worker ask its dataset for one batch."""
    torch_internals.change_fetchers(worker.dataset, prepare)


class KeptBatches:
    """The batches of a loop's first seconds, in the host's memory or on its device."""

    def __init__(self, rung: str, *, pinned: bool) -> None:
        self.on_device, self.pinned = rung == DEVICE, pinned and rung == HOST
        self.batches: list[Batch] = []
        self.length: int | None = None  # batches of a pass; None where it was not seen to end
        self.full, self.until = False, 0.0
        self.room = MAX_SHARE * (free_memory() or 0)

    def keep(self, batch: Batch) -> None:
        """Keep a copy of a batch, until there are enough."""
        now = time.perf_counter()
        self.until = self.until or now + KEEPING
        kept = copy.deepcopy(batch)  # a batch of a worker lies in shared memory, where a file is open for it
        if self.on_device and (cuda := cuda_in_use()) is not None:
            kept = change_parts(kept, partial(_moved, device=f"cuda:{cuda.current_device()}"))
        elif self.pinned:
            kept = torch_internals.pinned(kept)
        self.batches.append(kept)
        contents = contents_of(batch)
        self.room -= contents.size.m_as("B") if contents is not None and contents.size is not None else 0.0
        self.full = now >= self.until or len(self.batches) >= MAX_KEPT or self.room <= 0


@dataclass
class ReplayedPass(Iterator[Batch]):
    """A pass over the batches of a `source` until enough of them are kept, and then over those."""

    kept: KeptBatches
    source: Iterator[Batch]
    length: int | None
    times: Times
    note: Callable[[], None]
    number: int = 0

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("a stream has no length")
        return self.length

    def __next__(self) -> Batch:
        kept = self.kept
        if not kept.full:
            try:
                batch = next(self.source)
            except StopIteration:  # before enough were kept: later passes are as long
                kept.length, kept.full = self.number, self.number > 0
                raise
            kept.keep(batch)
            self.number += 1
            return batch
        if self.number == (self.length or kept.length):
            raise StopIteration
        asked = time.perf_counter()
        batch = _fresh(kept.batches[self.number % len(kept.batches)])
        self.number += 1
        self.times.append((asked, time.perf_counter()))
        self.note()
        return batch


def _fresh(part: Any) -> Any:  # Any: whatever a batch or an item is
    """Return lists and dictionaries anew, since a loop may take out of them what it needs."""
    return change_parts(part, lambda each: each if hasattr(each, "untyped_storage") else copy.copy(each))


def _moved(part: Any, device: object) -> Any:  # Any: a tensor, or a batch's own class with the same method
    return part.to(device) if hasattr(part, "to") else part


def change_parts(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch with each of its parts changed, in however many lists and dictionaries."""
    kind = type(batch)
    if kind is dict:
        return {name: change_parts(part, change) for name, part in batch.items()}
    if kind in (list, tuple):
        return kind(change_parts(part, change) for part in batch)
    if isinstance(batch, tuple) and hasattr(batch, "_make"):
        return kind(*(change_parts(part, change) for part in batch))
    return change(batch)
