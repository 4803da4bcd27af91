"""Asking for a prediction: in a widget, in code, and again after it was locked."""

from contextlib import chdir

import ipywidgets
import pytest

from starvelab import Q_, InputError
from starvelab.lesson.widgets.keyboard import Box
from starvelab.lesson.widgets.store import KERNEL, PredictionStore
from starvelab.runtime import Runtime, use
from starvelab.widgets import predict
from tests.lesson.widgets.locked import predictions
from tests.rejected import message

CHOICES = ["CPU", "storage"]


def a_choice(**more):
    return predict("cpu-wall", question="What binds?", choices=CHOICES, **more)


def a_number(**more):
    return predict("busy", question="How busy?", unit="%", **more)


def workers():
    return predict("workers", question="How many?", between=(1, None), whole=True)


def test_a_choice_and_a_number_are_locked_by_the_button(folder):
    box = a_choice()
    assert (box.locked, box.answer.value) == (False, None)
    box.answer.value = "CPU"
    box.confidence.value = 0.7
    box.button.click()
    assert box.locked
    assert "You predicted &quot;CPU&quot;, 70 % sure. It is locked" in box.message.value
    record = predictions()["cpu-wall"]
    found = [record[name] for name in ("answer", "confidence", "choices", "question")]
    assert found == ["CPU", 0.7, CHOICES, "What binds?"]
    box = a_number()
    box.answer.value = "18.3"
    box.confidence.value = 0.5
    box.button.click()
    said = "You predicted 18.3 %, 50 % sure to be within a quarter of the answer. It is locked"
    assert said in box.message.value
    assert predictions()["busy"]["answer"] == 18.3


@pytest.mark.parametrize(("make", "typed", "said"), [
    (a_choice, None, "Choose one of the answers first, then lock."),
    (a_number, "", "Type a number first."),
    (a_number, "a lot", "The prediction must be a number, got &#x27;a lot&#x27;."),
    (workers, "2.5", "The prediction counts something and must be a whole number, got 2.5."),
])  # fmt: skip
def test_what_is_missing_is_said_in_the_widget_and_nothing_is_locked(folder, make, typed, said):
    box = make()
    box.answer.value = typed
    box.button.click()
    assert said in box.message.value
    assert "Please note." in box.message.value
    assert not box.locked
    assert not (folder / "predictions.json").exists()


def test_an_unforeseen_error_and_what_ails_the_file_are_shown_in_the_widget(folder, monkeypatch):
    (folder / "predictions.json").write_text("{")
    box = a_choice()
    assert "predictions.json must be JSON, and it is not" in box.message.value
    box.answer.value = "CPU"
    box.button.click()
    assert box.locked
    assert "It was moved to predictions.json.bad-1" in box.message.value
    (folder / "elsewhere/.predictions.json.lock").mkdir(parents=True)  # no file: nothing is written
    monkeypatch.chdir(folder / "elsewhere")
    box = a_choice()
    box.answer.value = "CPU"
    box.button.click()
    assert box.locked
    assert "It counts until the kernel stops." in box.message.value
    assert predictions()["cpu-wall"]["answer"] == "CPU"
    box = a_number()
    box.answer.value = "3"
    monkeypatch.setattr(PredictionStore, "lock", lambda *_: 1 / 0)
    box.button.click()
    assert "ZeroDivisionError: division by zero" in box.message.value


@pytest.mark.parametrize("make", [a_choice, a_number])
def test_shown_again_a_locked_prediction_is_text_and_everything_is_disabled(make, monkeypatch):
    first = make()
    first.answer.value = first.answer.options[0] if make is a_choice else "42"
    first.button.click()
    again = make()
    assert again.locked
    assert again.answer.disabled
    assert again.confidence.disabled
    assert again.answer.value == first.answer.value
    assert "You predicted" in again.message.value
    again.button.click()
    assert len(predictions()) == 1
    # So it is after the kernel restarts.
    monkeypatch.setattr(KERNEL, "unsaved", {})
    assert make().locked
    assert make().confidence.layout.display == "none", "nothing was said of how sure"


def test_a_second_widget_does_not_replace_what_another_locked():
    first, second = a_choice(), a_choice()
    first.answer.value, second.answer.value = CHOICES
    first.button.click()
    second.button.click()
    assert "You predicted &quot;CPU&quot;" in second.message.value
    assert "It was locked before, in another cell or window." in second.message.value
    assert "A prediction is locked once; storage does not replace it." in second.message.value
    assert predictions()["cpu-wall"]["answer"] == "CPU"


def test_in_code_one_line_says_what_was_locked_and_where(folder, capsys):
    assert predict("cpu-wall", "CPU", confidence=0.7) is None
    assert capsys.readouterr().out == "Locked 'cpu-wall' in predictions.json: CPU, 70 % sure.\n"
    assert predictions()["cpu-wall"]["answer"] == "CPU"
    (folder / "elsewhere/.predictions.json.lock").mkdir(parents=True)
    with chdir(folder / "elsewhere"):
        predict("cpu-wall", "CPU")
    said = capsys.readouterr().out
    assert said.startswith("Locked 'cpu-wall' in memory: CPU. A prediction is kept in ")
    assert said.count("\n") == 1


def test_in_code_a_quantity_brings_its_unit(capsys):
    predict("rate", Q_("20000 img/s"))
    predict("share", Q_("18 %"))
    predict("plain", Q_(3, ""))
    stored = predictions()
    assert [(stored[key]["answer"], stored[key]["unit"]) for key in ("rate", "share", "plain")] == [
        (20000, "img/s"),
        (18, "%"),
        (3, None),
    ]


def test_in_code_a_second_answer_is_refused_in_words(capsys):
    predict("cpu-wall", "CPU")
    predict("cpu-wall", "CPU")
    predict("cpu-wall", "storage")
    _, same, other = capsys.readouterr().out.splitlines()
    assert same.startswith("'cpu-wall' was locked on ")
    assert same.endswith(": CPU.")
    assert other.endswith("A prediction is locked once; storage does not replace it.")
    assert predictions()["cpu-wall"]["answer"] == "CPU"


def test_confidence_runs_from_guessing_or_none_to_certain():
    for count, lowest in ((2, "50 %"), (3, "33 %"), (4, "25 %")):
        slider = predict(f"k{count}", choices=list("abcd"[:count])).confidence
        labels = [label for label, _ in slider.options]
        assert (labels[1], labels[-1]) == (lowest, "100 %")
        assert slider.description == "How sure are you?"
    slider = a_number().confidence
    labels = [label for label, _ in slider.options]
    assert (labels[1], labels[-1], slider.value) == ("0 %", "100 %", -1)
    assert slider.description == "How sure are you that your number is within a quarter of the answer?"


@pytest.mark.parametrize("box", [a_choice, a_number])
def test_a_slider_that_was_not_moved_states_no_confidence(box):
    made = box()
    assert made.confidence.options[made.confidence.index][0] == "not said yet"
    made.answer.value = "CPU" if box is a_choice else "18"
    made.button.click()
    [record] = predictions().values()
    assert record["confidence"] is None
    assert " sure" not in made.message.value


def test_a_question_is_shown_as_text_with_its_few_marks_in_a_box_that_ends_in_the_keyboard_script():
    box = predict("k", question="Is `x` < **3**?\n\nThink.", unit="ms")
    shown = box.children[0].value
    assert "Is <code>x</code> &lt; <strong>3</strong>?</p>" in shown
    assert shown.count("<p ") == 2
    assert repr(box) == "[Is x < 3? Think.]"
    assert isinstance(box, ipywidgets.VBox)
    assert "starvelab-box" in box._dom_classes
    hidden = box.children[-1]
    assert (hidden.layout.display, hidden.children[0].name) == ("none", "Is x < 3? Think.")


# --- a page that shows no widgets, such as Colab's ---------------------------------------------------------


@pytest.mark.parametrize(("ask", "answer"), [(a_choice, "CPU"), (a_number, 18.3)])
def test_code_that_follows_a_question_locks_the_record_that_the_box_would(folder, ask, answer):
    (folder / "box").mkdir()
    with chdir(folder / "box"):
        box = ask()
        box.answer.value = str(answer)
        box.confidence.value = 0.7
        box.button.click()
        ((key, of_box),) = predictions().items()
    with use(Runtime(has_widgets=False)):
        ask()
        assert predict(key, answer, confidence=0.7) is None
    timeless = [{**each, "locked_at": None} for each in (of_box, predictions()[key])]
    assert timeless[0] == timeless[1]
    assert ask().locked


@pytest.mark.parametrize(("key", "answer", "sure", "said"), [
    ("workers", 2.5, None, "must be a whole number, got 2.5."),
    ("cpu-wall", "GPU", 0.7, "The prediction must be one of CPU, storage, got 'GPU'"),
    ("cpu-wall", "CPU", 0.2, "confidence must be a number from 0.5 (a guess) to 1"),
])  # fmt: skip
def test_in_code_a_bad_prediction_raises_and_locks_nothing_asked_there_or_before(key, answer, sure, said):
    asked = {"workers": {"whole": True}, "cpu-wall": {"choices": CHOICES}}[key]
    assert said in message(InputError, predict, key, answer, confidence=sure, **asked)
    workers()
    a_choice()
    assert said in message(InputError, predict, key, answer, confidence=sure)
    assert predictions() == {}


def test_a_page_without_widgets_shows_the_question_and_the_line_that_answers_it():
    with use(Runtime(has_widgets=False)):
        shown = a_number()._repr_mimebundle_()
        assert set(shown) == {"text/html", "text/plain"}
        assert "How busy?" in shown["text/html"]
        assert "<code>predict(&quot;busy&quot;, ANSWER, confidence=SURE)</code>" in shown["text/html"]
        assert "(a number in %)" in shown["text/html"]
        assert "Answer with one of <code>CPU</code>, <code>storage</code>." in a_choice().html()
        predict("busy", 20, confidence=0.5)
        locked = a_number()._repr_mimebundle_()["text/html"]
    assert "ANSWER" not in locked
    assert "You predicted 20 %, 50 % sure" in locked
    assert "application/vnd.jupyter.widget-view+json" in a_number()._repr_mimebundle_()


def test_what_is_to_follow_changes_waits_for_the_page_that_answers_and_for_no_other():
    box, acted = Box("My group", []), []
    box.after_changes(lambda: acted.append("no page"))
    script = box.children[-1].children[0]
    assert script.name == "My group"
    script.answers = True
    box.after_changes(lambda: acted.append("page"))
    assert acted == ["no page"]
    for _window in range(2):  # each that shows the box answers
        script._handle_custom_msg({}, [])
    assert acted == ["no page", "page"]
