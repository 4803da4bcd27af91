"""The page of a lab report: the same contents give the same bytes, so that an altered one is found."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...tables import percent, points
from ..outcomes import HEADERS, grouped
from .contents import LabReport
from .pictures import calibration, numbers_beside_truths
from .signing import Signature

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE = Path(__file__).with_name("report.html.j2")
DATA = re.compile(r'<script type="application/json" id="starvelab-report">(.*?)</script>', re.DOTALL)


class NotAReportError(ValueError):
    """A file that is no lab report."""


@cache
def layout() -> str:
    """A fingerprint of what makes the page: another layout gives other bytes."""
    here = Path(__file__).parent
    package = here.parent.parent
    files = [
        *sorted(here.glob("*.*")),
        here.parent / "outcomes.py",
        here.parent / "show" / "svg_parts.py",
        package / "tables.py",
        package / "units.py",
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


@cache
def _template() -> Template:
    # Loaded here: nothing else of the package needs it.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def render(report: LabReport, signature: Signature | None = None) -> str:
    """The page.

    Parameters
    ----------
    report : LabReport
    signature : Signature, optional
        Of an instructor, over `report.canonical()`.
    """
    data = {
        # What is not shown, such as the time of a lock, would otherwise be altered unnoticed.
        "digest": hashlib.sha256(report.canonical()).hexdigest(),
        "layout": layout(),
        "report": json.loads(report.canonical()),
        "signature": None if signature is None else {"key": signature.key, "value": signature.value},
    }
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
        fingerprint="" if signature is None else signature.fingerprint,
        outcomes=report.outcomes,
        headers=HEADERS,
        numbers=numbers_beside_truths(report.predictions),
        calibration=calibration(report.outcomes),
        measurements=measurements,
        earned=f"{points(earned)} of {most:g}",
        share=percent(earned / most) if most else "",
        # In a script nothing ends the page, whatever somebody wrote.
        data=json.dumps(data, ensure_ascii=True, sort_keys=True, indent=0).replace("<", "\\u003c"),
    )
    # Half a character, which JSON can hold, is shown by its number.
    return page.encode("utf-8", "backslashreplace").decode() + "\n"


def read_report(text: str) -> tuple[LabReport, Signature | None, str]:
    """The contents of a page, its signature, and the layout that made it.

    Raises
    ------
    NotAReportError
    """
    match = DATA.search(text)
    try:
        if match is None:
            raise ValueError("it has no contents")
        data = json.loads(match[1])
        signed = data["signature"]
        signature = None if signed is None else Signature(str(signed["key"]), str(signed["value"]))
        return LabReport.from_json(data["report"]), signature, str(data["layout"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotAReportError(str(error)) from None
