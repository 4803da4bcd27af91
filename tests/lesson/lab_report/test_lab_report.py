"""The lab report: what it says, and what its owner wrote into it."""

from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from starvelab.lesson.widgets._report import (
    MAX_LESSON,
    Entry,
    LabReport,
    read_notes,
    render,
)
from starvelab.prediction_file import Prediction


def prediction(key, answer, truth, *, hit, sure=None, **more):
    return Prediction(
        key=key, answer=answer, truth=truth, hit=hit, confidence=sure, locked_at=f"2026-11-2{len(key)}",
        revealed_at="2026-11-30", question=f"What of {key}?", **more,
    )  # fmt: skip


REPORT = LabReport(
    assignment="starving-the-gpu", owner="Ada <b>L.</b>", date="2026-11-22", starvelab="0.2",
    predictions=(prediction("wall", 45.0, 18.3, hit=False, sure=0.9, unit="%"),
                 prediction("drive", "The drive", "the drive", hit=True, sure=0.6),
                 prediction("rate", 100.0, 104.0, hit=True, unit="img/s"),
                 prediction("script", "</script><script>alert(1)</script>", "no", hit=False)),
    exercises=(Entry("1. One", "Exercise 1.1: twice", 1.5, 2, False),
               Entry("1. One", "Exercise 1.2: why", None, 4, True),
               Entry("2. Two", "Exercise 2.1: half", 3.0, 3, True)),
    learned={"wall": "Times that overlap do not add."},
)  # fmt: skip


@pytest.fixture(scope="module")
def page():
    return render(REPORT)


# --- what it says -----------------------------------------------------------------------------------------


def test_it_says_what_was_predicted_measured_learned_and_done(page):
    soup = BeautifulSoup(page, "html.parser")
    text = " ".join(soup.main.get_text(" ").split())
    assert "Lab report: starving-the-gpu" in text
    assert "Made by its owner: nobody else has checked what it says." in text
    assert "2 of 4 revealed predictions came true." in text
    assert "sure on average" not in text, "of four predictions nothing is said of calibration"
    assert "What of wall? Predicted: 45 %. The answer: 18.3 %. Times that overlap do not add." in text
    assert "What was learned from each miss 1 of 2 explained. What of wall?" in text
    assert "Nothing written yet." in text
    assert "2 of 3 done, with 4.5 of 5 points (90.0 %) by the checks that their owner can see" in text
    assert "Exercise 1.2: why written (of 4)" in text


def test_it_needs_no_other_file_and_nothing_in_it_runs(page):
    soup = BeautifulSoup(page, "html.parser")
    assert not soup.find_all(["link", "img", "iframe"])
    assert [script["type"] for script in soup.find_all("script")] == ["application/json"]
    assert "url(" not in soup.style.string.replace("url(#", "")
    assert "<b>L.</b>" not in page
    assert "alert(1)</script>" not in page


def test_a_screen_reader_finds_headings_tables_and_the_words_of_each_picture(page):
    soup = BeautifulSoup(page, "html.parser")
    assert soup.html["lang"] == "en"
    assert [one.name for one in soup.find_all(["h1", "h2"])] == ["h1", "h2", "h2", "h2"]
    assert all(head.get("scope") for head in soup.find_all("th"))
    pictures = soup.find_all("svg")
    assert [one["role"] for one in pictures] == ["img", "img"]
    numbers, calibration = (one.desc.string for one in pictures)
    assert "prediction 1: 2.5 times the answer, a miss; prediction 3: 0.96 times the answer, a hit" in numbers
    assert calibration == "60 % to 80 % sure: 100 % of 1 came true; 80 % to 100 % sure: 0 % of 1 came true."
    empty = render(LabReport(assignment="a", owner="", date="2026-11-22", starvelab="0.2"))
    assert "Nothing is locked yet." in empty
    assert "<svg" not in empty


# --- what its owner wrote -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["</script><b>\ud800", "x" * (MAX_LESSON + 1)])
def test_what_its_owner_wrote_is_read_back_and_nothing_else_is_in_its_data(tmp_path, monkeypatch, text):
    (tmp_path / "report.html").write_text(render(replace(REPORT, learned={"wall": text})), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert read_notes() == (REPORT.owner, {"wall": text[:MAX_LESSON]})


NO_NOTES = (
    "{", "[1]", '{"owner": 3}', '{"learned": 3}', '{"learned": {"a": 1}}', '{"more": ""}', "[" * 100_000,
)  # fmt: skip


@pytest.mark.parametrize("notes", [*NO_NOTES, None])
def test_notes_that_cannot_be_read_are_none(tmp_path, monkeypatch, notes):
    page = f'<script type="application/json" id="starvelab-notes">{notes}</script>' if notes else "mine"
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert read_notes() == ("", {})
    (tmp_path / "report.html").unlink()
    assert read_notes() == ("", {})
