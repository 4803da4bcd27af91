"""An assignment in Canvas by its API: points, a comment and the page in one request, and none of it twice.

What Canvas has is read before anything is written: a comment carries a part of its page's digest.
"""

import os
import re
import time
from contextlib import suppress
from typing import Any

from canvasapi.course import Course
from canvasapi.exceptions import CanvasException, InvalidAccessToken
from canvasapi.requester import Requester
from canvasapi.upload import Uploader
from requests import PreparedRequest, RequestException, Response
from requests.adapters import HTTPAdapter

from ..batch.one_student import CannotWriteError
from ..errors import InputError
from ..files import scratch_folder
from .returning import Delivery, Result

TOKEN, KEYRING = "CANVAS_API_TOKEN", "starvelab-grader"
ADDRESS = re.compile(r"(https://[^/\s]+|http://127\.0\.0\.1:\d+)/courses/(\d+)/assignments/(\d+)(?:[/?#].*)?")
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

    def deliver(self, one: Delivery, result: Result) -> None:
        """Send what the student does not have yet; an error says why that cannot be."""
        submission, mark = self._submissions.get(one.recipient), f"[{one.digest[:12]}]"
        if submission is None:
            raise InputError("Canvas has no student of this number in the assignment")
        if any(mark in str(comment["comment"]) for comment in submission.submission_comments):
            return
        text = f"{result.summary} The attached page says more. {mark}"
        try:
            comment = {"text_comment": text, "file_ids": [self._upload(one)], "group_comment": self._by_group}
            submission.edit(submission={"posted_grade": result.filed}, comment=comment)
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
