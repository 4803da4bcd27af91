"""Copying a batch from the host to the device, as many bytes as are really sent.

It knows one link used one way; not how many devices share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import InputError, MissingFigureError
from ...units import Q_, Quantity, as_quantity, positive, whole
from ..catalogue import Entry
from .cost import Cost, Line
from .stage import Stage

_PREFIX = {"Hardware": "link_", "Links": ""}


@dataclass(frozen=True)
class TransferResult:
    """The answer of `TransferModel.solve`: a time [time], and the bandwidth [data/time] behind it."""

    transfer_time: Any
    bandwidth: Any


@dataclass(frozen=True)
class TransferModel(Stage):
    """The host-to-device link, from pinned or pageable memory.

    Parameters
    ----------
    assumptions : Assumptions
        `link_figure` says whether the datasheet's peak or the measured copy rate is believed.

    Notes
    -----
    The bytes are those of the decoded tensor (224 x 224 x 3 is 150,528 B as uint8, 602,112 B as float32), not
    those of the stored file. Stops being true for many small copies, whose launch cost it leaves out.

    References
    ----------
    NVIDIA/nvbandwidth@66746a3, README, for measured pinned copies.
    """

    def solve(self, *, batch_size: Any, sent_size: Any, link: Any, pinned: bool = True) -> TransferResult:
        """Time to copy one batch.

        Parameters
        ----------
        batch_size : int or array
        sent_size : quantity [data]
            Bytes of one sample as they cross the link.
        link : catalogue entry or quantity [data/time]
            An entry of Links, an accelerator (its own link), or a bandwidth.
        pinned : bool

        Raises
        ------
        MissingFigureError, InputError

        Examples
        --------
        >>> from starvelab import Q_
        >>> copy = TransferModel().solve(batch_size=256, sent_size=Q_("602112 B"), link=Q_("32 GB/s"))
        >>> round(copy.transfer_time.to("ms").magnitude, 3)
        4.817
        """
        cost = self.cost(sent_size=sent_size, link=link, pinned=pinned)
        bandwidth = link_bandwidth(link, pinned=pinned, figure=self.assumptions.link_figure)
        return TransferResult(Q_(cost.at(whole(batch_size, "batch_size")) * 1e3, "ms"), bandwidth)

    def cost(self, *, sent_size: Any, link: Any, pinned: bool = True, figure: Any = positive) -> Cost:
        """Copy time of a batch."""
        bandwidth = link_bandwidth(link, pinned=pinned, figure=self.assumptions.link_figure)
        return Cost(
            (Line(0, figure(sent_size, "B", "sent_size") / figure(bandwidth, "B/s", "link bandwidth")),)
        )


def link_bandwidth(link: Any, *, pinned: bool, figure: str) -> Any:
    """The bandwidth [data/time] of a link, an accelerator's own link, or the figure itself."""
    if isinstance(link, str | Quantity):
        return as_quantity(link, "B/s", "link bandwidth")
    prefix = _PREFIX.get(link.kind) if isinstance(link, Entry) else None
    if prefix is None:
        came = f"{link.kind}.{link.path}" if isinstance(link, Entry) else f"{link!r:.80}"
        raise InputError(
            f"link must be an entry of Links or Hardware or a bandwidth, got {came}. "
            'Pass link=Links.PCIe4_x16 or Q_("32 GB/s").'
        )
    field = f"{prefix}bandwidth_" + (figure if pinned else "pageable_sustained")
    value = link.get(field)
    if value is None:
        raise MissingFigureError(
            f"TransferModel needs {field}, and {link.name} lists none. "
            'Pass link=Links.PCIe4_x16 or Q_("32 GB/s").'
        )
    return value
