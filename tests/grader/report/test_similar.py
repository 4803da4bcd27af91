"""Copied texts are found, and texts that must be alike are not."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from starvelab_grader.report.findings import (
    SAME_FILE,
    WHOLE,
    pairs,
    same_files,
    similar,
    texts_by_exercise,
)
from starvelab_grader.submissions.reference import ReferenceCell

FORMULA = "def step_time(batch_size):\n    return overhead + batch_size * work / (peak * efficiency)\n"
OWN = [
    "I think the GPU waits since eight workers on a small box cannot decode that many pictures in time. ",
    "My guess was the drive, and it turned out that reading is never the problem here, by a factor of ten. ",
    "Decoding binds. Buying a faster accelerator would only make it idle more, as the sweep above shows. ",
    "Prefetching hides latency but not a lack of throughput, so deeper queues would not have helped at all. ",
    "The stall is the share of the step in which nothing runs on the device; here it is about two thirds. ",
]
COPIED = (
    "# took me ages!! the trick is that sampels per secnd has to be devided by the nubmer of workers first\n"
    "x_tmp2 = 1 / (rate*W)   # no idea why but it works with the bracket\n"
    "Thats why the GPU idels: the cpu is to slow for it and we shuold buy more cores or less augmentation.\n"
)


def test_two_who_share_what_nobody_else_wrote_are_found():
    texts = {f"s{number}": FORMULA + own for number, own in enumerate(OWN)}
    texts["eve"], texts["mal"] = FORMULA + COPIED, "# my work\n" + FORMULA + COPIED.replace("ages", "hours")
    (found,) = pairs(texts)
    assert (found.one, found.other) == ("eve", "mal")
    assert found.characters > 200
    assert found.share > 0.6
    assert found.passage in " ".join(COPIED.split())
    assert len(found.passage) > 100


@pytest.mark.parametrize("students", [3, 12])
def test_three_with_the_same_essay_are_found_as_two_are(students):
    written = {f"s{at:02d}": {"why": OWN[at % 5][:-2] + f"And {at} " * 40} for at in range(students - 3)}
    written |= {name: {"why": COPIED} for name in ("eve", "mal", "sue")}
    found = similar(written, essays={"why"})
    assert [(one.one, one.other, one.where) for one in found] == [
        ("eve", "mal", "why"),
        ("eve", "sue", "why"),
        ("mal", "sue", "why"),
    ]
    assert {one.share for one in found} == {1.0}


def test_one_copied_essay_is_found_in_a_submission_that_is_otherwise_ones_own():
    long = [" ".join(f"{who}{n} does {n * who}" for n in range(300)) for who in range(2, 8)]
    texts = {f"s{at}": {"code": long[at], "why": OWN[at] * 2 if at < 4 else COPIED} for at in range(5)} | {
        "t": {"code": long[5], "why": COPIED}
    }
    assert [(one.one, one.other, one.where) for one in similar(texts, essays={"why"})] == [("s4", "t", "why")]
    assert pairs({name: each["code"] + each["why"] for name, each in texts.items()}) == []


def test_what_is_shared_in_no_single_exercise_is_found_in_all_of_them_together():
    thirds = [COPIED[at : at + 110] for at in (0, 110, 220)]
    texts = {name: {f"e{at}": text for at, text in enumerate(thirds)} for name in ("eve", "mal")}
    texts |= {f"s{at}": {"e0": OWN[at]} for at in range(5)}
    assert [(one.one, one.other, one.where) for one in similar(texts)] == [("eve", "mal", WHOLE)]


def test_twins_are_found_by_their_files_however_ordinary_their_answers_are():
    prints = {
        "ada": {"one": "a1", "two": "a2"},
        "bob": {"one": "b1", "two": "a2"},
        "cem": {"one": "a1", "two": "a2"},
        "dee": {"one": "", "two": ""},
        "eve": {"one": "", "two": ""},
    }
    assert [(p.one, p.other, p.where, p.passage) for p in same_files(prints)] == [
        ("ada", "bob", SAME_FILE, "two"),
        ("ada", "cem", SAME_FILE, "one, two"),
    ]


def cell(name: str | None, source: str):
    return new_code_cell(source, metadata={"nbgrader": {"grade_id": name}} if name else {})


def test_what_a_student_wrote_is_changed_answers_by_exercise_and_new_cells():
    written = {"a": "x", "helper": "y", "b": "z", "test": "t", "why": "w", "c": "stub "}
    cells = [cell(name, source) for name, source in written.items()]
    nb = new_notebook(cells=[*cells, cell(None, "own"), cell(None, "shown to all")])
    # Name, and whether it is graded, and whether it is an answer.
    kinds = [
        ("a", 0, 1),
        ("a-test", 1, 0),
        ("helper", 0, 1),
        ("b", 0, 1),
        ("test", 1, 0),
        ("why", 1, 1),
        ("c", 0, 1),
    ]
    truth = [
        ReferenceCell(name, "code", "", "", "", not answer, bool(graded), bool(answer))
        for name, graded, answer in kinds
    ]
    given = {"stub", "shown to all"}
    assert texts_by_exercise(nb, truth, given, "own cells") == {
        "a-test": "x", "test": "y\nz", "why": "w", "own cells": "own"
    }  # fmt: skip


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param({f"s{number}": FORMULA * 3 + own for number, own in enumerate(OWN)}, id="right formula"),
        # A forum's answer, or a lecture's: in a class of that size at most three may have what counts.
        pytest.param({f"s{number}": COPIED + own for number, own in enumerate(OWN)}, id="what many share"),
        pytest.param({"ada": "", "bob": "x = 1", "cem": "x = 1"}, id="short and empty"),
    ],
)
def test_what_must_be_alike_is_no_finding(texts):
    assert pairs(texts) == []


def test_what_was_given_out_and_the_solution_are_no_finding():
    texts = {"ada": COPIED + OWN[0], "bob": COPIED + OWN[1]}
    assert pairs(texts, known=[COPIED]) == []
    assert len(pairs(texts)) == 1
