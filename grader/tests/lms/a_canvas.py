"""A server on this machine that speaks the part of Canvas's interface by which grades and comments are given.

By https://canvas.instructure.com/doc/api: submissions in pages that `Link` names, one request for a grade, a
comment and files that were uploaded before in two steps, 429 where there are too many requests.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "7~secret"
PER_PAGE = 2


class ACanvas(ThreadingHTTPServer):
    """What Canvas keeps of one assignment: points and comments by student, and files by number."""

    def __init__(self, students=("101", "102", "103"), **assignment) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.assignment = {
            "id": 34, "course_id": 12, "grading_type": "points", "points_possible": 20,
            "group_category_id": None, "grade_group_students_individually": False,
        } | assignment  # fmt: skip
        self.grades: dict[str, str] = dict.fromkeys(students, "")
        self.comments: dict[str, list[dict]] = {student: [] for student in students}
        self.groups: list[set[str]] = []
        self.excused: set[str] = set()
        self.files: dict[int, tuple[str, bytes]] = {}
        self.requests: list[str] = []
        self.limits: list[tuple[int, dict[str, str], bytes]] = []  # answers in place of the next ones
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.page = f"{self.address}/courses/12/assignments/34?module_item_id=5"

    def received(self) -> dict[str, tuple[str, list[str], list[bytes]]]:
        """By student the points, and of all comments the texts and the files."""
        return {
            student: (
                self.grades[student],
                [one["comment"] for one in comments],
                [self.files[number][1] for one in comments for number in one["files"]],
            )
            for student, comments in self.comments.items()
        }


@contextmanager
def canvas(**assignment) -> Iterator[ACanvas]:
    with ACanvas(**assignment) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: ACanvas

    def log_message(self, *arguments: object) -> None:
        """Write nothing."""

    def _answer(self, content: object, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _handle(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(f"{self.command} {url.path}")
        if self.server.limits:
            status, headers, content = self.server.limits.pop(0)
            return self._answer(content, status, **headers)
        if url.path == "/upload":  # which takes no token
            number = int(parse_qs(url.query)["number"][0])
            content = re.search(rb'name="file".*?\r\n\r\n(.*?)\r\n--', body, re.DOTALL).group(1)
            self.server.files[number] = (self.server.files[number][0], content)
            return self._answer({"id": number, "url": "x"}, 201)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer({"errors": []}, 401, WWW_Authenticate="Bearer")
        place = url.path.removeprefix("/api/v1/courses/12/assignments/34")
        query, form = parse_qs(url.query), parse_qs(body.decode("utf-8", "replace"))
        if self.command == "GET" and place == "":
            return self._answer(self.server.assignment)
        if self.command == "GET" and place == "/submissions":
            return self._list(int(query.get("page", ["1"])[0]), "submission_comments" in query["include[]"])
        student = place.split("/")[2] if place.startswith("/submissions/") else ""
        if student not in self.server.grades:
            return self._answer({}, 404)
        if self.command == "POST" and place.endswith("/comments/files"):
            number = 900 + len(self.server.files)
            self.server.files[number] = (form["name"][0], b"")
            return self._answer(
                {"upload_url": f"{self.server.address}/upload?number={number}", "upload_params": {"key": "x"}}
            )
        return self._put(student, form)

    do_GET = do_POST = do_PUT = _handle  # noqa: N815 - which http.server calls

    def _list(self, page: int, commented: bool) -> None:
        every = sorted(self.server.grades)
        some = every[PER_PAGE * (page - 1) : PER_PAGE * page]
        listed = [
            {
                "user_id": int(one),
                "assignment_id": 34,
                "id": int(one) + 5000,
                "excused": one in self.server.excused,
                "entered_score": float(self.server.grades[one]) if self.server.grades[one] else None,
            }
            | ({"submission_comments": self.server.comments[one]} if commented else {})
            for one in some
        ]
        place = self.path.partition("?")[0]
        more = f"{self.server.address}{place}?include[]=submission_comments&page={page + 1}"
        link = {"Link": f'<{more}>; rel="next"'} if PER_PAGE * page < len(every) else {}
        self._answer(listed, **link)

    def _put(self, student: str, form: dict[str, list[str]]) -> None:
        """One request has all of it, or none."""
        together = next((group for group in self.server.groups if student in group), {student})
        by_group = self.server.assignment["group_category_id"] is not None
        individually = self.server.assignment["grade_group_students_individually"]
        for one in together if by_group and not individually else {student}:
            self.server.grades[one] = form["submission[posted_grade]"][0]
        if "comment[text_comment]" in form:
            comment = {
                "author_id": 1,
                "comment": form["comment[text_comment]"][0],
                "files": [int(number) for number in form.get("comment[file_ids][]", [])],
            }
            for one in together if by_group and form["comment[group_comment]"] == ["true"] else {student}:
                self.server.comments[one].append(comment)
        self._answer({"user_id": int(student), "submission_comments": self.server.comments[student]})
