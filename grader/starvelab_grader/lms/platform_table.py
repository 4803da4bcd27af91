"""A table of a learning platform with the points of a class in it; every other cell keeps its characters."""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin
from traitlets import Bool, TraitError, Unicode

from ..errors import InputError
from ..text import listed, printed, slug
from .names import Names
from .returning import Result
from .rosters import DECIMAL_COMMA, Sheet, identity_column, open_sheet

# What a spreadsheet of another language makes of points: 7.5 becomes `7. May` or `07.05.2026`.
DATE = re.compile(r"\d+[./-] ?\d+[./-] ?\d+|\d+[.-] ?[^\W\d_]{3,}\.?|[^\W\d_]{3,}\.?[ -]\d+")
EXCUSED = "EX"  # in the place of points, as a platform writes it


class Table(ExportPlugin):
    """A table of grades."""

    table: Callable[[Gradebook], Sheet]  # makes it; an InputError says what is wrong

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except TraitError as error:
            raise SystemExit(str(error)) from None

    def export(self, gradebook: Gradebook) -> None:
        """Write the table. What is wrong ends the command with a sentence."""
        to = Path(self.to or f"{type(self).__name__.lower()}.csv")
        try:
            to.write_bytes(self.table(gradebook).content)
        except InputError as error:
            raise SystemExit(printed(str(error))) from None
        except OSError as error:
            problem = f"{error.filename} cannot be used: {error.strerror}."
            raise SystemExit(f"{problem} Check its name, and your rights there.") from None
        self.log.info("Written: %s", to)

    def chosen(self, what: str, known: Iterable[object]) -> list[str]:
        """Return the students or assignments that the options name; all unless they name some."""
        names, chosen = list(map(str, known)), list(map(str, getattr(self, what)))
        for one in chosen:
            if one not in names:
                raise InputError(f"The gradebook has no {what} {one!r}; it has: {listed(names)}.")
        return chosen or names


class PlatformTable(Table):
    """A table that a platform gave out; a class says what its platform's has of its own."""

    roster = Unicode(help="The table that the learning platform exported: it is filled in.").tag(config=True)
    column = Unicode(help="The column for the points, if not called as the assignment.").tag(config=True)
    scale = Bool(help="Whether to scale points to what the platform has as points possible.").tag(config=True)
    what_is_needed = ""
    identities: ClassVar[Sequence[str]] = ()  # columns that may name the students; any where there are none
    reads_both = False  # 7,5 and 7.5: a table with semicolons is for a spreadsheet that makes a date of one
    members: Mapping[str, str] = {}  # by what the platform calls a student, who submitted

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.written: dict[str, str] = {}  # the points of each student, as they were written

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:  # noqa: ARG002
        """Return the column of an assignment's points, which is called like it; added if there is none."""
        slugs = [slug(header) for header in sheet.headers]
        return slugs.index(slug(assignment)) if slug(assignment) in slugs else sheet.add_column(assignment)

    def possible(self, sheet: Sheet, place: int) -> float | None:  # noqa: ARG002
        """Return the points possible that the table has for a column; None where it does not say."""
        return None

    def table(self, gradebook: Gradebook) -> Sheet:
        """Return the roster with the points in it; an InputError says what is wrong."""
        students = sorted(gradebook.students, key=lambda student: str(student.id))
        selected = set(self.chosen("student", (student.id for student in students)))
        results = self._results(gradebook, selected)
        sheet = open_sheet(self.roster)
        names = Names.of_members(self.members) if self.members else Names.of(students)
        identity = self._identity_column(sheet, names)
        columns = {name: self._points_column(gradebook, sheet, identity, name) for name in results}
        if len(columns) > len(set(columns.values())):
            raise InputError(
                f"A column holds the points of one assignment, and there are grades of {len(columns)}: "
                f"{', '.join(columns)}. Name one of them: --assignment={next(iter(columns))}"
            )
        for name, column in columns.items():
            possible = self._scaled_to(sheet, column, name, gradebook.find_assignment(name).max_score)
            results[name] = {who: replace(result, possible=possible) for who, result in results[name].items()}
        # A column that was added may have brought a line for its points: students are found after that.
        rows = {row: who for row, who in names.by_row(sheet, identity).items() if who in selected}
        for name, column in columns.items():
            self._write_points(sheet, rows, column, results[name])
        self._warn(results, set(rows.values()))
        return sheet

    def _results(self, gradebook: Gradebook, selected: Container[str]) -> dict[str, dict[str, Result]]:
        """Return the results of the selected students, by assignment."""
        results = {}
        for name in self.chosen("assignment", (entry.name for entry in gradebook.assignments)):
            submissions = gradebook.assignment_submissions(name)
            results[name] = {
                work.student_id: Result(work) for work in submissions if work.student_id in selected
            }
        if not self.assignment:
            # What was released and not yet submitted needs no column.
            results = {name: by_student for name, by_student in results.items() if by_student} or results
        return results

    def _identity_column(self, sheet: Sheet, names: Names) -> int:
        """Return the column that names the students; an InputError where none does."""
        columns = [sheet.headers.index(name) for name in self.identities if name in sheet.headers]
        by_itself = {name: name for name in names.meanings}  # whom one means does not matter for a column
        identity = identity_column(sheet, by_itself, columns if self.identities else None)
        if identity is None:
            rule = "No student of the gradebook stands in the roster."
            raise InputError(f"{rule} {self.what_is_needed} It has: {sheet.columns}.")
        return identity

    def _points_column(self, gradebook: Gradebook, sheet: Sheet, identity: int, assignment: str) -> int:
        """Return the column for an assignment's points; an InputError where it holds a date."""
        column = (
            self._named_column(sheet, identity) if self.column else self.place(gradebook, sheet, assignment)
        )
        if date := next((row[column] for row in sheet.rows if DATE.fullmatch(row[column].strip())), None):
            raise InputError(
                f"The column {sheet.headers[column]!r} holds points, and {printed(date)!r} is a date: "
                "a spreadsheet has changed it. Export the table again, and save it in no spreadsheet."
            )
        return column

    def _write_points(
        self, sheet: Sheet, student_in: Mapping[int, str], column: int, results: Mapping[str, Result]
    ) -> None:
        """Write the points of those who are not excused, with the decimal mark of the table."""
        nearby = (cell for row in sheet.rows for cell in row[column : column + 2])
        comma = any(map(DECIMAL_COMMA.fullmatch, nearby)) or (self.reads_both and sheet.delimiter == ";")
        rows = sheet.rows
        for row, student in student_in.items():
            if student in results and rows[row][column].strip().upper() != EXCUSED:
                points = results[student].points
                sheet.put(row, column, points.replace(".", ",") if comma else points)
                self.written[student] = points

    def _warn(self, results: Mapping[str, Mapping[str, Result]], in_roster: Set[str]) -> None:
        """Warn of results that found no row, and of marks that are still to be given."""
        graded = {student for by_student in results.values() for student in by_student}
        if missing := graded - in_roster:
            self.log.warning("Graded, but not in the roster: %s", printed(", ".join(sorted(missing))))
        works = [result.submission for by_student in results.values() for result in by_student.values()]
        if waiting := sum(work.needs_manual_grade for work in works):
            self.log.warning("%s submissions wait for a mark by hand, which counts as 0 until then.", waiting)

    def _scaled_to(self, sheet: Sheet, place: int, assignment: str, most: float) -> float | None:
        """Return the points possible to scale to; None if points are written as they are."""
        possible, option = self.possible(sheet, place), f"--{type(self).__name__}.scale"
        if self.scale and possible is None:
            raise InputError(
                f"The points possible of {assignment!r} in the roster are not known. Pass the platform's own "
                f"table, or export without {option}"
            )
        if possible in (None, most):
            return None
        if not self.scale:
            self.log.warning(
                "%r has %g points possible, and %s has %g: points are written as they are, so that who "
                "earned all has %g of %g. Give it %g points there, or scale them: %s=True",
                sheet.headers[place], possible, assignment, most, most, possible, most, option,
            )  # fmt: skip
        return possible if self.scale else None

    def _named_column(self, sheet: Sheet, identity: int) -> int:
        """Return the column that the option names."""
        if self.column in sheet.headers and (column := sheet.headers.index(self.column)) != identity:
            return column
        raise InputError(
            f"`column` names the column of the roster for points, and {self.column!r} is none. "
            f"It has: {sheet.columns}."
        )
