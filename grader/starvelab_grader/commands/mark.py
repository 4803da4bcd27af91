"""`starvelab-grader mark`: the page on which a person marks, served to the browser of this machine only.

Every other user of the machine reaches the port, and so does every page that the browser has open. So each
request for data, and each change, needs a token in a header that no other page can send. The token stands
after the # of the page's address, a part that a browser sends to no server.
"""

import asyncio
import hashlib
import hmac
import json
import os
import re
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy.exc import SQLAlchemyError
from tornado.httpserver import HTTPServer
from tornado.web import Application, HTTPError, RequestHandler
from traitlets import Bool, Integer, Unicode

from ..batch.classroom import Classroom, chosen
from ..batch.one_student import CannotWriteError
from ..errors import InputError, NotFoundError
from ..files import scratch_folder
from ..marking import Answer, ChangedError, Essay, Marking
from ..report.rendering import page_style
from .command import ONLY, Command

TEMPLATES = Path(__file__).parent / "templates"
LOOPBACK, TOKEN_HEADER = "127.0.0.1", "X-Starvelab-Token"
# By address the files of the page, and their types.
PARTS = {"/": ("index.html", "html"), "/mark.js": ("mark.js", "javascript"), "/mark.css": ("mark.css", "css")}
MAX_BODY = 200_000  # bytes; a comment is shorter
# Nothing is loaded from elsewhere, and only the page's own script runs, even if cleaning an answer failed.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
STATUS: dict[type[Exception], HTTPStatus] = {
    InputError: HTTPStatus.BAD_REQUEST, NotFoundError: HTTPStatus.NOT_FOUND,
    ChangedError: HTTPStatus.CONFLICT, CannotWriteError: HTTPStatus.SERVICE_UNAVAILABLE,
    SQLAlchemyError: HTTPStatus.SERVICE_UNAVAILABLE,
}  # fmt: skip


class MarkApp(Command):
    """Serves the page until somebody ends it."""

    examples = """
        starvelab-grader mark starving-the-gpu                        opens the page; Ctrl+C ends it
        starvelab-grader mark starving-the-gpu --share=1/3             the first of three who mark
        starvelab-grader mark starving-the-gpu --port=8765 --no-browser
            the same on a server, which you reach by: ssh -L 8765:127.0.0.1:8765 SERVER
        """
    port = Integer(0, min=0, max=65535, help="The port of the page on this machine; 0: one that is free.")
    only = Unicode(help=ONLY)
    share = Unicode("1/1", help="The share of the class that you mark, such as 2/3: nobody is in two.")
    names = Bool(help="Begin with the names of the students.")
    browser = Bool(True, help="Open the page in a browser; without, its address is printed.")
    kept = "Your marks are in the gradebook."

    def run(self, assignment: str) -> None:
        """Serve the page until somebody ends it, and print what is still to be marked."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        marking = Marking(classroom, self._share_of_the_class())
        try:
            asyncio.run(self._serve(marking))
        except KeyboardInterrupt:  # which is how it ends
            print()
        waiting = [(one.title, sum(each.waits for each in marking.answers(one))) for one in marking.essays]
        lines = [f"{title}: {number} still to be marked." for title, number in waiting if number]
        print("\n".join(lines) or f"All essays of {assignment} are marked.")
        print(f"Marks are in the gradebook. Students read them after: starvelab-grader feedback {assignment}")

    def _share_of_the_class(self) -> Callable[[str], bool]:
        """Return which students this person marks. The share of a student never changes: none is in two."""
        number = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", self.share)
        if number is None or int(number[1]) > int(number[2]):
            raise InputError(f"A share is such as 1/3, the first of three; {self.share!r} is none.")

        def is_mine(student: str) -> bool:
            share = int(hashlib.sha256(student.encode()).hexdigest(), 16) % int(number[2])
            return share == int(number[1]) - 1 and bool(chosen([student], self.only))

        return is_mine

    async def _serve(self, marking: Marking) -> None:
        server = MarkingServer(marking, self.port, show_names=self.names)
        print(
            f"Mark {marking.assignment} on this page, which only you can open:\n\n    {server.address}\n\n"
            "Each mark is written into the gradebook at once. Ctrl+C ends the page.",
            flush=True,
        )
        with scratch_folder() as folder:
            try:
                # Without a screen Python would open a browser for a terminal.
                names = os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}
                if self.browser and (names or sys.platform in ("win32", "darwin")):
                    webbrowser.open(make_redirect(folder, server.address).as_uri())
                await asyncio.Event().wait()
            finally:
                await server.stop()


class MarkingServer:
    """A server of one marking, on loopback, in the event loop in which it was made. Raises InputError."""

    def __init__(self, marking: Marking, port: int = 0, *, show_names: bool = False) -> None:
        self.token = secrets.token_urlsafe(32)
        settings: dict[str, object] = {"marking": marking, "token": self.token, "show_names": show_names}
        try:
            listener = socket.create_server((LOOPBACK, port))
        except OSError as error:
            raise InputError(
                f"The page needs a port that is free, and {port} is not: {error}. "
                "Choose another one, or leave --port out."
            ) from error
        listener.setblocking(False)
        private = (r"/api/(essays|answers|answer|mark)", _Private, settings)
        application = Application([private, (r".*", _Part)], log_function=lambda _: None)
        self._server = HTTPServer(application, max_body_size=MAX_BODY, max_buffer_size=MAX_BODY)
        self._server.add_socket(listener)
        self.port: int = listener.getsockname()[1]

    @property
    def address(self) -> str:
        """The address to open; whoever knows it can mark."""
        return f"http://{LOOPBACK}:{self.port}/#{self.token}"

    async def stop(self) -> None:
        """Take no more requests, and end the connections."""
        self._server.stop()
        await self._server.close_all_connections()


class _Handler(RequestHandler):
    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code: int, **details: Any) -> None:
        """Send an error as the page shows it."""
        error = details.get("exc_info", (None, None))[1]
        message = str(error) if _status_of(error) else HTTPStatus(status_code).phrase
        if isinstance(error, SQLAlchemyError):
            message = f"The gradebook cannot be read: {str(getattr(error, 'orig', error)).splitlines()[0]}"
        self.set_status(_status_of(error) or status_code)
        self.finish({"message": message})

    def log_exception(self, *info: Any) -> None:
        """Print an error, unless the page shows it in words, or somebody else has sent a wrong request."""
        if _status_of(info[1]) is None and not isinstance(info[1], HTTPError):
            super().log_exception(*info)


class _Part(_Handler):
    """The page without anything of the course in it, its script and its styles; at any other address none."""

    def get(self) -> None:
        """Send a part."""
        if self.request.path not in PARTS:
            raise HTTPError(HTTPStatus.NOT_FOUND)
        file, kind = PARTS[self.request.path]
        self.set_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.write(page_style() if kind == "css" else "")
        self.finish((TEMPLATES / file).read_bytes())


class _Private(_Handler):
    """What only those see and change who have the token."""

    # What can be sent of a mark, and whether it is needed.
    FIELDS: ClassVar[dict[str, bool]] = {"student": True, "version": True, "points": False, "comment": False}

    def initialize(self, marking: Marking, token: str, show_names: bool) -> None:
        self.marking, self._token, self.show_names = marking, token, show_names

    def prepare(self) -> None:
        given = self.request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
            self.set_status(HTTPStatus.FORBIDDEN)
            message = "This page needs the address that `starvelab-grader mark` printed last. Open that."
            self.finish({"message": message})
        elif (self.request.method == "PUT") != self.request.path.endswith("/mark"):
            raise HTTPError(HTTPStatus.METHOD_NOT_ALLOWED)

    def _essay(self, number: object) -> Essay:
        """Return the essay of that number, which stands in the list of `/api/essays`."""
        essays = self.marking.essays
        if not str(number).isdecimal() or int(str(number)) >= len(essays):
            raise NotFoundError(f"There are {len(essays)} essays, counted from 0, and no {number!r}.")
        return essays[int(str(number))]

    def get(self, what: str) -> None:
        """Send the essays, the answers to one of them, or what one answer says."""
        if what == "essays":
            about = {"assignment": self.marking.assignment, "show_names": self.show_names}
            self.finish(about | {"essays": list(map(self._about, self.marking.essays))})
            return
        essay = self._essay(self.get_query_argument("essay"))
        if what == "answers":
            self.finish({"answers": list(map(_as_json, self.marking.answers(essay)))})
        else:
            html, version = self.marking.read(essay, self.get_query_argument("student"))
            self.finish({"html": html, "version": version})

    def _about(self, essay: Essay) -> dict[str, object]:
        waits = [one.waits for one in self.marking.answers(essay) if not one.is_blank]
        return asdict(essay) | {"marked": waits.count(False), "answers": len(waits)}

    def put(self, _: str) -> None:
        """Write a mark."""
        try:
            body = json.loads(self.request.body)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise InputError("A mark is sent as a JSON object.")
        for name, needed in self.FIELDS.items():
            value = body.get(name)
            if not isinstance(value, str) and (needed or value is not None):
                raise InputError(f"The field {name!r} of a mark is a text, and {value!r:.50} is none.")
        essay = self._essay(body.pop("essay", None))
        mark = {name: body.get(name) for name in ("points", "comment")}
        version = self.marking.save(essay, body["student"], body["version"], **mark)
        answer = next(one for one in self.marking.answers(essay) if one.student == body["student"])
        self.finish({"version": version, "answer": _as_json(answer)})


def _as_json(answer: Answer) -> dict[str, object]:
    return asdict(answer) | {"blank": answer.is_blank}


def _status_of(error: BaseException | None) -> HTTPStatus | None:
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), None)


def make_redirect(folder: Path, address: str) -> Path:
    """Write a private file that leads a browser to the address: everybody can read a browser's arguments."""
    path = folder / "mark.html"
    path.touch(mode=0o600)
    page = f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Go on to the page</a>'
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8"><title>Marking</title>{page}', encoding="utf-8")
    return path
