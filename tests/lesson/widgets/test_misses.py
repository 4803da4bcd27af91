"""The text box under a miss: what is written there stands in the lab report, and in the box again."""

from __future__ import annotations

import pytest

from starvelab.lesson.lab_report import MAX_LESSON
from starvelab.lesson.widgets import _reveal
from starvelab.lesson.widgets._reveal import MissBox
from starvelab.lesson.widgets.cells import CellLog
from starvelab.runtime import GRADING, Runtime, use
from starvelab.widgets import predict, report, reveal


@pytest.fixture
def boxes(monkeypatch):
    """The boxes that `reveal` displays."""
    found = []
    monkeypatch.setattr(
        _reveal, "display", lambda data, **_: found.append(data) if isinstance(data, MissBox) else None
    )
    return found


@pytest.fixture
def box(boxes):
    predict("wall", 45, question="How busy?", unit="%")
    reveal("wall", 18.3)
    return boxes[0]


def test_what_is_written_stands_in_the_report_and_in_the_box_after_a_restart(box, boxes, folder):
    assert (box.text.value, box.text.description) == ("", "What did this teach you?")
    report(name="Ada", log=CellLog())
    box.text.value = "Times that overlap\ndo not add."
    assert "It is kept for your lab report." in box.message.value
    found = report(log=CellLog()).contents
    assert (found.learned, found.owner) == ({"wall": "Times that overlap do not add."}, "Ada")
    assert "Times that overlap do not add." in (folder / "report.html").read_text(encoding="utf-8")
    reveal("wall", 18.3)
    assert boxes[1].text.value == "Times that overlap do not add."
    boxes[1].text.value = ""
    assert "Nothing is kept of this miss." in boxes[1].message.value
    assert report(log=CellLog()).contents.learned == {}


def test_a_long_text_is_kept_as_far_as_a_report_keeps_it(box):
    box.text.value = "x" * (MAX_LESSON + 1)
    assert f"The first {MAX_LESSON} characters are kept" in box.message.value
    assert MissBox("wall", box._folder).text.value == "x" * MAX_LESSON


def test_a_hit_asks_nothing_and_nor_does_a_grader_or_a_page_without_widgets(boxes):
    predict("wall", 18, unit="%")
    reveal("wall", 18.3)
    predict("drive", 45, unit="%")
    with use(GRADING):
        reveal("drive", 18.3)
    with use(Runtime(has_widgets=False)):
        reveal("drive", 18.3)
        assert "yet? Say it by number" in repr(report(log=CellLog()))
    assert boxes == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            PermissionError(13, "Permission denied"),
            "could not be written (Permission denied). Make the folder writable",
        ),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
)
def test_what_goes_wrong_is_shown_in_the_box(box, monkeypatch, error, said):
    def fail(*_):
        raise error

    monkeypatch.setattr(_reveal, "save_lesson", fail)
    box.text.value = "It overlaps."
    assert "Problem." in box.message.value
    assert said in box.message.value
