"""What a student submitted and what the instructor wrote: files, notebooks, cells and their names."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SubmissionWarning:
    """Something about a submission that its student, or the person who grades it, should know."""

    text: str  # a whole sentence for the student
    person: bool = False  # whether an instructor should look at the submission


class Warnings(list[SubmissionWarning]):
    """Warnings about a submission, one after the other."""

    def add(self, text: str, *, person: bool = False) -> None:
        """Add a warning."""
        self.append(SubmissionWarning(text, person))
