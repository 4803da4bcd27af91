"""An assignment in Canvas by its API: points, a comment and the page in one request, and none of it twice.

What Canvas has is read before anything is written, and compared: the points that count, and our last comment,
which carries a part of the digest of its page and points.
"""

import os
import re
import time
from contextlib import suppress
from typing import Any

from canvasapi.course import Course
from canvasapi.exceptions import CanvasException, InvalidAccessToken
from canvasapi.requester import Requester
from canvasapi.submission import Submission
from canvasapi.upload import Uploader
from requests import PreparedRequest, RequestException, Response
from requests.adapters import HTTPAdapter

from ..batch.one_student import CannotWriteError
from ..errors import InputError
from ..files import scratch_folder
from .returning import Delivery, Result

TOKEN, KEYRING = "CANVAS_API_TOKEN", "starvelab-grader"
ADDRESS = re.compile(r"(https://[^/\s]+|http://127\.0\.0\.1:\d+)/courses/(\d+)/assignments/(\d+)(?:[/?#].*)?")
MARK = re.compile(r"\[([0-9a-f]{12})\]\Z")  # at the end of a comment
PAUSES = (1, 2, 4, 8, 16, 32, 60, 60)  # seconds, where Canvas does not say how long to wait


class _Adapter(HTTPAdapter):
    """Obeys the limit on requests: Canvas answers with 429, and an older one with 403."""

    def send(self, request: PreparedRequest, *positional: Any, **options: Any) -> Response:
        for pause in PAUSES:
            response = super().send(request, *positional, **options | {"timeout": 60.0})
            limited = response.status_code == 403 and b"Rate Limit Exceeded" in response.content
            if response.status_code != 429 and not limited:
                break
            wait = response.headers.get("Retry-After", "")
            time.sleep(int(wait) if wait.isdecimal() else pause)
        return response


class CanvasAssignment:
    """An assignment, and what each student has got on it so far."""

    def __init__(self, address: str) -> None:
        match = ADDRESS.fullmatch(address)
        if match is None:
            such = "https://canvas.example.edu/courses/12/assignments/34"
            raise InputError(f"`canvas-api` takes the assignment's address, as {such}, and not {address!r}.")
        self.host, course, number = match.groups()
        self._requester = Requester(self.host, _token(self.host))
        self._requester._session.adapters = {"http": _Adapter()}  # and https
        try:
            self.assignment = Course(self._requester, {"id": int(course)}).get_assignment(int(number))
            listed = self.assignment.get_submissions(include=["submission_comments"])
            self._submissions = {str(one.user_id): one for one in listed}
        except (CanvasException, RequestException) as error:
            raise self._error(error) from None
        individually = self.assignment.grade_group_students_individually
        self._by_group = bool(self.assignment.group_category_id) and not individually
        if (grading := self.assignment.grading_type) in ("pass_fail", "not_graded"):
            raise InputError(f"Canvas takes no points in an assignment with {grading!r}: return by file.")

    def deliver(self, one: Delivery, result: Result, *, again: bool = False) -> None:
        """Send what differs from what the student has now; an error says why that cannot be.

        Points that somebody has changed in Canvas are ours again only if asked for again.
        """
        submission = self._submissions.get(one.recipient)
        if submission is None:
            raise InputError("Canvas has no student of this number in the assignment")
        if getattr(submission, "excused", False):
            raise InputError("Canvas excuses this student, and points would undo that")
        changes: dict[str, Any] = {}
        try:
            if _last_mark(submission) != one.mark:
                text = f"{result.summary} The attached page says more. [{one.mark}]"
                files = [self._upload(one)]
                changes = {"text_comment": text, "file_ids": files, "group_comment": self._by_group}
                changes = {"comment": changes}
            now = getattr(submission, "entered_score", None)
            if not changes and now != result.filed and not again:
                raise InputError(
                    f"Somebody has changed {result.points} points to {now} in Canvas. Give them here too, or "
                    "write ours: --again"
                )
            if changes or now != result.filed:
                submission.edit(submission={"posted_grade": result.filed}, **changes)
        except (RequestException, InvalidAccessToken) as error:
            raise self._error(error) from None

    def _upload(self, one: Delivery) -> int:
        """Upload a page, which nobody sees before a comment names it, and return its number."""
        place = f"courses/{self.assignment.course_id}/assignments/{self.assignment.id}/submissions"
        with scratch_folder() as folder:
            path = folder / one.called
            path.write_bytes(one.page.read_bytes())
            _, answer = Uploader(self._requester, f"{place}/{one.recipient}/comments/files", path).start()
        return int(answer["id"])

    def _error(self, error: Exception) -> CannotWriteError:
        """Say what concerns everybody, without the addresses of an error, which may hold a key."""
        return CannotWriteError(
            f"{self.host} does not do what was asked: {type(error).__name__}. Check the address, your rights "
            f"and the token in {TOKEN}. What was sent is written down: start the same command again."
        )


def _last_mark(submission: Submission) -> str:
    """Return the mark of our last comment. A student may write one too, and it does not count."""
    comments = (one for one in submission.submission_comments if one.get("author_id") != submission.user_id)
    marks = [mark for one in comments for mark in MARK.findall(str(one["comment"]))]
    return marks[-1] if marks else ""


def _token(host: str) -> str:
    """Read the token, which stands in no file, no log and no record."""
    token = os.environ.get(TOKEN)
    with suppress(ImportError):
        import keyring  # which need not be installed

        token = token or keyring.get_password(KEYRING, host)
    if not token:
        raise InputError(
            "Canvas needs a token: make one there under Account, Settings, New Access Token. Put it into the "
            f"environment as {TOKEN}, or into your keyring: keyring set {KEYRING} {host}"
        )
    return token
