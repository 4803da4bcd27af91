"""The truth is shown to whoever has predicted, judged once, and hidden from everybody else."""

from contextlib import chdir
from functools import partial

import numpy as np
import pytest

from starvelab import Q_, InputError
from starvelab.lesson.widgets import _evidence, _reveal
from starvelab.lesson.widgets._report import MAX_LESSON
from starvelab.lesson.widgets._reveal import LOCK_FIRST, RUN_AGAIN, SHOWN_TOO, MissBox
from starvelab.lesson.widgets.store import KERNEL
from starvelab.runtime import GRADING, Runtime, use
from starvelab.widgets import predict, report, reveal, scorecard
from tests.lesson.widgets.locked import predictions


def never():
    raise AssertionError("this must not be called")


@pytest.mark.parametrize(
    ("runtime", "said"), [(Runtime(), LOCK_FIRST), (Runtime(has_widgets=False), RUN_AGAIN)]
)
def test_without_a_prediction_nothing_of_the_truth_is_shown_and_nothing_raised(shown, folder, runtime, said):
    with use(runtime):
        reveal("cpu-wall", "the secret", then=never)
    assert shown == [f"Please note. {said}"]
    assert predictions() == {}
    (folder / "predictions.json").write_text("{")
    reveal("other", "the secret", then=never)
    assert "predictions.json must be JSON" in shown[1]


def lock_in_widget(key, answer):
    box = predict(key, question="How busy?", unit="%")
    box.answer.value = str(answer)
    box.button.click()


@pytest.mark.parametrize("lock", [partial(predict, unit="%"), lock_in_widget])
def test_a_reveal_shows_when_the_prediction_is_locked_what_it_would_show_if_it_ran_again(shown, capsys, lock):
    def run_cell():
        reveal("busy", 18.3, then=lambda: print("printed") or "returned")

    run_cell()
    run_cell()
    shown.clear()
    lock("busy", 40)
    assert capsys.readouterr().out.count("printed") == 1, "a cell that was run twice waits once"
    woken = shown.copy()
    assert woken[0].startswith("Miss. The answer is 18.3 %.")
    assert woken[1] == "returned"
    shown.clear()
    run_cell()
    assert woken == shown
    assert "0 of 1 revealed prediction came true." in repr(scorecard())


def test_what_waits_for_one_prediction_says_once_which_it_is_and_wakes_up_in_order(shown):
    predict("cpu-wall", question="How **busy**?\n\nThink of the cores.", unit="%")

    def first():
        reveal("cpu-wall", 18.3, then=lambda: "the first")

    first()
    reveal("cpu-wall", then=lambda: "the second")
    whole = f'Please note. {LOCK_FIRST} The question is: "How busy?"'
    assert shown == [whole, SHOWN_TOO]
    first()  # its cell runs again
    assert shown[2:] == [whole]
    predict("cpu-wall", 18.3)
    assert shown[4:] == ["the first", "the second"]


def test_a_prediction_that_is_locked_while_a_reveal_runs_is_not_missed(shown, monkeypatch):
    def display_and_lock(data, **options):
        shown.append(data["text/plain"])
        if LOCK_FIRST in data["text/plain"]:
            predict("cpu-wall", "CPU")

    monkeypatch.setattr(_evidence, "display", display_and_lock)
    reveal("cpu-wall", "CPU")
    assert shown[1].startswith("Hit. ")


@pytest.mark.parametrize("runtime", [GRADING, Runtime(is_validating=True)], ids=["graded", "validated"])
def test_nothing_wakes_up_in_a_run_that_is_graded(shown, runtime):
    with use(runtime):
        reveal("cpu-wall", "CPU", then=never)
        predict("cpu-wall", "CPU")
    assert shown == ["Please note. Lock your prediction above first, then run this cell again."]


def test_a_grader_shows_what_the_learner_saw_and_adds_nothing(shown):
    predict("cpu-wall", "CPU", choices=["CPU", "storage"])
    reveal("cpu-wall", "CPU")
    predict("fan", "CPU", choices=["CPU", "storage"])
    before = (predictions()["cpu-wall"], predictions()["fan"])
    with use(GRADING):
        reveal("cpu-wall", "storage")
        reveal("fan", "CPU")
    assert shown[1] == shown[0]
    assert shown[2].startswith('Please note. You predicted "CPU". ')
    assert shown[2].endswith(". Its answer was not shown before this was submitted.")
    assert (predictions()["cpu-wall"], predictions()["fan"]) == before


@pytest.mark.parametrize(("answer", "verdict"), [
    (44, "Hit. The answer is 44. You predicted 44. A host has 16 cores."),
    # In place of how far off it was.
    (9.5, "Miss. You took the time of a batch. The answer is 44. You predicted 9.5. A host has"),
    (8, "Miss. The answer is 44. You predicted 8. The answer is 5.5 times your number. A host has 16"),
])  # fmt: skip
def test_a_verdict_says_what_it_means_and_a_miss_its_likeliest_reason_first(shown, answer, verdict):
    predict("workers", answer)
    mistakes = {"You took the time of a batch.": 9, "You doubled it.": 9}
    reveal("workers", 44, meaning="A host has 16 cores.", mistakes=mistakes, then=lambda: "the story")
    assert shown[0].startswith(verdict)
    assert shown[0].endswith(" A host has 16 cores.")
    # Nothing is asked after a miss before what happened is shown.
    asked = ["[What did this teach you?]"] if verdict.startswith("Miss") else []
    assert shown[1:] == ["the story", *asked]


def test_what_an_answer_means_may_come_from_a_function_that_is_called_when_it_is_shown(shown):
    called = []
    reveal("workers", 44, why=lambda: called.append(1) or {"meaning": "A host has 16 cores.", "mistakes": {}})
    assert called == []
    predict("workers", 44)
    reveal("workers", 44, why=lambda: called.append(1) or {"meaning": "A host has 16 cores.", "mistakes": {}})
    assert called, "once it is locked"
    assert shown[-1].endswith(" A host has 16 cores.")


@pytest.mark.parametrize(("answer", "word"), [("CPU", "Hit"), ("storage", "Miss")])
def test_a_choice_is_shown_beside_the_truth_and_judged(shown, answer, word):
    predict("cpu-wall", answer, choices=["CPU", "storage"], confidence=0.7)
    reveal("cpu-wall", "cpu")
    assert shown[0] == f'{word}. The answer is "cpu". You predicted "{answer}", 70 % sure.'
    stored = predictions()["cpu-wall"]
    assert (stored["truth"], stored["hit"]) == ("cpu", word == "Hit")
    assert stored["revealed_at"].endswith("+00:00")


@pytest.mark.parametrize(("answer", "word", "off"), [
    (20, "Hit", ""),
    (25, "Hit", ""),
    (15, "Hit", ""),
    (25.2, "Miss", " Your number is 5.2 percentage points above the answer."),
    (12, "Miss", " Your number is 8 percentage points below the answer."),
    (-20, "Miss", " Your number is 40 percentage points below the answer."),
    (60, "Miss", " Your number is 3 times the answer."),
    (10900, "Miss", " Your number is 540 times the answer."),
    (0.015, "Miss", " The answer is 1,300 times your number."),
    (8, "Miss", " The answer is 2.5 times your number."),
])  # fmt: skip
def test_a_number_is_a_hit_within_a_quarter_of_the_truth(shown, answer, word, off):
    predict("busy", answer, unit="%", between=(None, None))
    reveal("busy", 20)
    assert shown[0] == f"{word}. The answer is 20.0 %. You predicted {answer:,} %.{off}"
    assert predictions()["busy"]["hit"] is (word == "Hit")


@pytest.mark.parametrize(("answer", "truth", "asked", "hit"), [
    (1.0, 1.16, {"unchanged": 1}, False),
    (1.13, 1.16, {"unchanged": 1}, True),
    (2.4, 3.0, {"unchanged": 1}, False),
    (2.5, 3.0, {"unchanged": 1}, True),
    (0.5, 0.4, {"unchanged": 1}, True),
    (1.0, 0.4, {"unchanged": 1}, False),
    # Measurements of nothing differ by some percent.
    (1.0, 1.007, {"unchanged": 1}, True),
    (1.2, 1.007, {"unchanged": 1}, False),
    (120, 98.82, {"unchanged": 100, "unit": "%", "between": (0, None)}, False),
    (100, 98.82, {"unchanged": 100, "unit": "%", "between": (0, None)}, True),
])  # fmt: skip
def test_of_a_change_the_gain_or_loss_is_judged(shown, answer, truth, asked, hit):
    predict("gain", answer, question="How many times?", confidence=0.5, **asked)
    reveal("gain", truth)
    assert predictions()["gain"]["hit"] is hit
    assert "50 % sure to be within a quarter of the gain or loss." in shown[0]
    assert ("What counts is the gain or loss: " in shown[0]) is not hit


@pytest.mark.parametrize(("unit", "truth", "stored"), [
    ("%", Q_(0.183, ""), 18.3),
    ("ms", Q_("0.064 s"), 64.0),
    ("img/s", Q_("21.8 img/ms"), 21800.0),
    ("%", np.float64(18.3), 18.3),
    (None, Q_(23, ""), 23.0),
])  # fmt: skip
def test_a_quantity_is_converted_to_the_unit_of_the_prediction(shown, unit, truth, stored):
    predict("k", stored, unit=unit)
    reveal("k", truth)
    assert predictions()["k"]["truth"] == pytest.approx(stored)
    assert shown[0].startswith("Hit.")


@pytest.mark.parametrize(
    ("asked", "answer", "truth", "begins", "ends"),
    [
        ({"unit": "img/s"}, 20000, Q_("21799.84 img/s"), "Hit. The answer is 21,800 img/s.", "20,000 img/s."),
        ({"unit": "%"}, 40, Q_("18.348 %"), "Miss. The answer is 18.3 %.", "is 2.2 times the answer."),
        ({"unit": "img/s"}, 130, 100, "Miss.", "130 img/s. Your number is 30 % above the answer."),
        ({"unchanged": 1}, 1, 1.16, "Miss.",
         "What counts is the gain or loss: 0.16 in the answer, 0 in your number."),
        ({"unit": "%"}, 0, 0, "Hit. The answer is 0.0 %.", "You predicted 0 %."),
        ({"unit": "%"}, 3, 0, "Miss. The answer is 0.0 %.", "You predicted 3 %."),
    ],
)  # fmt: skip
def test_an_answer_has_four_digits_and_a_distance_in_words(shown, asked, answer, truth, begins, ends):
    predict("k", answer, **asked)
    reveal("k", truth)
    assert shown[0].startswith(begins)
    assert shown[0].endswith(ends)


def test_a_truth_that_changes_later_does_not_rewrite_the_first(shown):
    predict("busy", 18, unit="%")
    reveal("busy", 18)
    reveal("busy", 50)
    assert shown[1].startswith("Hit.")
    assert shown[1].endswith(
        "The cell now gives 50.0 %; the score card keeps the answer that was shown first."
    )
    assert predictions()["busy"]["truth"] == 18


def test_whoever_predicted_what_was_measured_gets_credit_for_it(shown):
    predict("baseline", 2500, unit="img/s")
    reveal("baseline", 21800)
    reveal("baseline", measured=Q_("2470 img/s"))
    assert shown[0].startswith("Miss. ")
    credit = "Credit. 2,470 img/s were measured: your number is closer to that than the model's."
    assert shown[2].startswith(credit)
    stored = predictions()["baseline"]
    assert (stored["truth"], stored["measured"], stored["hit"]) == (21800, 2470, True)
    reveal("baseline", 21800)
    assert shown[3:] == shown[:1], "run again, the first cell says what it said"
    # Whoever predicted what the model says gets no second credit.
    predict("other", 20000, unit="img/s")
    reveal("other", 21800)
    reveal("other", measured=2470, then=lambda: "returned")
    assert shown[5:] == ["returned"]
    assert predictions()["other"]["measured"] is None
    reveal("other", measured=Q_("3 ms"))
    assert shown[-1].startswith("Problem. ")


@pytest.mark.parametrize(("prediction", "truth", "said"), [
    ({"answer": "CPU", "choices": ["CPU", "storage"]}, "GPU", "must be one of CPU, storage, got 'GPU'."),
    ({"answer": "CPU", "choices": ["CPU", "storage"]}, 3, "must be one of CPU, storage, got 3."),
    ({"answer": 3, "unit": "ms"}, "CPU", "must be a finite number, got 'CPU'."),
    ({"answer": 3, "unit": "ms"}, float("nan"), "must be a finite number, got nan."),
    ({"answer": 3, "unit": "ms"}, Q_("3 GB"), "The truth of 'k' must be convertible to ms, got 3 GB."),
])  # fmt: skip
def test_a_truth_that_does_not_fit_the_question_is_shown_as_the_notebooks_fault(
    shown, prediction, truth, said
):
    predict("k", **prediction)
    reveal("k", truth, then=lambda: "the story goes on")
    assert shown[0].startswith("Problem. The truth of 'k' must be ")
    assert said in shown[0]
    assert shown[1:] == ["the story goes on"]
    assert predictions()["k"]["hit"] is None


@pytest.mark.parametrize(("answer", "truth"), [("lots", 23), (3, "The GPU"), ("lots", Q_("18 %"))])
def test_an_answer_locked_in_code_that_is_of_another_kind_is_a_miss(shown, answer, truth):
    predict("k", answer)
    reveal("k", truth)
    assert shown[0].startswith("Miss.")
    assert predictions()["k"]["hit"] is False


def test_without_a_truth_it_only_holds_back_what_follows_whose_errors_are_the_cells_own(shown):
    reveal("cpu-wall", then=lambda: "what follows")
    assert shown == [f"Please note. {LOCK_FIRST}"]
    predict("cpu-wall", "CPU")
    assert shown[1:] == ["what follows"]
    reveal("cpu-wall", then=lambda: "what follows")
    assert shown[2:] == ["what follows"]
    assert predictions()["cpu-wall"]["truth"] is None
    with pytest.raises(ZeroDivisionError):
        reveal("cpu-wall", then=lambda: 1 / 0)
    with pytest.raises(InputError, match="A reveal shows a truth, calls `then`, or both; it got neither"):
        reveal("cpu-wall")
    with pytest.raises(InputError, match="A prediction is kept under a name, got None"):
        reveal(None, "CPU")


def test_a_question_is_known_to_the_memory_that_it_was_asked_in(shown, monkeypatch):
    predict("wall", question="What binds?", choices=["CPU", "link"])
    reveal("wall", "CPU")
    monkeypatch.setattr(KERNEL, "questions", {})
    monkeypatch.setattr(KERNEL, "waiting", {})
    reveal("wall", "CPU")
    assert shown[0].endswith('The question is: "What binds?"')
    assert shown[1].endswith(LOCK_FIRST)


def test_what_cannot_be_written_is_said_and_what_is_displayed_is_html_with_its_text_escaped(
    shown, folder, monkeypatch
):
    (folder / "elsewhere/.predictions.json.lock").mkdir(parents=True)  # no file: nothing is written
    with chdir(folder / "elsewhere"):
        predict("cpu-wall", "CPU")
        reveal("cpu-wall", "CPU")
    assert shown[0].startswith("Hit.")
    assert "It counts until the kernel stops." in shown[1]
    sent = []
    monkeypatch.setattr(_evidence, "display", lambda data, **_: sent.append(data))
    predict("k", "<b>")
    reveal("k", "<b>")
    assert "<strong>Hit.</strong> The answer is &quot;&lt;b&gt;&quot;" in sent[0]["text/html"]


# --- what a miss taught --------------------------------------------------------------------------------


@pytest.fixture
def boxes(monkeypatch):
    """The boxes that `reveal` displays."""
    found = []
    monkeypatch.setattr(
        _evidence, "display", lambda data, **_: found.append(data) if isinstance(data, MissBox) else None
    )
    return found


@pytest.fixture
def box(boxes):
    predict("wall", 45, question="How busy?", unit="%")
    reveal("wall", 18.3)
    return boxes[0]


def test_what_is_written_stands_in_the_report_and_in_the_box_after_a_restart(box, boxes, folder):
    assert (box.text.value, box.text.description) == ("", "What did this teach you?")
    report(name="Ada")
    box.text.value = "Times that overlap\ndo not add."
    assert "It is kept for your lab report." in box.message.value
    found = report()
    assert (found.learned, found.owner) == ({"wall": "Times that overlap do not add."}, "Ada")
    assert "Times that overlap do not add." in (folder / "report.html").read_text(encoding="utf-8")
    reveal("wall", 18.3)
    assert boxes[1].text.value == "Times that overlap do not add."
    boxes[1].text.value = ""
    assert "Nothing about this miss is saved." in boxes[1].message.value
    assert report().learned == {}
    box.text.value = "x" * (MAX_LESSON + 1)
    assert f"The first {MAX_LESSON} characters are kept" in box.message.value
    assert MissBox("wall").text.value == "x" * MAX_LESSON


def test_a_hit_asks_nothing_and_nor_does_a_grader_or_a_page_without_widgets(boxes):
    predict("wall", 18, unit="%")
    reveal("wall", 18.3)
    predict("drive", 45, unit="%")
    with use(GRADING):
        reveal("drive", 18.3)
    with use(Runtime(has_widgets=False)):
        reveal("drive", 18.3)
        assert "1. drive\nWrite it in the box below the answer." in repr(report())
    assert boxes == []


def test_what_goes_wrong_is_shown_in_the_box(box, monkeypatch):
    def fail(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_reveal, "save_lesson", fail)
    box.text.value = "It overlaps."
    assert "Problem." in box.message.value
    assert "PermissionError: [Errno 13] Permission denied" in box.message.value
