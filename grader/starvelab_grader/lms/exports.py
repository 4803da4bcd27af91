"""Grades as Canvas and Moodle take them: exporters for `nbgrader export`.

Both fill in a table that the learning platform has given out. Every other cell of it keeps its characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import floor
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.plugins import ExportPlugin
from traitlets import Bool, TraitError, Unicode

from starvelab.errors import InputError

from ..text import printed
from .rosters import identity_column, named, open_sheet, who
from .spreadsheet import Sheet, number_in

MAX_LISTED = 20  # names in a message
# What Moodle calls the two columns that it imports, in some of its languages.
GRADES = {
    "grade", "bewertung", "note", "calificación", "nota", "valutazione", "voto", "cijfer", "beoordeling",
    "betyg", "karakter", "ocena", "hodnocení", "arvosana", "оценка", "成绩", "成績", "評点", "評定",
}  # fmt: skip
COMMENTS = re.compile(
    r"feedback|comment|kommentar|comentario|coment[aá]rio|commento|commentaire|retroal|opmerking|palaute|"
    r"komentarz|komentář|отзыв|комментари|反馈|评语|コメント",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Result:
    """What a student has for an assignment.

    Attributes
    ----------
    points, most : float
        `points` without what being late costs.
    late : float
        What being late costs.
    notebooks : dict of str to (float, float)
        Points and the most that can be earned, by notebook.
    unmarked : bool
        Whether an answer waits for a person's mark, and counts as 0 until then.
    possible : float, optional
        What the platform has as points possible, where points are scaled to that.
    """

    points: float
    most: float
    late: float
    notebooks: Mapping[str, tuple[float, float]]
    unmarked: bool
    possible: float | None = None

    @property
    def counted(self) -> float:
        """The points that count."""
        return max(0.0, self.points - self.late)

    @property
    def filed(self) -> float:
        """The points that are written. Platforms show two decimals, and so many a scaled number has."""
        if self.possible is None or not self.most:
            return self.counted
        return floor(100 * self.counted * self.possible / self.most + 0.5 + 1e-9) / 100

    @property
    def summary(self) -> str:
        """In words, for the student."""
        parts = [f"{self.counted:g} of {self.most:g} points"]
        if self.late:
            parts[0] += f" ({self.points:g}, less {self.late:g} for being late)"
        parts += [f"{name}: {points:g} of {most:g}" for name, (points, most) in self.notebooks.items()]
        if self.unmarked:
            parts.append("an explanation is not marked yet, and counts as 0 until then")
        share = "" if self.possible is None else f" As a share of {self.possible:g} that is {self.filed:g}."
        return f"{'; '.join(parts)}.{share}"


Results = Mapping[str, Mapping[str, Result]]  # by assignment and student
Students = Sequence[tuple[int, str]]  # the number of a line, and who stands in it


class _Table(ExportPlugin):
    """A table of grades."""

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
            raise SystemExit(
                f"{error.filename} cannot be used: {error.strerror}. Check its name, and your rights there."
            ) from None
        self.log.info("Written: %s", to)

    def table(self, gradebook: Gradebook) -> Sheet:
        """The table.

        Raises
        ------
        InputError
        """
        raise NotImplementedError

    def asked(self, what: str, known: Iterable[str]) -> list[str]:
        """The names of those that the option says, an `assignment` or a `student`; all unless given."""
        known = list(known)
        asked = [str(one) for one in getattr(self, what)]
        for one in asked:
            if one not in known:
                there = ", ".join(known[:MAX_LISTED]) + (", …" if len(known) > MAX_LISTED else "")
                raise InputError(f"The gradebook has no {what} {one!r}; it has: {there or 'none'}.")
        return asked or known


class Grades(_Table):
    """nbgrader's own table, in which a student's name is one cell and no formula."""

    columns = (
        "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
        "raw_score", "late_submission_penalty", "score", "max_score",
    )  # fmt: skip

    def table(self, gradebook: Gradebook) -> Sheet:
        """A line for each assignment and student."""
        students = [gradebook.find_student(name) for name in self.asked("student", _students_in(gradebook))]
        rows = []
        for name in self.asked("assignment", _assignments_in(gradebook)):
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


class _Export(_Table):
    """What the tables of the two platforms have in common."""

    roster = Unicode("", help="The table that the learning platform exported: it is filled in.").tag(
        config=True
    )
    column = Unicode("", help="The column for the points, where it is not called like the assignment.").tag(
        config=True
    )
    scale = Bool(False, help="Whether to scale points to what the platform has as points possible.").tag(
        config=True
    )
    what_is_needed = ""

    def table(self, gradebook: Gradebook) -> Sheet:
        """The roster with the points in it, or a new table."""
        chosen = set(self.asked("student", _students_in(gradebook)))
        results = {
            name: {student: one for student, one in _results(gradebook, name).items() if student in chosen}
            for name in self.asked("assignment", _assignments_in(gradebook))
        }
        if not self.assignment:
            # What was released and not yet submitted needs no column.
            results = {name: each for name, each in results.items() if each} or results
        if self.column and len(results) > 1:
            raise InputError(
                f"`column` names one column, and there are grades of {len(results)} assignments: "
                f"{', '.join(results)}. Name one of them: --assignment={next(iter(results))}"
            )
        sheet = open_sheet(self.roster) if self.roster else self.new_table(gradebook)
        known = _known(gradebook)
        identity = self.identity(sheet, known)
        if identity is None:
            raise InputError(
                f"No student of the gradebook stands in the roster. {self.what_is_needed} "
                f"It has: {named(sheet)}."
            )
        # A column that is added may bring a line for its points: the students' lines are found after that.
        places = {
            name: self._named_column(sheet, identity) if self.column else self.place(gradebook, sheet, name)
            for name in results
        }
        for name, place in places.items():
            most = gradebook.find_assignment(name).max_score
            if possible := self._scaled_to(sheet, place, name, most):
                results[name] = {who: replace(one, possible=possible) for who, one in results[name].items()}
        students = [one for one in _students(sheet, identity, known) if one[1] in chosen]
        self.fill(sheet, students, places, results)
        self._report(results, {student for _, student in students})
        return sheet

    def _scaled_to(self, sheet: Sheet, place: int, assignment: str, most: float) -> float | None:
        """What the points of an assignment are scaled to; None if they are written as they are."""
        possible = self.possible(sheet, place)
        if self.scale and possible is None:
            raise InputError(
                f"The points possible of {assignment!r} in the roster are not known. Pass the platform's own "
                f"table, or export without --{type(self).__name__}.scale"
            )
        if possible in (None, most):
            return None
        if not self.scale:
            self.log.warning(
                "%r has %g points possible, and %s has %g: points are written as they are, so that who "
                "earned all has %g of %g. Give it %g points there, or scale them: --%s.scale=True",
                sheet.headers[place], possible, assignment, most, most, possible, most, type(self).__name__,
            )  # fmt: skip
            return None
        return possible

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """The points possible that the table has for a column; None where it does not say."""
        raise NotImplementedError

    def writable(self, sheet: Sheet, identity: int) -> list[int]:
        """The columns that can hold points."""
        raise NotImplementedError

    def fill(self, sheet: Sheet, students: Students, places: Mapping[str, int], results: Results) -> None:
        """Write the points, of each assignment into its column."""
        for number, student in students:
            for name, place in places.items():
                if result := results[name].get(student):
                    sheet.put_number(number, place, result.filed)

    def _report(self, results: Results, met: set[str]) -> None:
        missing = sorted({student for each in results.values() for student in each} - met)
        if missing:
            self.log.warning("Graded, but not in the roster: %s", printed(", ".join(missing)))
        waiting = sum(result.unmarked for each in results.values() for result in each.values())
        if waiting:
            self.log.warning("%s submissions wait for a mark by hand, which counts as 0 until then.", waiting)

    def identity(self, sheet: Sheet, known: Mapping[str, str]) -> int | None:
        """The column that names the students."""
        return identity_column(sheet, known)

    def new_table(self, gradebook: Gradebook) -> Sheet:
        """A table with the students of the gradebook, where no roster was given."""
        raise NotImplementedError

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:
        """The column for the points of an assignment; added, if there is none."""
        raise NotImplementedError

    def _named_column(self, sheet: Sheet, identity: int) -> int:
        columns = self.writable(sheet, identity)
        for at in columns:
            if self.column in (sheet.headers[at], *_canvas_name(sheet.headers[at])):
                return at
        some = ", ".join(printed(sheet.headers[at]) for at in columns) or "none"
        raise InputError(
            f"`column` names a column of the roster for points, and {self.column!r} is none. "
            f"These can be written: {some}."
        )


class Canvas(_Export):
    """A gradebook that Canvas imports (Grades, Import)."""

    identities = ("ID", "SIS Login ID", "SIS User ID", "Student")
    others = ("Integration ID", "Root Account", "Section")
    what_is_needed = (
        f"It needs one of the columns {', '.join(identities)} with the names of the folders in submitted/."
    )

    def identity(self, sheet: Sheet, known: Mapping[str, str]) -> int | None:
        """The one of Canvas' own columns that names the most students."""
        columns = [sheet.headers.index(name) for name in self.identities if name in sheet.headers]
        return identity_column(sheet, known, columns)

    def new_table(self, gradebook: Gradebook) -> Sheet:
        """With the columns that Canvas asks for; folders are called by the Canvas ID or by the login."""
        rows = [["Points Possible", "", "", "", ""]]
        for student in sorted(gradebook.students, key=lambda one: one.id):
            name = ", ".join(part for part in (student.last_name, student.first_name) if part) or student.id
            rows.append([name, student.id if student.id.isdigit() else "", "", student.id, ""])
        return Sheet.new(["Student", "ID", "SIS User ID", "SIS Login ID", "Section"], rows)

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:
        """Canvas writes its own number behind the title of an assignment: `Starving the GPU (4711)`."""
        slugs = [_slug(_canvas_name(header)[0]) for header in sheet.headers]
        matches = [at for at, slug in enumerate(slugs) if slug == _slug(assignment)]
        if len(matches) > 1:
            columns = " and ".join(repr(sheet.headers[at]) for at in matches)
            raise InputError(
                f"The roster has {columns}, and both may be {assignment}. Name the one that is meant: "
                f"--Canvas.column={sheet.headers[matches[0]]!r}"
            )
        if matches:
            return matches[0]
        column = sheet.add_column(assignment)
        most = f"{gradebook.find_assignment(assignment).max_score:g}"
        if (number := self._points_row(sheet)) is None:
            sheet.insert_row(["Points Possible", *[""] * (column - 1), most])
        else:
            sheet.put(number, column, most)
        if self.roster:
            self.log.warning(
                "The roster has no column for %s: one is added, with %s points possible, and Canvas makes a "
                "new assignment of it. If Canvas has the assignment already, name its column: "
                "--Canvas.column='...'",
                assignment,
                most,
            )
        return column

    @staticmethod
    def _points_row(sheet: Sheet) -> int | None:
        rows = enumerate(sheet.rows)
        return next((number for number, row in rows if "points possible" in row[0].lower()), None)

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """What stands in the line of points possible."""
        number = self._points_row(sheet)
        return None if number is None else number_in(sheet.rows[number][place])

    def writable(self, sheet: Sheet, identity: int) -> list[int]:  # noqa: ARG002
        """Those of assignments: Canvas computes others itself, and says that they are read only."""
        texts = [" ".join(row[at] for row in sheet.rows[:2]) for at in range(len(sheet.headers))]
        return [
            at
            for at, header in enumerate(sheet.headers)
            if header not in (*self.identities, *self.others) and "(read only)" not in texts[at]
        ]


class Moodle(_Export):
    """A grading worksheet or a table of grades that Moodle imports."""

    comments = Unicode(
        "", help="The column for the feedback comments, where it is not found by its name."
    ).tag(config=True)
    what_is_needed = (
        "It needs a column with the names of the folders in submitted/: for a download of Moodle the grading "
        "worksheet of the same assignment, with its identifiers (Participant 123)."
    )

    def new_table(self, gradebook: Gradebook) -> Sheet:
        """For Grades, Import, CSV: a student's folder is called by the user name."""
        students = sorted(gradebook.students, key=lambda one: one.id)
        return Sheet.new(["username", "email"], [[one.id, one.email or ""] for one in students])

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:  # noqa: ARG002
        """A worksheet has one column for the grade, in Moodle's language; other tables one by assignment."""
        for at, header in enumerate(sheet.headers):
            if _slug(header) == _slug(assignment):
                return at
        worksheet = self.grade_column(sheet)
        return sheet.add_column(assignment) if worksheet is None else worksheet

    def grade_column(self, sheet: Sheet) -> int | None:
        """The column of a worksheet that holds the grade; None if it is no worksheet."""
        for at, header in enumerate(sheet.headers):
            if header.casefold() in GRADES:
                return at
        # In any language the most that can be earned stands behind it: the same number in each line.
        for at in range(2, len(sheet.headers)):
            numbers = {number_in(row[at]) for row in sheet.rows}
            if len(numbers) == 1 and numbers != {None}:
                return at - 1
        return None

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """In a worksheet the most that can be earned stands behind the grade: the same in each line."""
        if place != self.grade_column(sheet) or place + 1 == len(sheet.headers):
            return None
        numbers = {number_in(row[place + 1]) for row in sheet.rows}
        return numbers.pop() if len(numbers) == 1 else None

    def writable(self, sheet: Sheet, identity: int) -> list[int]:
        """Those in which no student has a text, such as a name."""
        texts = ["".join(row[at] for row in sheet.rows) for at in range(len(sheet.headers))]
        return [at for at, text in enumerate(texts) if at != identity and not re.search(r"[^\W\d_]", text)]

    def fill(self, sheet: Sheet, students: Students, places: Mapping[str, int], results: Results) -> None:
        """Write the points, and in a worksheet what they are for."""
        grade = self.grade_column(sheet)
        with_comments = grade is not None or bool(self.comments)
        if with_comments and len(results) > 1:
            raise InputError(
                f"A grading worksheet belongs to one assignment, and there are grades of {len(results)}: "
                f"{', '.join(results)}. Name the one that is meant: --assignment={next(iter(results))}"
            )
        super().fill(sheet, students, places, results)
        comments = self._comments_column(sheet) if with_comments else None
        if comments is not None:
            (of_students,) = results.values()
            rows = sheet.rows
            for number, student in students:
                before = rows[number][comments].strip()
                # What a person wrote there stays.
                if student in of_students and (not before or " points" in before.partition(";")[0]):
                    sheet.put(number, comments, escape(of_students[student].summary))

    def _comments_column(self, sheet: Sheet) -> int | None:
        for at, header in enumerate(sheet.headers):
            if header == self.comments or (not self.comments and COMMENTS.search(header)):
                return at
        if self.comments:
            raise InputError(f"The worksheet has no column {self.comments!r}. It has: {named(sheet)}.")
        return None


def _assignments_in(gradebook: Gradebook) -> list[str]:
    return [str(one.name) for one in gradebook.assignments]


def _students_in(gradebook: Gradebook) -> list[str]:
    return sorted(str(one.id) for one in gradebook.students)


def _students(sheet: Sheet, identity: int, known: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """The numbers of the lines that name a student, and whom."""
    for number, row in enumerate(sheet.rows):
        if student := who(row[identity], known):
            yield number, student


def _known(gradebook: Gradebook) -> dict[str, str]:
    """Students by what a table may call them: the name of the folder, the email, the platform's number."""
    known: dict[str, str] = {}
    for student in gradebook.students:
        for name in (student.lms_user_id, student.email):
            if name:
                known[name] = student.id
    return known | {student.id: student.id for student in gradebook.students}


def _results(gradebook: Gradebook, assignment: str) -> dict[str, Result]:
    return {one.student_id: _result(one) for one in gradebook.assignment_submissions(assignment)}


def _result(submission: SubmittedAssignment) -> Result:
    notebooks = sorted(submission.notebooks, key=lambda one: one.name)
    return Result(
        points=submission.score,
        most=submission.max_score,
        late=submission.late_submission_penalty,
        notebooks={one.name: (one.score, one.max_score) for one in notebooks},
        unmarked=submission.needs_manual_grade,
    )


def _canvas_name(header: str) -> tuple[str, str]:
    """The title of a column of Canvas, and the number behind it."""
    match = re.fullmatch(r"(.*?)\s*(?:\((\d+)\))?\s*", header.strip(), re.DOTALL)
    assert match is not None  # the pattern matches every text
    return match[1], match[2] or header


def _slug(title: str) -> str:
    """`Starving the GPU` and `starving-the-gpu` alike."""
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-")
