"""Regrade requests as they come by mail and in files."""

import os
from email.message import EmailMessage

import pytest

from starvelab_grader.batch.requests import MAX_REASON, Requests, subject
from starvelab_grader.errors import InputError

LINE = subject("lab", "01_step", "Exercise 1.1: bytes / [s]", "ada")
LISTED = subject("lab", "01_step", "Exercise 1.1: bytes / [s]", "")


@pytest.fixture
def requests(tmp_path):
    return Requests(tmp_path, "lab")


@pytest.mark.parametrize(("text", "reason"), [
    (f"{LINE}\nI meant MiB.\n", "I meant MiB."),
    (f"I meant MiB.\n{LINE}\n", "I meant MiB."),
    ("> " + LINE.replace(" ", "\n> ") + "\n\nI meant MiB.", "I meant MiB."),
    (f"Subject: Re: {LINE}\n\n> {LINE}\n\nI meant MiB.", "I meant MiB."),
    (f"{LINE}\n{'x' * 5000}", "x" * MAX_REASON),
])  # fmt: skip
def test_a_request_is_known_by_its_line_however_mail_breaks_it(requests, text, reason):
    assert LINE == "Regrade request [lab/01_step/Exercise 1.1: bytes / s /ada]"
    requests.add(text)
    (one,) = requests.open()
    assert (one.line, one.student, one.reason) == (LISTED, "ada", reason)


def test_files_in_the_folder_are_read_and_an_answer_is_remembered(requests):
    requests.folder.mkdir()
    other = subject("lab", "01_step", "Exercise 1.2", "bob")
    (requests.folder / "mail.txt").write_bytes(f"{LINE}\nWhy? \xe9\n\n{other}\nThe same.".encode("latin-1"))
    (requests.folder / "other.txt").write_text(subject("another", "01_step", "Exercise 1.2", "bob"))
    os.utime(requests.folder / "mail.txt", (1, 1))
    first, second = requests.open()
    assert (second.student, second.reason) == ("bob", "The same.")
    requests.answer(first)
    assert requests.open() == [second]
    assert list(requests.all()) == [first, second]
    requests.add(f"{LINE}\nAnd now I ask again.")
    assert [one.student for one in requests.open()] == ["bob", "ada"]


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
def test_a_mail_as_a_program_saves_it_is_read(requests, encoding):
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "ada@uni.example", LINE
    mail.set_content(f"{LINE.replace(' ', chr(160))}\n\nI meant MiB, größer: {'x' * 90}\n", cte=encoding)
    mail.add_alternative(f"<p>{LINE}</p>", subtype="html")
    requests.folder.mkdir()
    (requests.folder / "mail.eml").write_bytes(bytes(mail))
    assert [(one.student, one.reason) for one in requests.open()] == [
        ("ada", f"I meant MiB, größer: {'x' * 90}")
    ]
    assert requests.unknown() == []


def test_a_file_without_a_request_is_named(requests):
    requests.folder.mkdir()
    damaged = b"MIME-Version: 1.0\nContent-Type: text/plain; charset=no-such\n\nPlease."
    for name, content in (("a.eml", damaged), ("b.pdf", b"%PDF \xff"), ("c.txt", LINE.encode()), (".d", b"")):
        (requests.folder / name).write_bytes(content)
    assert sorted(requests.unknown()) == ["a.eml", "b.pdf"]


def test_a_text_without_a_request_is_refused(requests):
    for text in ("Hello.", "Regrade request [x]", subject("another", "a", "b", "c")):
        with pytest.raises(InputError, match=r"such as 'Regrade request \[lab/NOTEBOOK/EXERCISE/STUDENT\]'"):
            requests.add(text)
    assert requests.open() == []
