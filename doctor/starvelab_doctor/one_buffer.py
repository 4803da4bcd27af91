"""One buffer for all tensors of a batch, which a worker hands over to the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from starvelab.errors import InputError

ALIGNED = 64  # bytes, for each tensor in the one buffer of its batch


class TensorSlot(NamedTuple):
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
            return TensorSlot(begin, begin + part.nbytes, part.dtype, tuple(part.shape))

        self.parts = change_parts(batch, place)
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
            if type(part) is not TensorSlot:
                return part
            return self.buffer[part.begin : part.end].view(part.dtype).view(part.shape)

        return change_parts(self.parts, tensor)


def change_parts(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch with each of its parts changed, in however many lists and dictionaries."""
    kind = type(batch)
    if kind is TensorSlot:
        return change(batch)
    if kind is dict:
        return {name: change_parts(part, change) for name, part in batch.items()}
    if kind in (list, tuple):
        return kind(change_parts(part, change) for part in batch)
    if isinstance(batch, tuple) and hasattr(batch, "_make"):
        return kind(*(change_parts(part, change) for part in batch))
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
