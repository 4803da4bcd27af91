"""Submissions that a person should look at: a line for each student, the worst first, with what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..batch.records import GradedSubmission, GradedSubmissions
from ..files import write_whole
from ..fingerprints import fingerprint

LOOKED_AT = "looked-at"  # the file beside the records: of each student the remarks that a person has read


@dataclass(frozen=True)
class ToLookAt:
    """A student whose submission a person should look at."""

    student: str
    to_do: str
    remarks: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Another one where the remarks are others."""
        return fingerprint({}, self.remarks)

    def __str__(self) -> str:
        first, more = self.remarks[0], len(self.remarks) - 1
        return f"{self.student}: {self.to_do}. {first}{f' And {more} more.' if more else ''}"


def to_look_at(
    records: Iterable[GradedSubmission], looked_at: Mapping[str, str] | None = None
) -> list[ToLookAt]:
    """Return whom a person should look at, the worst first; not those who were `looked_at` as they are."""
    found = []
    for one in records:
        remarks = [
            (notebook, warning.text)
            for notebook, warnings in one.warnings.items()
            for warning in warnings
            if warning.person
        ]
        others = dict.fromkeys(notebook for notebook, _ in remarks if notebook not in one.rejected)
        to_do = [f"ask again for {', '.join(one.rejected)}"] * bool(one.rejected)
        to_do += [f"look into {', '.join(others)}"] * bool(others)
        lines = tuple(f"{notebook}: {text}" for notebook, text in remarks)
        made = ToLookAt(one.student, " and ".join(to_do), lines)
        if remarks and (looked_at or {}).get(one.student) != made.fingerprint:
            found.append((-len(one.rejected), -len(remarks), made))
    return [one for *_, one in sorted(found, key=lambda each: (*each[:2], each[2].student))]


def load_looked_at(records: GradedSubmissions) -> dict[str, str]:
    """Return the fingerprints of the remarks that a person has looked at, by student."""
    try:
        text = (records.folder / LOOKED_AT).read_text(encoding="utf-8")
        return {str(student): str(value) for student, value in json.loads(text).items()}
    except (OSError, ValueError, AttributeError):  # then everybody is listed once more
        return {}


def save_looked_at(records: GradedSubmissions, found: Iterable[ToLookAt]) -> None:
    """Remember that a person has looked at these."""
    looked_at = load_looked_at(records) | {one.student: one.fingerprint for one in found}
    write_whole(records.folder / LOOKED_AT, json.dumps(looked_at, indent=1))
