"""Grades as Canvas and Moodle take them: exporters for `nbgrader export`.

Both fill in a table that the learning platform has given out. Every other cell of it keeps its characters.
"""

import re
from itertools import chain

from nbgrader.api import Gradebook

from ..errors import InputError
from ..text import slug
from .platform_table import PlatformTable, Table
from .rosters import WORDS, Sheet, number_in


class Grades(Table):
    """nbgrader's own table, in which a student's name is one cell and no formula."""

    columns = (
        "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
        "raw_score", "late_submission_penalty", "score", "max_score",
    )  # fmt: skip

    def table(self, gradebook: Gradebook) -> Sheet:
        """Return a line for each assignment and student."""
        known = {str(one.id): one for one in sorted(gradebook.students, key=lambda one: str(one.id))}
        students, rows = [known[name] for name in self.chosen("student", known)], []
        for name in self.chosen("assignment", (one.name for one in gradebook.assignments)):
            assignment = gradebook.find_assignment(name)
            submitted = {one.student_id: one for one in assignment.submissions}
            for one in students:
                work = submitted.get(one.id)
                points, late = (work.score, work.late_submission_penalty) if work else (0.0, 0.0)
                rows.append([
                    name, assignment.duedate, work and work.timestamp, one.id, one.last_name, one.first_name,
                    one.email, points, late, max(0.0, points - late), assignment.max_score,
                ])  # fmt: skip
        return Sheet.new(self.columns, rows)


class Canvas(PlatformTable):
    """A gradebook that Canvas imports (Grades, Import)."""

    identities = ("ID", "SIS Login ID", "SIS User ID", "Student")
    reads_both = True
    what_is_needed = (
        f"It needs one of the columns {', '.join(identities)} with the names of the folders in submitted/."
    )

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:
        """Return the column whose title Canvas has put its own number behind: `Starving the GPU (4711)`."""
        titles = {at: re.sub(r"\s*\(\d+\)$", "", header) for at, header in enumerate(sheet.headers)}
        matches = [at for at, title in titles.items() if slug(title) == slug(assignment)]
        if len(matches) > 1:
            columns = [repr(sheet.headers[at]) for at in matches]
            raise InputError(
                f"The roster has {' and '.join(columns)}, and both may be {assignment}. Name the one that is "
                f"meant: --Canvas.column={columns[0]}"
            )
        if matches:
            return matches[0]
        column = sheet.add_column(assignment)
        most = f"{gradebook.find_assignment(assignment).max_score:g}"
        if (number := _points_row(sheet)) is None:
            sheet.lines.insert(1, ["Points Possible", *[""] * (column - 1), most])
        else:
            sheet.put(number, column, most)
        self.log.warning(
            "The roster has no column for %s: one is added, with %s points possible, and Canvas makes a new "
            "assignment of it. If Canvas has the assignment already, name its column: --Canvas.column='...'",
            assignment, most,
        )  # fmt: skip
        return column

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """Read the line of points possible."""
        number = _points_row(sheet)
        return None if number is None else number_in(sheet.rows[number][place])


class Moodle(PlatformTable):
    """A grading worksheet or a table of grades that Moodle imports."""

    what_is_needed = (
        "It needs a column with the names of the folders in submitted/: for a download of Moodle the grading "
        "worksheet of the same assignment, with its identifiers (Participant 123)."
    )

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:
        """Return the one column of a worksheet for the grade; other tables have one by assignment."""
        by_name = slug(assignment) in map(slug, sheet.headers)
        worksheet = None if by_name else _grade_column(sheet)
        return super().place(gradebook, sheet, assignment) if worksheet is None else worksheet

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """In a worksheet the most that can be earned stands behind the grade."""
        in_worksheet = place == _grade_column(sheet) and place + 1 < len(sheet.headers)
        return _same_number(sheet, place + 1) if in_worksheet else None


def _points_row(sheet: Sheet) -> int | None:
    rows = enumerate(sheet.rows)
    return next((number for number, row in rows if "points possible" in row[0].lower()), None)


def _grade_column(sheet: Sheet) -> int | None:
    """Return the column of a worksheet that holds the grade; None if it is no worksheet."""
    named = (at for at, header in enumerate(sheet.headers) if header.casefold() in WORDS["grades"])
    # In any language the most that can be earned stands behind it: the same number in each line.
    numbers = (at - 1 for at in range(2, len(sheet.headers)) if _same_number(sheet, at) is not None)
    return next(chain(named, numbers), None)


def _same_number(sheet: Sheet, column: int) -> float | None:
    """Return the number that stands in each line of a column; None if there is none."""
    numbers = {number_in(row[column]) for row in sheet.rows}
    return numbers.pop() if len(numbers) == 1 else None
