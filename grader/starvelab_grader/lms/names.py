"""Whom a cell of a platform's table means: a student's folder, email, or number on the platform.

A name of a folder may be a student's own choice, such as the email of another one. A name that means two
students is an error.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from nbgrader.api import Student

from ..errors import InputError
from ..text import printed
from .rosters import Sheet, key

REMEDY = (
    "Correct the one that is wrong in the gradebook (nbgrader db student add NAME --email=... "
    "--lms-user-id=...), or in the roster."
)


@dataclass(frozen=True)
class Names:
    """By name, the students whom it means, each with the kind of the name."""

    meanings: Mapping[str, Mapping[str, str]]
    are_shared: bool = False  # whether several rows may mean one student, as those of a group do

    @classmethod
    def of(cls, students: Iterable[Student]) -> Self:
        """Return all names of the students of a gradebook."""
        meanings: dict[str, dict[str, str]] = {}
        for student in students:
            kinds = {"folder": student.id, "email": student.email, "number": student.lms_user_id}
            for kind, name in kinds.items():
                if name:
                    meanings.setdefault(str(name), {}).setdefault(str(student.id), kind)
        return cls(meanings)

    @classmethod
    def of_members(cls, members: Mapping[str, str]) -> Self:
        """Return the names of those who got what a student of theirs submitted."""
        return cls({name: {student: "member"} for name, student in members.items()}, are_shared=True)

    def by_row(self, sheet: Sheet, column: int) -> dict[int, str]:
        """Return the student of each row that names one; an InputError where it may be two."""
        students, names = dict[int, str](), dict[str, str]()
        for number, row in enumerate(sheet.rows):
            name = row[column].strip()
            meanings = self.meanings.get(name) or self.meanings.get(key(name))
            if not meanings:
                continue
            if len(meanings) > 1:
                people = " and ".join(f"{student} (by the {kind})" for student, kind in meanings.items())
                raise InputError(
                    f"A name in the roster has to mean one student, and {name!r} means {printed(people)}. "
                    f"{REMEDY}"
                )
            (student,) = meanings
            if not self.are_shared and (other := names.setdefault(student, name)) != name:
                raise InputError(
                    f"A student has one row in the roster, and {other!r} and {name!r} both mean "
                    f"{printed(student)}. {REMEDY}"
                )
            students[number] = student
        return students
