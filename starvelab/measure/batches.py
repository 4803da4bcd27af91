"""Samples and batches: the parts that they meet, what they hold, how they are prepared and handed over."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InputError
from ..tables import count_of
from ..units import Quantity, data_size, format_quantity

# Any: stored bytes, an image, an array, or whatever else a transform or a dataset makes of a sample.
Sample: TypeAlias = Any
# Any: an array, a tensor, or what a `collate_fn` makes of samples.
Batch: TypeAlias = Any

# The parts of an input pipeline in the order in which a sample meets them, which are the rungs of its ladder.
PARTS = ("read", "decode", "transform", "collate", "copy", "compute")
# What one cached rung of one worker may hold, in samples and in bytes: sizes vary, so one would not do.
CACHED_SAMPLES = 12
CACHED_BYTES = 96e6
MAX_OBJECTS = 10_000  # of a batch; one that holds more is not looked through
ALIGNED = 64  # bytes, for each tensor in the one buffer of its batch


class Delivery(NamedTuple):
    """A batch as the training loop gets it, and its times on the monotonic clock [s]."""

    number: int
    worker: int  # -1 is the training loop itself
    array: Batch
    start: float
    end: float
    rung: int  # parts that came from the worker's cache
    seconds: dict[str, float]  # CPU time and waits of each part or transform, over the whole batch
    asked: float = 0.0  # when the loop asked for it, and when it had it
    received: float = 0.0


class Preparer(ABC):
    """Prepares samples inside a worker, and keeps a few of each rung."""

    def __init__(self, stages: Iterable[str], batch_size: int) -> None:
        self.stages, self.batch_size = tuple(stages), batch_size

    @abstractmethod
    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One sample, the first `rung` parts from the cache; what it takes is added to `seconds`."""

    def batch(self, number: int, rung: int = 0, out: np.ndarray | None = None) -> Delivery:
        """Batch `number` of arrays, written into `out` where there is one."""
        seconds, start = dict.fromkeys(self.stages, 0.0), time.monotonic()
        for position in range(self.batch_size):
            value = self.sample(number * self.batch_size + position, rung, seconds)
            before = time.perf_counter()
            if out is None:
                out = np.empty((self.batch_size, *value.shape), value.dtype)
            if value.shape != out.shape[1:] or value.dtype != out.dtype:
                raise InputError(
                    f"All samples of a batch must have one shape and type, got {value.dtype} {value.shape} "
                    f"after {out.dtype} {out.shape[1:]}. Let the last transform bring them to one size."
                )
            out[position] = value
            seconds["collate"] += time.perf_counter() - before
        return Delivery(number, -1, out, start, time.monotonic(), rung, seconds)


def cached(make: Callable[[int], Sample], count: int) -> list[Sample]:
    """The first of so many samples: as many as a worker keeps of a rung."""
    kept: list[Sample] = []
    held = 0
    while len(kept) < min(CACHED_SAMPLES, count) and held <= CACHED_BYTES:
        kept.append(make(len(kept)))
        held += memory_size(kept[-1])
    return kept


def memory_size(value: Sample | Batch) -> int:
    """Bytes that a sample or a batch takes in memory, as far as its type tells."""
    if isinstance(value, Mapping | list | tuple):
        return sum(map(memory_size, value.values() if isinstance(value, Mapping) else value))
    if hasattr(value, "getbands"):  # an image of Pillow, which is not imported for this question
        return int(value.width * value.height * len(value.getbands()))
    return len(value) if isinstance(value, bytes) else int(getattr(value, "nbytes", 0))


@dataclass(frozen=True)
class BatchContents:
    """The contents of a batch.

    Attributes
    ----------
    objects : int
        Tensors, arrays, texts and numbers in it, in however many lists and dictionaries.
    size : quantity [data] or None
        Of its tensors and arrays; None without any.
    dtype : str or None
        Type of the elements that take most of it, such as "float32".
    tensors : int or None
        Of its objects, those that a worker hands over one by one; None where that is not known.
    """

    objects: int
    size: Quantity | None
    dtype: str | None
    tensors: int | None = None

    @property
    def one_by_one(self) -> int:
        """Objects that are handed over one by one: texts and numbers travel together."""
        return self.objects if self.tensors is None else self.tensors

    @property
    def floats(self) -> bool:
        """True where most of it are floating-point numbers, which could be fewer bytes."""
        return (self.dtype or "").startswith("float")

    def __str__(self) -> str:
        count = count_of(self.objects, "object")
        return count if self.size is None else f"{count}, {format_quantity(self.size)}, {self.dtype}"


class Items(NamedTuple):
    """The items of a batch, as the dataset gives them: how many, how, and of what they are views."""

    number: int
    together: bool  # `__getitems__` gives all of them at once
    bytes: int  # of one of them
    spread: float  # bytes of what it is a view of, over its own
    kept: int = 0  # by how much more the dataset's own lists and dictionaries hold since its worker began


def contents_of(batch: object) -> BatchContents | None:
    """Return what a batch holds; None if there is none, or too much to look through."""
    sizes: dict[str, int] = {}
    try:
        parts = list(islice(_parts_of(batch), MAX_OBJECTS + 1))
        for part in parts:
            if isinstance(size := getattr(part, "nbytes", None), int):
                name = str(getattr(part, "dtype", "")).removeprefix("torch.")
                sizes[name] = sizes.get(name, 0) + size
    except Exception:  # of a batch's own class: the training goes on as it would without this look
        return None
    if batch is None or len(parts) > MAX_OBJECTS:
        return None
    most = max(sizes, key=sizes.__getitem__, default="")
    tensors = sum(hasattr(part, "untyped_storage") for part in parts)
    return BatchContents(len(parts), data_size(sum(sizes.values())) if sizes else None, most or None, tensors)


def _parts_of(batch: object) -> Iterator[object]:
    """Return what is in lists, tuples and dictionaries, and theirs."""
    if isinstance(batch, dict | UserDict):
        batch = tuple(batch.values())
    if not isinstance(batch, list | tuple):
        yield batch
        return
    for part in batch:
        yield from _parts_of(part)


def items_of(items: object, together: bool) -> Items | None:
    """Return what the items of a batch are; None for none."""
    if not isinstance(items, list) or not items:
        return None
    (size, whole, owner), (_, _, last) = map(_largest_of, (items[0], items[-1]))
    # What all of them are views of lies in memory: nothing is read for each.
    held = len(items) > 1 and owner is not None and owner == last
    return Items(len(items), together, size, whole / size if size and not held else 1.0)


def _largest_of(item: Any) -> tuple[int, int, int | None]:  # Any: whatever a dataset gives
    """Return the bytes of an item's largest part, those of what it is a view of, and where that lies."""
    if isinstance(item, Mapping):
        item = list(item.values())
    parts = item if isinstance(item, list | tuple) else [item]
    sizes = [
        (part.nbytes, n) for n, part in enumerate(parts) if isinstance(getattr(part, "nbytes", None), int)
    ]
    if not sizes:
        return 0, 0, None
    size, number = max(sizes)
    return size, *_viewed(parts[number])


class Repeats:
    """Sees by the first batches of a stream whether its workers repeat each other, each giving all of it."""

    def __init__(self) -> None:
        self.first: Batch = None
        self.alike = self.found = False

    def see(self, number: int, batch: Batch, workers: int) -> None:
        """Look at the batch of that number, from 1 on: at first each comes from another worker."""
        if number == 1:
            self.first, self.alike = batch, False
        elif number == 2:
            self.alike = same_contents(self.first, batch)
        if number == workers + 1:  # of the first worker again: data that never changes is no repetition
            self.found = self.alike and workers > 1 and not same_contents(self.first, batch)
            self.first = None


def same_contents(one: Batch, other: Batch) -> bool:
    """True if two batches hold the same, as far as that can be compared here."""
    try:
        parts = [list(islice(_parts_of(batch), MAX_OBJECTS)) for batch in (one, other)]
        return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(*parts, strict=True))
    except Exception:  # of a batch's own class, or of another device
        return False


def held_by(dataset: object) -> int:
    """Return how much the lists, dictionaries and sets hold that are attributes of a dataset."""
    own = getattr(dataset, "__dict__", {})
    # A Subset and the like have theirs by that name.
    inner = vars(own["dataset"]) if hasattr(own.get("dataset"), "__dict__") else {}
    return sum(len(part) for part in [*own.values(), *inner.values()] if isinstance(part, list | dict | set))


def _viewed(part: Any) -> tuple[int, int | None]:  # Any: an array or a tensor
    """Return the bytes of what an array is a view of, and where it lies; of a file, from first to last."""
    if hasattr(part, "untyped_storage"):
        storage = part.untyped_storage()
        return int(storage.nbytes()), int(storage.data_ptr())
    whole = part
    while isinstance(getattr(whole, "base", None), np.ndarray):
        whole = whole.base
    if not isinstance(whole, np.memmap):
        return int(whole.nbytes), id(whole)
    reach = sum((n - 1) * abs(step) for n, step in zip(part.shape, part.strides, strict=True))
    return int(reach + part.itemsize), None


# --- one buffer for all tensors of a batch, which a worker hands over to the loop ---


class Place(NamedTuple):
    """Where a tensor lies in the buffer of its batch."""

    begin: int
    end: int
    dtype: Any  # Any: of PyTorch, which is not loaded for this
    shape: tuple[int, ...]


class OneBuffer:
    """A batch with places where its tensors were, and their bytes in one tensor."""

    def __init__(self, batch: object) -> None:
        import torch  # loaded here: a lab without PyTorch reads this file too

        tensors: list[tuple[int, torch.Tensor]] = []
        size = 0

        def place(part: Any) -> Any:  # Any: whatever a batch holds
            nonlocal size
            if type(part) is not torch.Tensor or part.layout is not torch.strided or part.requires_grad:
                return part
            if part.device.type != "cpu" or part.is_quantized or part.is_conj() or part.is_neg():
                return part
            begin, size = size, size + -(-part.nbytes // ALIGNED) * ALIGNED
            tensors.append((begin, part))
            return Place(begin, begin + part.nbytes, part.dtype, tuple(part.shape))

        self.parts = _each(batch, place)
        self.buffer = torch.empty(size, dtype=torch.uint8)
        for begin, part in tensors:
            self.buffer[begin : begin + part.nbytes].view(part.dtype).copy_(part.reshape(-1))

    def pin_memory(self) -> OneBuffer:
        """Move the buffer to pinned memory, as the loader's thread does with each batch."""
        self.buffer = self.buffer.pin_memory()
        return self

    def batch(self) -> Any:  # Any: as it was
        """Return the batch as it was; its tensors are views of the buffer."""

        def tensor(part: Any) -> Any:
            if type(part) is not Place:
                return part
            return self.buffer[part.begin : part.end].view(part.dtype).view(part.shape)

        return _each(self.parts, tensor)


def _each(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch with each of its parts changed, in however many lists and dictionaries."""
    kind = type(batch)
    if kind is Place:
        return change(batch)
    if kind is dict:
        return {name: _each(part, change) for name, part in batch.items()}
    if kind in (list, tuple):
        return kind(_each(part, change) for part in batch)
    if isinstance(batch, tuple) and hasattr(batch, "_make"):
        return kind(*(_each(part, change) for part in batch))
    return change(batch)


class IntoOneBuffer:
    """A collate function, whose batches go into one buffer; it goes to the workers with the loader."""

    def __init__(self, collate: Callable[[Any], object]) -> None:
        self.collate = collate

    def __call__(self, items: Any) -> OneBuffer:
        """Return a batch of these items."""
        return OneBuffer(self.collate(items))


def unpacked(batch: Any) -> Any:
    """Return the batch that one buffer holds, and any other one as it is."""
    return batch.batch() if isinstance(batch, OneBuffer) else batch


class AroundLoader:
    """Stands in the place of a loader, with its length and its attributes."""

    def __init__(self, loader: Any) -> None:  # Any: whatever a loop goes over
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # not set yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.loader, name)


class PackedLoader(AroundLoader):
    """A loader whose batches come in one buffer each."""

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            yield unpacked(batch)


def packed(loader: Any) -> PackedLoader:  # Any: a DataLoader, which is recognized before it is used
    """Let the tensors of each batch travel in one buffer from the workers to the loop.

    A worker hands over each tensor of a batch on its own, in a file of shared memory: for a hundred small
    ones that takes longer than their bytes do. The batches stay what they are, in the same order.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
        Its `collate_fn` is changed.

    Returns
    -------
    PackedLoader
        To be looped over in place of the loader.

    Raises
    ------
    InputError

    Notes
    -----
    The tensors of a batch are views of its buffer: one that is kept keeps all of them in memory. Tensors in
    objects of other classes than lists, tuples and dictionaries, and those of subclasses of `torch.Tensor`,
    are handed over as before.

    Examples
    --------
    ::

        for batch in packed(DataLoader(dataset, batch_size=64, num_workers=4)):
            train(batch)
    """
    if not callable(getattr(loader, "collate_fn", None)):
        raise InputError(
            f"packed takes a DataLoader of PyTorch, got {type(loader).__name__}. Pass the loader itself, and "
            "put watch around what comes back."
        )
    if not isinstance(loader.collate_fn, IntoOneBuffer):
        loader.collate_fn = IntoOneBuffer(loader.collate_fn)
    return PackedLoader(loader)
