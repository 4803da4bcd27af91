"""Grades as Canvas and Moodle take them: exporters for `nbgrader export`.

Both fill in a table that the learning platform has given out. Every other cell of it keeps its characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import floor
from pathlib import Path
from typing import Any, ClassVar

from nbgrader.api import Gradebook, Student, SubmittedAssignment
from nbgrader.plugins import ExportPlugin
from traitlets import Bool, TraitError, Unicode

from ..errors import InputError
from ..text import printed
from .rosters import Sheet, identity_column, named, number_in, open_sheet, who

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
    """A student's submission; `possible` is what the platform has, where points are scaled to that."""

    submission: SubmittedAssignment
    possible: float | None = None

    @property
    def counted(self) -> float:
        """The points that count: less what being late costs."""
        points: float = self.submission.score - self.submission.late_submission_penalty
        return max(0.0, points)

    @property
    def filed(self) -> float:
        """The points that are written. Platforms show two decimals, and so many a scaled number has."""
        most = float(self.submission.max_score)
        if self.possible is None or not most:
            return self.counted
        return floor(100 * self.counted * self.possible / most + 0.5 + 1e-9) / 100

    @property
    def summary(self) -> str:
        """In words, for the student."""
        work = self.submission
        parts = [f"{self.counted:g} of {work.max_score:g} points"]
        if late := work.late_submission_penalty:
            parts[0] += f" ({work.score:g}, less {late:g} for being late)"
        notebooks = sorted(work.notebooks, key=lambda one: one.name)
        parts += [f"{one.name}: {one.score:g} of {one.max_score:g}" for one in notebooks]
        if work.needs_manual_grade:
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
        """The table; an InputError says what is wrong."""
        raise NotImplementedError

    def students(self, gradebook: Gradebook) -> list[str]:
        """The students that the options name; all unless they name some."""
        return self._chosen("student", sorted(str(one.id) for one in gradebook.students))

    def assignments(self, gradebook: Gradebook) -> list[str]:
        """The assignments that the options name; all unless they name some."""
        return self._chosen("assignment", [str(one.name) for one in gradebook.assignments])

    def _chosen(self, what: str, known: list[str]) -> list[str]:
        chosen = [str(one) for one in getattr(self, what)]
        for one in chosen:
            if one not in known:
                there = ", ".join(known[:MAX_LISTED]) + (", …" if len(known) > MAX_LISTED else "")
                raise InputError(f"The gradebook has no {what} {one!r}; it has: {there or 'none'}.")
        return chosen or known


class Grades(_Table):
    """nbgrader's own table, in which a student's name is one cell and no formula."""

    columns = (
        "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
        "raw_score", "late_submission_penalty", "score", "max_score",
    )  # fmt: skip

    def table(self, gradebook: Gradebook) -> Sheet:
        """A line for each assignment and student."""
        students = [gradebook.find_student(name) for name in self.students(gradebook)]
        rows = []
        for name in self.assignments(gradebook):
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
    identities: ClassVar[Sequence[str]] = ()  # columns that may name the students; any where there are none
    new_columns: ClassVar[Sequence[str]] = ()  # of a table of our own, where no roster was given

    def new_row(self, student: Student) -> Sequence[str]:
        """The line of a student in a table of our own."""
        raise NotImplementedError

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:  # noqa: ARG002
        """The column for the points of an assignment, which is called like it; added, if there is none."""
        slugs = [_slug(header) for header in sheet.headers]
        return slugs.index(_slug(assignment)) if _slug(assignment) in slugs else sheet.add_column(assignment)

    def possible(self, sheet: Sheet, place: int) -> float | None:  # noqa: ARG002
        """The points possible that the table has for a column; None where it does not say."""
        return None

    def writable(self, sheet: Sheet, identity: int) -> list[int]:
        """The columns that can hold points: those in which no student has a text, such as a name."""
        texts = ["".join(row[at] for row in sheet.rows) for at in range(len(sheet.headers))]
        return [at for at, text in enumerate(texts) if at != identity and not re.search(r"[^\W\d_]", text)]

    def table(self, gradebook: Gradebook) -> Sheet:
        """The roster with the points in it, or a new table."""
        chosen = set(self.students(gradebook))
        results = {
            name: {
                one.student_id: Result(one)
                for one in gradebook.assignment_submissions(name)
                if one.student_id in chosen
            }
            for name in self.assignments(gradebook)
        }
        if not self.assignment:
            # What was released and not yet submitted needs no column.
            results = {name: each for name, each in results.items() if each} or results
        if self.column and len(results) > 1:
            raise InputError(
                f"`column` names one column, and there are grades of {len(results)} assignments: "
                f"{', '.join(results)}. Name one of them: --assignment={next(iter(results))}"
            )
        by_id = sorted(gradebook.students, key=lambda one: one.id)
        sheet = (
            open_sheet(self.roster) if self.roster else Sheet.new(self.new_columns, map(self.new_row, by_id))
        )
        # A table may call students by the name of the folder, the email, or the platform's number.
        known = {name: one.id for one in by_id for name in (one.lms_user_id, one.email) if name}
        known |= {one.id: one.id for one in by_id}
        columns = [sheet.headers.index(name) for name in self.identities if name in sheet.headers]
        identity = identity_column(sheet, known, columns if self.identities else None)
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
        named_in = ((number, who(row[identity], known)) for number, row in enumerate(sheet.rows))
        students = [(number, student) for number, student in named_in if student and student in chosen]
        self.fill(sheet, students, places, results)
        missing = sorted({one for each in results.values() for one in each} - {one for _, one in students})
        if missing:
            self.log.warning("Graded, but not in the roster: %s", printed(", ".join(missing)))
        if waiting := sum(
            one.submission.needs_manual_grade for each in results.values() for one in each.values()
        ):
            self.log.warning("%s submissions wait for a mark by hand, which counts as 0 until then.", waiting)
        return sheet

    def fill(self, sheet: Sheet, students: Students, places: Mapping[str, int], results: Results) -> None:
        """Write the points, of each assignment into its column."""
        for number, student in students:
            for name, place in places.items():
                if result := results[name].get(student):
                    sheet.put_number(number, place, result.filed)

    def _scaled_to(self, sheet: Sheet, place: int, assignment: str, most: float) -> float | None:
        """Return the points possible to scale to; None if points are written as they are."""
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


class Canvas(PlatformTable):
    """A gradebook that Canvas imports (Grades, Import)."""

    identities = ("ID", "SIS Login ID", "SIS User ID", "Student")
    others = ("Integration ID", "Root Account", "Section")
    what_is_needed = (
        f"It needs one of the columns {', '.join(identities)} with the names of the folders in submitted/."
    )
    new_columns = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")

    def new_row(self, student: Student) -> Sequence[str]:
        """Folders are called by the Canvas ID or by the login."""
        name = ", ".join(part for part in (student.last_name, student.first_name) if part) or student.id
        return [name, student.id if student.id.isdigit() else "", "", student.id, ""]

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
        """Read the line of points possible."""
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


class Moodle(PlatformTable):
    """A grading worksheet or a table of grades that Moodle imports."""

    comments = Unicode(
        "", help="The column for the feedback comments, where it is not found by its name."
    ).tag(config=True)
    what_is_needed = (
        "It needs a column with the names of the folders in submitted/: for a download of Moodle the grading "
        "worksheet of the same assignment, with its identifiers (Participant 123)."
    )
    new_columns = ("username", "email")

    def new_row(self, student: Student) -> Sequence[str]:
        """For Grades, Import, CSV: a student's folder is called by the user name."""
        return [student.id, student.email or ""]

    def place(self, gradebook: Gradebook, sheet: Sheet, assignment: str) -> int:
        """A worksheet has one column for the grade, in Moodle's language; other tables one by assignment."""
        by_name = _slug(assignment) in map(_slug, sheet.headers)
        worksheet = None if by_name else self.grade_column(sheet)
        return super().place(gradebook, sheet, assignment) if worksheet is None else worksheet

    def grade_column(self, sheet: Sheet) -> int | None:
        """The column of a worksheet that holds the grade; None if it is no worksheet."""
        for at, header in enumerate(sheet.headers):
            if header.casefold() in GRADES:
                return at
        # In any language the most that can be earned stands behind it: the same number in each line.
        columns = range(2, len(sheet.headers))
        return next((at - 1 for at in columns if _same_number(sheet, at) is not None), None)

    def possible(self, sheet: Sheet, place: int) -> float | None:
        """In a worksheet the most that can be earned stands behind the grade."""
        in_worksheet = place == self.grade_column(sheet) and place + 1 < len(sheet.headers)
        return _same_number(sheet, place + 1) if in_worksheet else None

    def fill(self, sheet: Sheet, students: Students, places: Mapping[str, int], results: Results) -> None:
        """Write the points, and in a worksheet what they are for."""
        with_comments = self.grade_column(sheet) is not None or bool(self.comments)
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


def _same_number(sheet: Sheet, column: int) -> float | None:
    """The number that stands in each line of a column; None if there is none."""
    numbers = {number_in(row[column]) for row in sheet.rows}
    return numbers.pop() if len(numbers) == 1 else None


def _canvas_name(header: str) -> tuple[str, str]:
    """The title of a column of Canvas, and the number behind it."""
    match = re.fullmatch(r"(.*?)\s*(?:\((\d+)\))?\s*", header.strip(), re.DOTALL)
    assert match is not None  # the pattern matches every text
    return match[1], match[2] or header


def _slug(title: str) -> str:
    """`Starving the GPU` and `starving-the-gpu` alike."""
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-")
