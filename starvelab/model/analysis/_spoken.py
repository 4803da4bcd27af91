"""Times and bandwidths as a person would say them: in the unit that needs no string of zeros."""

from __future__ import annotations

from ...units import Quantity, format_quantity


def spoken_time(time: Quantity) -> str:
    """A time in ms, or in s from ten seconds on."""
    return format_quantity(time.to("s") if time.m_as("s") >= 10 else time)


def spoken_bandwidths(*bandwidths: Quantity) -> list[str]:
    """Bandwidths that are compared, in one unit: GB/s, or MB/s where one of them is small."""
    unit = "GB/s" if min(one.m_as("GB/s") for one in bandwidths) >= 0.1 else "MB/s"
    return [format_quantity(one.to(unit)) for one in bandwidths]
