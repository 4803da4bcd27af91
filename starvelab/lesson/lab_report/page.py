"""The page of a lab report, and what its owner wrote in an earlier one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...tables import percent, points
from ..outcomes import HEADERS, grouped
from .contents import LabReport
from .pictures import calibration, numbers_beside_truths

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE = Path(__file__).with_name("report.html.j2")
NOTES = re.compile(r'<script type="application/json" id="starvelab-notes">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Notes:
    """What the owner of a report wrote into it: their name, and by key of a prediction what a miss taught."""

    owner: str = ""
    learned: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A file can hold anything.
        if not all(isinstance(text, str) for text in (self.owner, *self.learned.values())):
            raise ValueError("a note is a text")


@cache
def _template() -> Template:
    # Loaded here: nothing else of the package needs it.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def render(report: LabReport) -> str:
    """The page."""
    measurements = [
        [
            one.what,
            f"{grouped(one.measured)} {one.unit}",
            f"{grouped(one.model)} {one.unit}",
            f"{one.error:+.1%}".replace("%", " %"),
        ]
        for one in report.measurements
    ]
    earned, most = report.points
    page = _template().render(
        report=report,
        outcomes=report.outcomes,
        headers=HEADERS,
        numbers=numbers_beside_truths(report.predictions),
        calibration=calibration(report.outcomes),
        measurements=measurements,
        earned=f"{points(earned)} of {most:g}",
        share=percent(earned / most) if most else "",
        # In a script nothing ends the page, whatever somebody wrote.
        notes=json.dumps({"owner": report.owner, "learned": report.learned}).replace("<", "\\u003c"),
    )
    # Half a character, which JSON can hold, is shown by its number.
    return page.encode("utf-8", "backslashreplace").decode() + "\n"


def read_notes(path: Path) -> Notes:
    """What the owner of a report wrote into it; nothing where there is none that can be read."""
    try:
        match = NOTES.search(path.read_text(encoding="utf-8"))
        return Notes() if match is None else Notes(**json.loads(match[1]))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return Notes()
