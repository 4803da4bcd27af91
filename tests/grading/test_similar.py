"""Copied texts are found, and texts that must be alike are not."""

from __future__ import annotations

from nbformat.v4 import new_code_cell, new_notebook

from starvelab.grading.similar import pairs, written_by_student

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
    assert found.letters > 200
    assert found.share > 0.6
    assert found.passage in " ".join(COPIED.split())
    assert len(found.passage) > 100


def test_the_same_right_formula_is_no_finding():
    assert pairs({f"s{number}": FORMULA * 3 + own for number, own in enumerate(OWN)}) == []


def test_what_was_given_out_and_the_solution_are_no_finding():
    texts = {"ada": COPIED + OWN[0], "bob": COPIED + OWN[1]}
    assert pairs(texts, known=[COPIED]) == []
    assert len(pairs(texts)) == 1


def test_what_many_share_is_no_finding():
    """A forum's answer, or a lecture's: in a class of that size at most two may have what counts."""
    assert pairs({f"s{number}": COPIED + own for number, own in enumerate(OWN)}) == []


def test_short_and_empty_texts_are_no_finding():
    assert pairs({"ada": "", "bob": "x = 1", "cem": "x = 1"}) == []


def test_what_a_student_wrote_is_changed_answers_and_new_cells():
    def named(name: str, source: str):
        cell = new_code_cell(source)
        cell.metadata["nbgrader"] = {"grade_id": name}
        return cell

    nb = new_notebook(
        cells=[
            named("set-up", "import math"),
            named("a", "mine"),
            named("b", "stub "),
            new_code_cell("scratch"),
        ]
    )
    nb.cells.append(new_code_cell("shown to all"))
    assert written_by_student(nb, {"set-up"}, {"stub", "shown to all"}) == "mine\nscratch"
