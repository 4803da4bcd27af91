"""What fields of a pipeline say only together, and reject alone or beside each other."""

from __future__ import annotations

from typing import Protocol

from ..errors import InputError
from ..units import Number, Quantity
from .catalogue import Entry


class _Fields(Protocol):
    """The fields of a pipeline that are looked at together."""

    @property
    def model(self) -> Entry | None: ...
    @property
    def dataset(self) -> Entry | None: ...
    @property
    def storage(self) -> Entry | Quantity | None: ...
    @property
    def cached_fraction(self) -> Number | None: ...
    @property
    def cache_bandwidth(self) -> Quantity | None: ...
    @property
    def link(self) -> Entry | Quantity | None: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def transfer_size(self) -> Quantity | None: ...
    @property
    def dtype(self) -> str | None: ...


def check_together(fields: _Fields) -> None:
    """Reject samples that the model does not take, what is not named or said twice.

    Raises
    ------
    InputError
    """
    _check_samples(fields.model, fields.dataset)
    if not fields.pinned and fields.link is None:
        raise InputError(
            "pinned=False describes a copy over a link, got it without a link. "
            "Pass link=Links.PCIe4_x16 as well, or leave pinned out."
        )
    if fields.transfer_size is not None and fields.dtype is not None:
        raise InputError(
            "The bytes of a sample on the link are transfer_size, or follow from dtype, got both. Pass one "
            "of them."
        )
    if fields.cached_fraction is not None and fields.storage is None:
        raise InputError(
            "cached_fraction says which reads a drive is spared, got it without a drive. "
            "Pass storage=Storage.NVMe_Gen4 as well, or leave cached_fraction out."
        )
    if fields.cache_bandwidth is not None and fields.cached_fraction is None:
        raise InputError(
            "cache_bandwidth says how fast cached samples are read, got it without cached_fraction. "
            "Pass cached_fraction=0.5 as well, or leave cache_bandwidth out."
        )


def _check_samples(model: Entry | None, dataset: Entry | None) -> None:
    if dataset is None or model is None:
        return
    taken, given = model.get("input_elements"), dataset.get("decoded_elements")
    if None not in (taken, given) and taken != given:
        raise InputError(
            f"model and dataset must belong together, got {model.name}, which takes {taken} numbers "
            f"a sample, and {dataset.name}, which gives {given}. Pass one that fits, or your own "
            "with .replace(decoded_elements=...)."
        )
