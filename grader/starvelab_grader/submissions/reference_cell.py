"""A cell that the instructor wrote, as the gradebook keeps it."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = 3  # the version of nbgrader's metadata


@dataclass(frozen=True)
class ReferenceCell:
    """A cell of the instructor's notebook.

    Attributes
    ----------
    name : str
        Its grade_id.
    cell_type, source, checksum : str
    released : str
        The source that students were given: without hidden checks.
    locked, grade, solution, task : bool
        nbgrader's flags.
    points : float
    """

    name: str
    cell_type: str
    source: str
    released: str
    checksum: str
    locked: bool
    grade: bool
    solution: bool
    task: bool = False
    points: float = 0.0

    def metadata(self) -> dict[str, str | bool | float]:
        """What nbgrader wants to find in the cell."""
        metadata: dict[str, str | bool | float] = {
            "grade": self.grade,
            "grade_id": self.name,
            "locked": self.locked,
            "solution": self.solution,
            "task": self.task,
            "cell_type": self.cell_type,
            "checksum": self.checksum,
            "schema_version": SCHEMA,
        }
        return metadata | ({"points": self.points} if self.grade or self.task else {})

    @property
    def is_check_side(self) -> bool:
        """Whether it is the instructor's to run: a test, or locked code such as a set-up."""
        return self.cell_type == "code" and not self.solution and (self.grade or self.locked)

    @property
    def is_test(self) -> bool:
        """Whether it is scored by what it does."""
        return self.cell_type == "code" and self.grade and not self.solution

    @property
    def answered(self) -> bool:
        """Whether a student is to write in it."""
        return self.solution and not self.locked
