"""Grades as Canvas and Moodle take them: exporters for `nbgrader export`.

Both fill in a table that the learning platform has given out, so that all else in it stays as it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin
from traitlets import Unicode

from ..errors import InputError
from .spreadsheet import no_formula


class _Export(ExportPlugin):
    """What the two have in common.

    Attributes
    ----------
    identities : sequence of str
        Columns by which the platform names a student, the surest first.
    """

    roster = Unicode("", help="The table that the learning platform exported: it is filled in.").tag(
        config=True
    )
    identities: Sequence[str] = ()

    def export(self, gradebook: Gradebook) -> None:
        """Write the table.

        Raises
        ------
        InputError
        """
        names = [str(name) for name in self.assignment] or [one.name for one in gradebook.assignments]
        headers, rows = self._table(gradebook)
        column = self._who(headers, rows, {student.id for student in gradebook.students})
        places = {name: self.place(headers, name) for name in names}
        met = set()
        for row in rows:
            row += [""] * (len(headers) - len(row))
            student = self._id(row[column])
            for name, place in places.items():
                points = _points(gradebook, name, student)
                if points is not None:
                    row[place] = f"{points:g}"
                    met.add(student)
        self.finish(
            headers, rows, {places[name]: gradebook.find_assignment(name).max_score for name in names}
        )
        to = Path(self.to or f"{type(self).__name__.lower()}.csv")
        with to.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([headers, *([no_formula(value) for value in row] for row in rows)])
        self._say(gradebook, names, met)
        self.log.warning("Written: %s", to)

    def _table(self, gradebook: Gradebook) -> tuple[list[str], list[list[str]]]:
        if not self.roster:
            return self.new_table(gradebook)
        path = Path(self.roster).expanduser()
        if not path.is_file():
            raise InputError(
                f"The roster {self.roster!r} is not there. Pass the table that the platform exported."
            )
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = [row for row in csv.reader(file) if row]
        if not table:
            raise InputError(
                f"The roster {self.roster!r} is empty. Pass the table that the platform exported."
            )
        return table[0], table[1:]

    def _who(self, headers: Sequence[str], rows: Iterable[Sequence[str]], students: set[str]) -> int:
        """The column that names the students as the gradebook does."""
        present = [headers.index(name) for name in self.identities if name in headers]
        matches = [sum(self._id(row[at]) in students for row in rows if len(row) > at) for at in present]
        if not any(matches):
            raise InputError(
                "No student of the gradebook stands in the roster. It needs one of the columns "
                f"{', '.join(self.identities)} with the names of the folders in submitted/; it has: "
                f"{', '.join(headers)}."
            )
        return present[matches.index(max(matches))]

    def _say(self, gradebook: Gradebook, names: Sequence[str], met: set[str]) -> None:
        missing = sorted(
            student.id
            for student in gradebook.students
            if student.id not in met
            and any(_points(gradebook, name, student.id) is not None for name in names)
        )
        if missing:
            self.log.warning("Graded, but not in the roster: %s", ", ".join(missing))
        waiting = sum(
            submission.needs_manual_grade
            for name in names
            for submission in gradebook.assignment_submissions(name)
        )
        if waiting:
            self.log.warning("%s submissions wait for a mark by hand, which counts as 0 until then.", waiting)

    def _id(self, text: str) -> str:
        return text.strip()

    def new_table(self, gradebook: Gradebook) -> tuple[list[str], list[list[str]]]:
        """A table with the students of the gradebook, where no roster was given."""
        raise NotImplementedError

    def place(self, headers: list[str], assignment: str) -> int:
        """The column for the points of an assignment; made, if there is none."""
        raise NotImplementedError

    def finish(self, headers: list[str], rows: list[list[str]], most: dict[int, float]) -> None:
        """Say what the most is that can be earned, where the platform wants to know."""


class Canvas(_Export):
    """A gradebook that Canvas imports (Grades, Import)."""

    identities = ("ID", "SIS Login ID", "SIS User ID", "Student")

    def new_table(self, gradebook: Gradebook) -> tuple[list[str], list[list[str]]]:
        """With the columns that Canvas asks for; folders are called by the Canvas ID or by the login."""
        headers = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
        rows = []
        for student in sorted(gradebook.students, key=lambda one: one.id):
            name = ", ".join(part for part in (student.last_name, student.first_name) if part) or student.id
            canvas = student.id if student.id.isdigit() else ""
            rows.append([name, canvas, "", student.id, ""])
        return headers, rows

    def place(self, headers: list[str], assignment: str) -> int:
        """Canvas writes its own number behind the name of an assignment: `name (123)`."""
        for at, header in enumerate(headers):
            if re.fullmatch(rf"{re.escape(assignment)}(\s*\(\d+\))?", header.strip(), re.IGNORECASE):
                return at
        headers.append(assignment)
        return len(headers) - 1

    def finish(self, headers: list[str], rows: list[list[str]], most: dict[int, float]) -> None:
        """The row `Points Possible`, where the table has none."""
        if not any("points possible" in row[0].lower() for row in rows):
            made = ["Points Possible", *[""] * (len(headers) - 1)]
            for at, points in most.items():
                made[at] = f"{points:g}"
            rows.insert(0, made)


class Moodle(_Export):
    """A grading worksheet or a table of grades that Moodle imports."""

    identities = ("Identifier", "Username", "username", "ID number", "idnumber", "Email address", "email")

    def _id(self, text: str) -> str:
        return re.sub(r"^Participant\s+", "", text.strip())

    def new_table(self, gradebook: Gradebook) -> tuple[list[str], list[list[str]]]:
        """For Grades, Import, CSV: a student's folder is called by the user name."""
        students = sorted(gradebook.students, key=lambda one: one.id)
        return ["username", "email"], [[one.id, one.email or ""] for one in students]

    def place(self, headers: list[str], assignment: str) -> int:
        """A worksheet has one column `Grade`."""
        for name in ("Grade", assignment):
            if name in headers:
                return headers.index(name)
        headers.append(assignment)
        return len(headers) - 1


def _points(gradebook: Gradebook, assignment: str, student: str) -> float | None:
    """What a student has for an assignment, less what being late costs; None where nothing was handed in."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None
    return max(0.0, submission.score - submission.late_submission_penalty)
