"""What somebody should know about a submission."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SubmissionWarning:
    """Something about a submission that its student, or the person who grades it, should know.

    Attributes
    ----------
    text : str
        A whole sentence for the student.
    person : bool
        Whether an instructor should look at the submission.
    """

    text: str
    person: bool = False
