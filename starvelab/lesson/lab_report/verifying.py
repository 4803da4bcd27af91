"""Whether a lab report is as it was made, and what its numbers are, computed anew."""

from __future__ import annotations

import argparse
import sys
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...tables import points, to_text
from .contents import LabReport
from .page import NotAReportError, layout, read_report, render
from .signing import Signature


@dataclass(frozen=True)
class Verdict:
    """What there is to say of a file.

    Attributes
    ----------
    problem : str
        Why it cannot be believed; empty if it can.
    report : LabReport or None
        Its contents, where they can be read.
    signature : Signature or None
        That of an instructor, where it fits.
    """

    problem: str
    report: LabReport | None = None
    signature: Signature | None = None

    def sentences(self) -> list[str]:
        """The verdict, and the numbers of the report as they are computed here."""
        if self.problem or self.report is None:
            return [self.problem]
        report = self.report
        made = "Made by its owner: nobody vouches for what went into it."
        if self.signature is not None:
            made = (
                f"Signed while grading, with the key {self.signature.fingerprint}. "
                "Compare this with what the instructor has made known."
            )
        earned, most = report.points
        return [
            f"No byte of this report of {report.owner or 'somebody'} on {report.assignment} was altered.",
            made,
            f"{report.done} of {len(report.exercises)} exercises done, {points(earned)} of {most:g} points.",
            *report.outcomes.sentences(),
        ]

    def __str__(self) -> str:
        lines = self.sentences()
        if not self.problem and self.report is not None and self.report.measurements:
            rows = [
                [one.what, one.measured, one.model, f"{100 * one.error:+.1f} %"]
                for one in self.report.measurements
            ]
            lines += ["", to_text(["own measurement", "measured", "model", "off by"], rows)]
        return "\n".join(lines)


def verify(content: bytes) -> Verdict:
    """Compare the page with what its own contents give, and check its signature.

    Parameters
    ----------
    content : bytes
        The file.
    """
    try:
        text = content.decode("utf-8")
        report, signature, made_by = read_report(text)
    except (UnicodeDecodeError, NotAReportError):
        return Verdict(
            "A lab report holds its contents, and this file holds none that can be read. "
            "It is no lab report, or it was altered."
        )
    if made_by != layout():
        return Verdict(
            "A report is verified with the version of starvelab that made it, and this one says "
            f"{report.starvelab}, with another layout than this version has. Install the version that made "
            "it, or ask for a new report.",
            report,
        )
    try:
        wanted = render(report, signature)
    except (Base64Error, ValueError):
        return Verdict("The signature of this report cannot be read: it was altered.", report)
    if wanted != text:
        return Verdict(f"This report was altered, in line {_first_difference(wanted, text)}.", report)
    if signature is not None and not signature.fits(report.canonical()):
        return Verdict("The signature does not fit the contents: they were altered after signing.", report)
    return Verdict("", report, signature)


def _first_difference(one: str, other: str) -> int:
    lines = one.split("\n"), other.split("\n")
    pairs = enumerate(zip(*lines, strict=False), start=1)
    return next((number for number, (a, b) in pairs if a != b), min(map(len, lines)) + 1)


def main(arguments: Sequence[str]) -> int:
    """Run `starvelab verify`. Returns the exit status: 0 where every report is as it was made."""
    parser = argparse.ArgumentParser(
        prog="starvelab verify",
        description="Tell whether a lab report was altered, and compute its numbers anew.",
    )
    parser.add_argument("reports", nargs="+", type=Path, metavar="report.html")
    status = 0
    for path in parser.parse_args(arguments).reports:
        try:
            verdict = verify(path.read_bytes())
        except OSError as error:
            verdict = Verdict(f"A report must be readable, and {path} is not ({error.strerror}).")
        print(f"{path}:\n{verdict}", file=sys.stderr if verdict.problem else sys.stdout)
        status |= bool(verdict.problem)
    return int(status)
