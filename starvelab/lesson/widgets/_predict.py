"""Asking for a prediction, in a widget or in code, and locking it once."""

from __future__ import annotations

import os
from collections.abc import Sequence

import ipywidgets

from ... import runtime
from ...errors import InputError
from ...prediction_file import FILE_NAME, Prediction
from ...units import Quantity, unit_name
from . import words
from .keyboard import LISTED_CLASS, Box, spoken
from .known import known_questions, no_such_question
from .memory import KERNEL, Memory
from .question import Answer, Question, Range, check_key, near
from .store import PredictionStore, now

_WIDE = {"description_width": "initial"}
# Where the slider starts. A slider that nobody moved says nothing about how sure somebody is.
NOT_STATED = -1.0


def predict(
    key: str,
    answer: Answer = None,
    *,
    question: str | None = None,
    choices: Sequence[str] | None = None,
    unit: str | None = None,
    between: Range | None = None,
    whole: bool = False,
    unchanged: float | None = None,
    confidence: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    memory: Memory = KERNEL,
) -> PredictionBox | None:
    """Ask for a prediction, or lock one that is given. A prediction is locked once.

    Parameters
    ----------
    key : str
        Its name, such as "cpu-wall".
    answer : str, number or quantity, optional
        Locks this answer without a widget and says so in one line. Where a notebook of the folder asks the
        question, its choices, its unit and its range hold; otherwise a quantity brings its own unit.
    question : str, optional
        What is asked. An empty line starts a paragraph; ``**bold**`` and backticks work.
    choices : list of str, optional
        What may be chosen. Without choices a number is asked for.
    unit : str, optional
        Unit of the number, such as "img/s", "%" or "ms".
    between : pair of float or None, optional
        The least and the most that the number can be, None where there is no end; 0 and 100 for a unit of
        "%", and 0 and no end for all others unless given. Nothing else can be locked.
    whole : bool
        Whether only a whole number can be locked.
    unchanged : float, optional
        Where the number says what a change brings, the value that says "nothing": 1 for "how many times as
        fast". A hit is then near in what is gained or lost.
    confidence : float, optional
        How sure, 0 to 1; in a widget where its slider starts.
    folder : path, optional
        Where ``predictions.json`` stands; the folder the notebook runs in unless given.
    memory : Memory
        What this kernel keeps beside the file.

    Returns
    -------
    PredictionBox or None
        The widget, or None where an answer was given. A page without widgets shows the question, and the line
        of code that answers it.

    Raises
    ------
    InputError
        If the question cannot be asked, or the answer given in code is no answer to it, or to no question.
    """
    store = PredictionStore(folder, memory)
    known = question is choices is unit is None and between is None
    asked = _known(key, store) if answer is not None and known else None
    if asked is None:
        if unit is None and choices is None:
            unit = unit_of(answer)
        asked = Question.ask(
            key,
            text=question,
            choices=choices,
            unit=unit,
            between=between,
            whole=whole,
            unchanged=unchanged,
        )
    if question:
        memory.questions[key] = question
    if answer is None:
        memory.asked[key] = asked
    checked = asked.check_confidence(confidence)
    if answer is None:
        return PredictionBox(asked, store, confidence=checked)
    print(_lock_in_words(store, _prediction(asked, asked.check_answer(answer), checked)))
    store.wake(key)
    return None


def lock_answer(store: PredictionStore, question: Question, answer: Answer) -> tuple[Prediction, bool]:
    """Lock an answer given in code: the prediction that is locked now, and whether this call locked it.

    Raises
    ------
    InputError
        If it is no answer to the question.
    """
    result = store.lock(_prediction(question, question.check_answer(answer), None))
    store.wake(question.key)
    return result.prediction, result.is_new


def unit_of(answer: Answer) -> str | None:
    """The unit that an answer brings to a question that nobody knows."""
    return (unit_name(answer.units) or None) if isinstance(answer, Quantity) else None


def _known(key: str, store: PredictionStore) -> Question | None:
    """The question that a key stands for; None where no question of this folder is known."""
    check_key(key)
    if key in store.memory.asked:
        return store.memory.asked[key]
    known = known_questions(store.folder, store.memory)
    # A notebook may be graded without those that ask.
    if known and key not in known and not runtime.current().is_grading:
        own = "To predict something of your own, pass its question=."
        raise InputError(f"{no_such_question(key, known)} {own}")
    return known.get(key)


def _prediction(question: Question, answer: str | float, confidence: float | None) -> Prediction:
    return Prediction(
        key=question.key,
        answer=answer,
        unit=None if isinstance(answer, str) else question.unit,
        unchanged=None if isinstance(answer, str) else question.unchanged,
        confidence=confidence,
        choices=question.choices,
        question=question.text,
        locked_at=now(),
    )


def _lock_in_words(store: PredictionStore, mine: Prediction) -> str:
    """Lock a prediction, and say what is locked now, and where."""
    result = store.lock(mine)
    locked = result.prediction
    answer = ", ".join(filter(None, [words.value(locked.answer, locked.unit), words.confidence(locked)]))
    if result.is_new:
        where = os.path.relpath(store.path) if result.problem is None else "memory"
        message = f"Locked {mine.key!r} in {where}: {answer}."
    else:
        message = f"{mine.key!r} was locked on {words.timestamp(locked.locked_at)}: {answer}."
        if locked.answer != mine.answer:
            message += f" {_only_once(mine)}"
    return message if result.problem is None else f"{message} {result.problem}"


def _only_once(mine: Prediction) -> str:
    return f"A prediction is locked once; {words.value(mine.answer, mine.unit)} does not replace it."


class PredictionBox(Box):
    """The widget of one prediction: the question, an answer, how sure, and a button that locks.

    Attributes
    ----------
    answer : RadioButtons or Text
        The choices, or the field for a number.
    confidence : SelectionSlider
        How sure, from guessing to certain; `NOT_STATED` until it is moved.
    button : Button
        Locks.
    message : HTML
        What was locked, or what is missing.
    """

    def __init__(
        self, question: Question, store: PredictionStore, *, confidence: float | None = None
    ) -> None:
        self._question = question
        self._store = store
        title = question.text or question.key
        self.answer = _choice_field(question.choices) if question.choices else _number_field()
        self.confidence = _confidence_slider(question, confidence)
        self.button = ipywidgets.Button(description="Lock my prediction", layout={"width": "max-content"})
        self.button.on_click(self._clicked)
        self.message = spoken()
        answer_row = [self.answer]
        if question.unit:
            answer_row.append(ipywidgets.Label(question.unit))
        super().__init__(
            words.one_line(title),
            [
                ipywidgets.HTML(words.paragraphs(title)),
                ipywidgets.HBox(answer_row),
                self.confidence,
                self.button,
                self.message,
            ],
        )
        contents = store.read()
        if question.key in contents.predictions:
            self._show_locked(contents.predictions[question.key])
        if contents.problem is not None:
            self.message.value += words.notice(contents.problem, "Please note")

    def html(self) -> str:
        """The question, and how it is answered in code, for a page that shows no widgets."""
        question = self._question
        choices = ", ".join(f"`{choice}`" for choice in question.choices or ())
        said = [question.text or question.key, f"Answer with one of {choices}." if choices else ""]
        if not self.locked:
            answer = f"a number in {question.unit}" if question.unit else "a number"
            said.append(
                "**This page shows no boxes.** Write a code cell with your answer in place of ANSWER "
                f"({'a text' if choices else answer}), and how sure you are, 0 to 1, in place of SURE: "
                f'`predict("{question.key}", ANSWER, confidence=SURE)`. Run this cell and the rest again.'
            )
        return words.paragraphs("\n\n".join(filter(None, said))) + str(self.message.value)

    @property
    def locked(self) -> bool:
        """Whether the prediction can no longer be changed."""
        return bool(self.button.disabled)

    def _clicked(self, _button: ipywidgets.Button) -> None:
        self.after_changes(self._try_to_lock)

    def _try_to_lock(self) -> None:
        # Nothing raised in a callback reaches the page: every error has to be shown in the widget.
        try:
            self._lock()
        except InputError as error:
            self.message.value = words.notice(error, "Please note")
        except Exception as error:
            self.message.value = words.notice(f"{type(error).__name__}: {error}", "Problem")

    def _lock(self) -> None:
        stated = self.confidence.value
        confidence = None if stated == NOT_STATED else stated
        mine = _prediction(self._question, self._read_answer(), confidence)
        result = self._store.lock(mine)
        self._show_locked(result.prediction)
        if not result.is_new and result.prediction.answer != mine.answer:
            message = f"It was locked before, in another cell or window. {_only_once(mine)}"
            self.message.value += words.notice(message, "Please note")
        if result.problem is not None:
            self.message.value += words.notice(result.problem, "Please note")
        self._store.wake(mine.key)

    def _read_answer(self) -> str | float:
        if self._question.choices is None:
            return self._question.read_number(self.answer.value)
        if self.answer.value is None:
            raise InputError("Choose one of the answers first, then lock.")
        return self._question.check_answer(self.answer.value)

    def _show_locked(self, locked: Prediction) -> None:
        if self._question.choices is None:
            self.answer.value = words.value(locked.answer, None)
            self.answer.description = "My answer"
        elif locked.answer in self._question.choices:
            self.answer.value = locked.answer
        if locked.confidence is None:
            self.confidence.layout.display = "none"
        else:
            self.confidence.value = min(
                self.confidence.options, key=lambda option: abs(option[1] - locked.confidence)
            )[1]
        for control in (self.answer, self.confidence, self.button):
            control.disabled = True
        self.button.description = "Locked"
        self.message.value = words.notice(
            f"{words.prediction(locked)} It is locked, and kept in {FILE_NAME}."
        )


def _choice_field(choices: Sequence[str]) -> ipywidgets.RadioButtons:
    return ipywidgets.RadioButtons(options=list(choices), value=None, layout={"width": "max-content"})


def _number_field() -> ipywidgets.Text:
    return ipywidgets.Text(
        placeholder="a number",
        description="My answer",
        style=_WIDE,
        layout={"width": "16em"},
        continuous_update=False,
    )


def _confidence_slider(question: Question, start: float | None) -> ipywidgets.SelectionSlider:
    low = question.lowest_confidence
    steps = [low, *(step / 20 for step in range(21) if step / 20 > low + 0.01)]
    about = "How sure are you?" if question.choices else f"How sure are you to be {near(question.unchanged)}?"
    slider = ipywidgets.SelectionSlider(
        options=[("not said yet", NOT_STATED), *((words.percent(step), step) for step in steps)],
        value=NOT_STATED if start is None else min(steps, key=lambda step: abs(step - start)),
        description=about,
        style=_WIDE,
        layout={"width": "40em" if question.choices else "56em", "max_width": "100%"},
    )
    slider.add_class(LISTED_CLASS)
    return slider
