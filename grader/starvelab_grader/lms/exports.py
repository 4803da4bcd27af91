"""Grades as Canvas and Moodle take them: exporters for `nbgrader export`.

Both fill in a table that the learning platform has given out. Every other cell of it keeps its characters.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from nbgrader.api import Gradebook, Student
from nbgrader.plugins import ExportPlugin
from traitlets import Bool, TraitError, Unicode

from ..errors import InputError
from ..text import listed, printed, slug
from .returning import Result
from .rosters import DECIMAL_COMMA, WORDS, Sheet, identity_column, number_in, open_sheet, student_in

# What a spreadsheet of another language makes of points: 7.5 becomes `7. May` or `07.05.2026`.
DATE = re.compile(r"\d+[./-] ?\d+[./-] ?\d+|\d+[.-] ?[^\W\d_]{3,}\.?|[^\W\d_]{3,}\.?[ -]\d+")
# A cell of a column for points: nothing, a number, or what stands for one.
POINTS = re.compile(r"\s*(?:-|\d[\d\s]*(?:[.,]\d+)?\s*%?)?\s*")
EXCUSED = "EX"  # in the place of points, as a platform writes it
# Columns of Canvas that say who a student is, or that it computes itself.
OF_CANVAS = re.compile(
    r"Student|(SIS \w+ |Integration )?ID|Root Account|Section|"
    r".*(Current|Final|Override) (Score|Points|Grade).*"
)


class _Table(ExportPlugin):
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


class Grades(_Table):
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


class PlatformTable(_Table):
    """A table of a platform, given out or new; a class says what its platform's has of its own."""

    roster = Unicode(help="The table that the learning platform exported: it is filled in.").tag(config=True)
    column = Unicode(help="The column for the points, if not called as the assignment.").tag(config=True)
    scale = Bool(help="Whether to scale points to what the platform has as points possible.").tag(config=True)
    what_is_needed = ""
    identities: ClassVar[Sequence[str]] = ()  # columns that may name the students; any where there are none
    # Of a table of our own, where no roster was given: what stands in the line of a student.
    new_columns: ClassVar[Mapping[str, Callable[[Student], str]]] = {}
    reads_both = False  # 7,5 and 7.5: a table with semicolons is for a spreadsheet that makes a date of one
    members: Mapping[str, str] = {}  # of groups: by member, who submitted

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:  # noqa: ARG002
        """Return the column of an assignment's points, which is called like it; added if there is none."""
        slugs = [slug(header) for header in sheet.headers]
        return slugs.index(slug(assignment)) if slug(assignment) in slugs else sheet.add_column(assignment)

    def possible(self, sheet: Sheet, place: int) -> float | None:  # noqa: ARG002
        """Return the points possible that the table has for a column; None where it does not say."""
        return None

    def writable(self, sheet: Sheet, identity: int) -> list[int]:
        """Return the columns that can hold points: those in which no student has anything else."""
        every = (at for at in range(len(sheet.headers)) if at != identity)
        return [at for at in every if all(POINTS.fullmatch(row[at]) for row in sheet.rows)]

    def comments_column(self, sheet: Sheet, results: Mapping[str, object]) -> int | None:  # noqa: ARG002
        """Return the column for comments; None where there is none."""
        return None

    def table(self, gradebook: Gradebook) -> Sheet:
        """Return the roster with the points in it, or a new table; an InputError says what is wrong."""
        everybody = sorted(gradebook.students, key=lambda one: str(one.id))
        chosen = set(self.chosen("student", (one.id for one in everybody)))
        results = {}
        for name in self.chosen("assignment", (one.name for one in gradebook.assignments)):
            submitted = gradebook.assignment_submissions(name)
            results[name] = {one.student_id: Result(one) for one in submitted if one.student_id in chosen}
        if not self.assignment:
            # What was released and not yet submitted needs no column.
            results = {name: each for name, each in results.items() if each} or results
        if self.column:
            _require_one(results, "`column` names one column")
        new_rows = ([value(one) for value in self.new_columns.values()] for one in everybody)
        sheet = open_sheet(self.roster) if self.roster else Sheet.new([*self.new_columns], new_rows)
        # A table may call students by the name of the folder, the email, or the platform's number.
        known = {name: one.id for one in everybody for name in (one.lms_user_id, one.email) if name}
        known |= {one.id: one.id for one in everybody}
        known = {**self.members} or known
        columns = [sheet.headers.index(name) for name in self.identities if name in sheet.headers]
        identity = identity_column(sheet, {one: one for one in known}, columns if self.identities else None)
        if identity is None:
            rule = "No student of the gradebook stands in the roster."
            raise InputError(f"{rule} {self.what_is_needed} It has: {sheet.columns}.")
        places = {}
        for name, each in results.items():
            place = self._named_column(sheet, identity) if self.column else self.place(gradebook, sheet, name)
            places[name] = place
            if date := next((row[place] for row in sheet.rows if DATE.fullmatch(row[place].strip())), None):
                raise InputError(
                    f"The column {sheet.headers[place]!r} holds points, and {printed(date)!r} is a date: "
                    "a spreadsheet has changed it. Export the table again, and save it in no spreadsheet."
                )
            possible = self._scaled_to(sheet, place, name, gradebook.find_assignment(name).max_score)
            results[name] = {student: replace(one, possible=possible) for student, one in each.items()}
        # A column that is added may bring a line for its points, so the students' lines are found after that.
        rows = sheet.rows
        named = enumerate(student_in(row[identity], known) for row in rows)
        lines = [(number, student) for number, student in named if student and student in chosen]
        comments = self.comments_column(sheet, results)
        for name, each in results.items():
            near = (cell for row in rows for cell in row[places[name] : places[name] + 2])
            comma = any(map(DECIMAL_COMMA.fullmatch, near)) or (self.reads_both and sheet.delimiter == ";")
            for number, student in lines:
                excused = rows[number][places[name]].strip().upper() == EXCUSED
                if (result := each.get(student)) is None or excused:
                    continue
                points = f"{round(result.filed, 5):.10g}"
                sheet.put(number, places[name], points.replace(".", ",") if comma else points)
                before = "" if comments is None else rows[number][comments].strip()
                # What a person wrote there stays.
                if comments is not None and (not before or " points" in before.partition(";")[0]):
                    sheet.put(number, comments, escape(result.summary))
        graded = {student for each in results.values() for student in each}
        if missing := graded.difference(student for _, student in lines):
            self.log.warning("Graded, but not in the roster: %s", printed(", ".join(sorted(missing))))
        works = [one.submission for each in results.values() for one in each.values()]
        if waiting := sum(work.needs_manual_grade for work in works):
            self.log.warning("%s submissions wait for a mark by hand, which counts as 0 until then.", waiting)
        return sheet

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
        """Return the column of a name, of Canvas's number for it, or of a beginning that no other has."""
        columns = {at: sheet.headers[at] for at in self.writable(sheet, identity)}
        named = [at for at, header in columns.items() if self.column in (header, *_canvas_name(header))]
        begun = [at for at, header in columns.items() if header.casefold().startswith(self.column.casefold())]
        if len(matches := named[:1] or begun) == 1:
            return matches[0]
        problem = f"{len(matches)} begin with {self.column!r}" if matches else f"{self.column!r} is none"
        raise InputError(
            f"`column` names a column of the roster for points, and {problem}. These can be written: "
            f"{printed(', '.join(columns[at] for at in matches or columns)) or 'none'}."
        )


class Canvas(PlatformTable):
    """A gradebook that Canvas imports (Grades, Import)."""

    identities = ("ID", "SIS Login ID", "SIS User ID", "Student")
    reads_both = True
    what_is_needed = (
        f"It needs one of the columns {', '.join(identities)} with the names of the folders in submitted/."
    )
    # Folders are called by the Canvas ID or by the login.
    new_columns: ClassVar[Mapping[str, Callable[[Student], str]]] = {
        "Student": lambda one: ", ".join(filter(None, (one.last_name, one.first_name))) or one.id,
        "ID": lambda one: one.id if one.id.isdigit() else "",
        "SIS User ID": lambda _: "",
        "SIS Login ID": lambda one: one.id,
        "Section": lambda _: "",
    }

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:
        """Return the column whose title Canvas has put its own number behind: `Starving the GPU (4711)`."""
        titles = {at: _canvas_name(header)[0] for at, header in enumerate(sheet.headers)}
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
            sheet.insert_row(["Points Possible", *[""] * (column - 1), most])
        else:
            sheet.put(number, column, most)
        if self.roster:
            self.log.warning(
                "The roster has no column for %s: one is added, with %s points possible, and Canvas makes a "
                "new assignment of it. If Canvas has the assignment already, name its column: "
                "--Canvas.column='...'", assignment, most,
            )  # fmt: skip
        return column

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """Read the line of points possible."""
        number = _points_row(sheet)
        return None if number is None else number_in(sheet.rows[number][place])

    def writable(self, sheet: Sheet, identity: int) -> list[int]:  # noqa: ARG002
        """Return those of assignments: Canvas computes others itself, and says that they are read only."""
        others = (at for at, header in enumerate(sheet.headers) if not OF_CANVAS.fullmatch(header))
        return [at for at in others if not any("(read only)" in row[at] for row in sheet.rows[:2])]


class Moodle(PlatformTable):
    """A grading worksheet or a table of grades that Moodle imports."""

    comments = Unicode(help="The column for the comments, if its name does not tell.").tag(config=True)
    what_is_needed = (
        "It needs a column with the names of the folders in submitted/: for a download of Moodle the grading "
        "worksheet of the same assignment, with its identifiers (Participant 123)."
    )
    # For Grades, Import, CSV: folders are called by the user names.
    new_columns: ClassVar[Mapping[str, Callable[[Student], str]]] = {
        "username": lambda student: student.id,
        "email": lambda student: student.email or "",
    }

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:
        """Return the one column of a worksheet for the grade; other tables have one by assignment."""
        by_name = slug(assignment) in map(slug, sheet.headers)
        worksheet = None if by_name else _grade_column(sheet)
        return super().place(gradebook, sheet, assignment) if worksheet is None else worksheet

    def writable(self, sheet: Sheet, identity: int) -> list[int]:
        """Return the one column for the grade, of a worksheet that calls it so."""
        grade = [at for at, header in enumerate(sheet.headers) if header.casefold() in WORDS["grades"]]
        return grade or super().writable(sheet, identity)

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """In a worksheet the most that can be earned stands behind the grade."""
        in_worksheet = place == _grade_column(sheet) and place + 1 < len(sheet.headers)
        return _same_number(sheet, place + 1) if in_worksheet else None

    def comments_column(self, sheet: Sheet, results: Mapping[str, object]) -> int | None:
        """Return the column of a worksheet that says what the points are for."""
        if _grade_column(sheet) is None and not self.comments:
            return None
        _require_one(results, "A grading worksheet belongs to one assignment")
        if self.comments and self.comments not in sheet.headers:
            raise InputError(f"The worksheet has no column {self.comments!r}. It has: {sheet.columns}.")
        usual = re.compile("|".join(WORDS["comments"]), re.IGNORECASE)
        is_it = self.comments.__eq__ if self.comments else usual.search
        return next((at for at, header in enumerate(sheet.headers) if is_it(header)), None)


def _require_one(results: Mapping[str, object], rule: str) -> None:
    if len(results) > 1:
        raise InputError(
            f"{rule}, and there are grades of {len(results)} assignments: {', '.join(results)}. "
            f"Name one of them: --assignment={next(iter(results))}"
        )


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


def _canvas_name(header: str) -> tuple[str, str]:
    """Return the title of a column of Canvas, and the number behind it."""
    match = re.fullmatch(r"(.*?)\s*(?:\((\d+)\))?\s*", header.strip(), re.DOTALL)
    assert match is not None  # the pattern matches every text
    return match[1], match[2] or header
