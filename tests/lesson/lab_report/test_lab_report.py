"""The lab report: what it says, that an altered byte is found, and whose signature it has."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from starvelab.errors import InputError
from starvelab.lesson.lab_report import Entry, LabReport, keep_measurement, read_report, render, verify
from starvelab.lesson.lab_report.graded import lab_report
from starvelab.lesson.lab_report.measurements import OwnMeasurement, read_measurements
from starvelab.lesson.lab_report.page import NotAReportError
from starvelab.lesson.lab_report.signing import Signature, load_key, sign
from starvelab.lesson.lab_report.verifying import main
from starvelab.prediction_file import Prediction
from starvelab.runtime import GRADING, use
from starvelab.units import Q_


def prediction(key, answer, truth, *, hit, sure=None, **more):
    return Prediction(
        key=key, answer=answer, truth=truth, hit=hit, confidence=sure, locked_at=f"2026-11-2{len(key)}",
        revealed_at="2026-11-30", question=f"What of {key}?", **more,
    )  # fmt: skip


REPORT = LabReport(
    assignment="starving-the-gpu",
    owner="Ada <b>L.</b>",
    date="2026-11-22",
    starvelab="0.2",
    predictions=(
        prediction("wall", 45.0, 18.3, hit=False, sure=0.9, unit="%"),
        prediction("drive", "The drive", "the drive", hit=True, sure=0.6),
        prediction("rate", 100.0, 104.0, hit=True, unit="img/s"),
        prediction("script", "</script><script>alert(1)</script>\ud800", "no", hit=False),
    ),
    exercises=(
        Entry("1. One", "Exercise 1.1: twice", 1.5, 2, False),
        Entry("1. One", "Exercise 1.2: why", None, 4, True),
        Entry("2. Two", "Exercise 2.1: half", 3.0, 3, True),
    ),
    measurements=(OwnMeasurement("two workers", 200.0, 210.0, "img/s"),),
    learned={"wall": "Times that overlap do not add."},
)


@pytest.fixture(scope="module")
def page():
    return render(REPORT)


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return load_key(tmp_path_factory.mktemp("keys") / "key.pem")


# --- what it says -----------------------------------------------------------------------------------------


def test_it_says_what_was_predicted_measured_learned_and_done(page):
    soup = BeautifulSoup(page, "html.parser")
    text = " ".join(soup.main.get_text(" ").split())
    assert "Lab report: starving-the-gpu" in text
    assert "Made by its owner. Nobody vouches for what went into it." in text
    assert "2 of 4 revealed predictions came true." in text
    assert "you were 75 % sure on average and right 50 % of the time: well matched" in text
    assert "What of wall? Predicted: 45 %. The answer: 18.3 %. Times that overlap do not add." in text
    assert "What was learned from each miss 1 of 2 explained. What of wall?" in text
    assert "Nothing written yet." in text
    assert "two workers 200 img/s 210 img/s +5.0 %" in text
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
    assert [one.name for one in soup.find_all(["h1", "h2"])] == ["h1", "h2", "h2", "h2", "h2"]
    assert all(head.get("scope") for head in soup.find_all("th"))
    pictures = soup.find_all("svg")
    assert [one["role"] for one in pictures] == ["img", "img"]
    numbers, calibration = (one.desc.string for one in pictures)
    assert "prediction 1: 2.5 times the answer, a miss; prediction 3: 0.96 times the answer, a hit" in numbers
    assert calibration == "60 % to 80 % sure: 100 % of 1 came true; 80 % to 100 % sure: 0 % of 1 came true."


def test_an_empty_report_has_no_pictures_and_says_how_to_begin():
    page = render(LabReport(assignment="a", owner="", date="2026-11-22", starvelab="0.2"))
    assert "Nothing is locked yet." in page
    assert "<svg" not in page
    assert not verify(page.encode()).problem


# --- altered ----------------------------------------------------------------------------------------------


def test_the_numbers_are_computed_anew_and_its_owner_made_it(page):
    said = str(verify(page.encode()))
    assert said.startswith("No byte of this report of Ada <b>L.</b> on starving-the-gpu was altered.")
    assert "Made by its owner: nobody vouches for what went into it." in said
    assert "2 of 3 exercises done, 4.5 of 5 points." in said
    assert "2 of 4 revealed predictions came true." in said
    assert "two workers" in said


def test_each_altered_byte_is_found(page):
    content = page.encode()
    # Some bytes of all parts of the page.
    for position in range(0, len(content), 173):
        altered = bytearray(content)
        altered[position] ^= 1
        assert verify(bytes(altered)).problem, page[max(0, position - 30) : position + 30]


def test_what_is_not_shown_cannot_be_altered_either(page):
    altered = page.replace('"locked_at": "2026-11-25"', '"locked_at": "2026-11-24"')
    assert altered != page
    assert verify(altered.encode()).problem.startswith("This report was altered, in line ")


def test_the_line_that_was_altered_is_named(page):
    altered = page.replace("4.5 of 5 points", "5.0 of 5 points")
    line = page[: page.index("4.5 of 5 points")].count("\n") + 1
    assert verify(altered.encode()).problem == f"This report was altered, in line {line}."
    assert verify(f"{page}\n".encode()).problem.startswith("This report was altered, in line ")


@pytest.mark.parametrize("content", [b"", b"\xff", b"<html></html>", b"PK\x03\x04"])
def test_what_is_no_report_is_told_so(content):
    assert verify(content).problem == (
        "A lab report holds its contents, and this file holds none that can be read. It is no lab report, or "
        "it was altered."
    )


def test_another_version_of_the_layout_cannot_be_verified(page):
    layout = json.loads(page.split('id="starvelab-report">')[1].split("</script>")[0])["layout"]
    verdict = verify(page.replace(layout, "0" * 12).encode())
    assert verdict.problem.startswith("A report is verified with the version of starvelab that made it")


@pytest.mark.parametrize(
    "change",
    [{"predictions": 3}, {"exercises": [{"most": "x"}]}, {"learned": {"a": 1}}, {"measurements": [{}]}, None],
)
def test_contents_that_are_forged_are_no_report(page, change):
    data = json.loads(REPORT.canonical())
    forged = json.dumps({"layout": "", "signature": None, "report": change and data | change})
    with pytest.raises(NotAReportError):
        read_report(f'<script type="application/json" id="starvelab-report">{forged}</script>')


# --- signed -----------------------------------------------------------------------------------------------


def test_a_report_that_an_instructor_signed_says_with_which_key(key):
    graded = replace(REPORT, is_graded=True)
    signature = sign(graded.canonical(), key)
    page = render(graded, signature)
    assert "Signed by an instructor while grading" in page
    assert "hidden checks and marks included" in page
    verdict = verify(page.encode())
    assert not verdict.problem
    assert f"Signed while grading, with the key {signature.fingerprint}." in str(verdict)


def test_who_alters_a_signed_report_has_no_key_to_sign_it_anew(key):
    better = replace(REPORT, exercises=(Entry("1. One", "all of it", 90.0, 90, True),))
    page = render(better, sign(REPORT.canonical(), key))
    assert verify(page.encode()).problem == (
        "The signature does not fit the contents: they were altered after signing."
    )
    nonsense = render(REPORT, Signature("eA==", "eA=="))
    assert verify(nonsense.encode()).problem.startswith("The signature does not fit")


def test_a_key_is_made_once_for_its_owner_only(tmp_path):
    path = tmp_path / "key.pem"
    made = load_key(path)
    assert load_key(path) == made
    assert os.stat(path).st_mode & 0o777 == 0o600
    path.write_text("-----BEGIN NOTHING-----")
    with pytest.raises(InputError, match=r"with a private Ed25519 key in PEM, and .*key\.pem holds none"):
        load_key(path)


def test_the_report_of_a_submission_has_its_predictions_and_what_was_learned(tmp_path):
    one = REPORT.predictions[0]
    (tmp_path / "predictions.json").write_text(json.dumps({one.key: one.to_json()}))
    keep_measurement("two workers", Q_("200 img/s"), Q_("0.21 img/ms"), folder=tmp_path)
    (tmp_path / "report.html").write_text(render(REPORT), encoding="utf-8")
    found = lab_report("lab", "Ada", tmp_path, REPORT.exercises)
    assert (found.is_graded, found.predictions, found.learned) == (True, (one,), REPORT.learned)
    assert found.measurements == REPORT.measurements
    (tmp_path / "report.html").write_text("mine")
    assert lab_report("lab", "Ada", tmp_path, ()).learned == {}


# --- measurements, and the command ------------------------------------------------------------------------


def test_the_newest_measurement_of_a_name_counts_and_a_broken_file_is_none(tmp_path):
    for rate in (100, 200):
        keep_measurement("a", Q_(rate, "img/s"), Q_("210 img/s"), folder=tmp_path)
    (kept,) = read_measurements(tmp_path)
    assert (kept.measured, kept.model, kept.unit) == (200.0, 210.0, "img/s")
    assert kept.error == pytest.approx(0.05)
    for text in ("{", '[{"what": 1}]', "[1]", '[{"what": "a", "measured": NaN, "model": 1.0, "unit": ""}]'):
        (tmp_path / "measurements.json").write_text(text)
        assert read_measurements(tmp_path) == ()


def test_nothing_is_kept_while_grading(tmp_path):
    with use(GRADING):
        keep_measurement("a", Q_("1 img/s"), Q_("1 img/s"), folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_command_tells_which_reports_are_altered(page, tmp_path, capsys):
    good, bad, none = (tmp_path / name for name in ("good.html", "bad.html", "none.html"))
    good.write_text(page, encoding="utf-8", newline="\n")
    bad.write_text(page.replace("Ada", "Bob", 1), encoding="utf-8", newline="\n")
    assert main([str(good)]) == 0
    assert "No byte of this report" in capsys.readouterr().out
    assert main([str(good), str(bad), str(none)]) == 1
    said = capsys.readouterr().err
    assert "was altered, in line" in said
    assert "none.html is not (No such file or directory)" in said
