"""SVG bars of shares, and of what parts cost beside what they add."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from types import MappingProxyType

from ...model.resources import ACCELERATOR, CPU, STORAGE
from ...tables import percent
from .svg_parts import frame


def share_bars(
    shares: Mapping[str, float], *, title: str, labels: Mapping[str, str] = MappingProxyType({})
) -> str:
    """One bar for each named share, within an outline that stands for the whole.

    Parameters
    ----------
    shares : mapping of str to float
        From 0 up. More than the whole fills the outline, in another color. A name in which "accelerator" or
        "GPU" stands has the accelerator's color.
    title : str
        What the figure shows.
    labels : mapping of str to str
        What stands beside a bar, by its name, where that is not the share in percent.
    """
    said = {name: labels.get(name, percent(share)) for name, share in shares.items()}
    rows = []
    for i, (name, share) in enumerate(shares.items()):
        resource = ACCELERATOR if "accelerator" in name or "GPU" in name else CPU
        y, color = 10 + 40 * i, STORAGE.color if share > 1 else resource.color
        rows.append(
            f'<text x="160" y="{y + 19}" text-anchor="end">{escape(name)}</text>'
            f'<text x="570" y="{y + 19}">{escape(said[name])}</text>'
            f'<rect x="170" y="{y}" width="380" height="28" rx="3" fill="none" stroke="currentColor"/>'
            f'<rect x="170" y="{y}" width="{max(1, 380 * min(share, 1)):.0f}" height="28" rx="3" '
            f'fill="{color}"/>'
        )
    told = ", ".join(f"{name} {label}" for name, label in said.items())
    return frame("".join(rows), height=10 + 40 * len(rows), title=title, description=f"{told}.")


def cost_bars(costs: Mapping[str, float], adds: Mapping[str, float], *, title: str) -> str:
    """An outline for what each part costs, and a filled bar for what it adds.

    Parameters
    ----------
    costs, adds : mapping of str to float
        By the name of the part [ms]. The part "compute" is the accelerator's.
    title : str
        What the figure shows.
    """
    scale = 330 / max(costs.values())
    rows = []
    for i, (part, cost) in enumerate(costs.items()):
        y, color = 8 + 34 * i, (ACCELERATOR if part == "compute" else CPU).color
        rows.append(
            f'<text x="100" y="{y + 17}" text-anchor="end">{escape(part)}</text>'
            f'<rect x="110" y="{y}" width="{scale * adds[part]:.1f}" height="24" fill="{color}"/>'
            f'<rect x="110" y="{y}" width="{scale * cost:.1f}" height="24" fill="none" '
            'stroke="currentColor"/>'
            f'<text x="452" y="{y + 17}">costs {cost:.1f}, adds {adds[part]:.1f} ms</text>'
        )
    told = ", ".join(f"{part} costs {cost:.1f} ms" for part, cost in costs.items())
    return frame("".join(rows), height=10 + 34 * len(rows), title=title, description=f"{told}.")
