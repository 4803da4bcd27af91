"""Regrade requests: texts in a folder of the course, each of which names an exercise of a student."""

import email
import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from email import policy
from pathlib import Path

from ..errors import InputError
from ..files import write_whole
from ..text import storable

# Mail breaks lines, and quotes them.
_REQUEST = re.compile(r"Regrade[\s>]+request[\s>]+\[([^\[\]]+)\]")
MAX_REASON, MAX_FILE = 4000, 1_000_000  # characters that are shown, bytes that are read
CONTACT = ".contact"  # the file with the address to which students mail them
ANSWERED = ".answered"  # the folder of what a person has answered, by the request


def subject(assignment: str, notebook: str, title: str, student: str) -> str:
    """Return the line by which a request is known."""
    exercise = re.sub(r"[\[\]\s]+", " ", title)
    return f"Regrade request [{assignment}/{notebook}/{exercise}/{student}]"


@dataclass(frozen=True)
class Request:
    """What one student asks about one exercise."""

    line: str  # of `subject`, without the student
    student: str
    reason: str

    @property
    def key(self) -> str:
        """The same for the same request."""
        return hashlib.sha256(storable(f"{vars(self)}").encode()).hexdigest()


def _text_of(content: bytes) -> str:
    """Return what a file says; of a mail, as programs save it, the subject and the text."""
    with suppress(Exception):  # a damaged mail is a text
        mail = email.message_from_bytes(content, policy=policy.default)
        if mail["MIME-Version"] and (body := mail.get_body(("plain",))):
            return f"{mail['Subject']}\n\n{body.get_content()}"
    return content.decode("utf-8", "replace")


class Requests:
    """The requests of an assignment, and which of them a person has answered."""

    def __init__(self, folder: Path, assignment: str) -> None:
        self.folder, self.assignment = folder / assignment, assignment

    @property
    def contact(self) -> str:
        """The address to which students mail requests; empty where they give them otherwise."""
        path = self.folder / CONTACT
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @contact.setter
    def contact(self, address: str) -> None:
        write_whole(self.folder / CONTACT, address)

    def all(self) -> Iterator[Request]:
        """Yield them, the latest of a student last."""
        for requests in self._by_file().values():
            yield from requests

    def unknown(self) -> list[str]:
        """Return the names of the files in which nothing is a request of this assignment."""
        return [name for name, requests in self._by_file().items() if not requests]

    def _by_file(self) -> dict[str, list[Request]]:
        paths = (path for path in self.folder.glob("[!.]*") if path.is_file())
        in_order = sorted(paths, key=lambda path: path.stat().st_mtime)
        return {path.name: list(self._in(path.read_bytes()[:MAX_FILE])) for path in in_order}

    def open(self) -> list[Request]:
        """Return those that nobody has answered."""
        return [one for one in self.all() if self.is_open(one)]

    def answered(self) -> dict[tuple[str, str], str]:
        """Return what each student asked, by the line and the student, and a person has answered."""
        reasons: dict[tuple[str, str], str] = {}
        for one in self.all():
            if not self.is_open(one):
                earlier = reasons.get((one.line, one.student), "")
                reasons[one.line, one.student] = f"{earlier}\n\n{one.reason}".strip()
        return reasons

    def is_open(self, request: Request) -> bool:
        """True if nobody has answered a request."""
        return not (self.folder / ANSWERED / request.key).exists()

    def _in(self, content: bytes) -> Iterator[Request]:
        before, *parts = _REQUEST.split(_text_of(content))
        reasons: dict[tuple[str, str], str] = {}  # a mail has the line as its subject, and once more
        for place, reason in zip(parts[::2], parts[1::2], strict=True):
            names = " ".join(re.sub(r"\n[>\s]*", " ", place).split()).split("/")
            if len(names) >= 4 and names[0] == self.assignment:
                about = (subject(self.assignment, names[1], "/".join(names[2:-1]), ""), names[-1])
                reasons[about] = f"{reasons.get(about, '')}\n\n{reason.strip().rstrip('> ')}".strip()
        for (line, student), reason in reasons.items():
            yield Request(line, student, (reason or before.strip())[:MAX_REASON])

    def add(self, text: str) -> Request:
        """Keep a text that somebody pasted, and return its request. Raises InputError where it holds none."""
        request = next(self._in(storable(text).encode()), None)
        if request is None:
            line = subject(self.assignment, "NOTEBOOK", "EXERCISE", "STUDENT")
            raise InputError(
                f"A request has the line that a feedback page makes, such as {line!r}, and this text has "
                "none of this assignment. Paste all of it."
            )
        name = hashlib.sha256(storable(text).encode()).hexdigest()[:16]
        write_whole(self.folder / f"{name}.txt", storable(text))
        return request

    def answer(self, request: Request) -> None:
        """Remember that a person has answered a request."""
        write_whole(self.folder / ANSWERED / request.key, "")
