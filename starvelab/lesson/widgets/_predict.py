"""Asking for a prediction, in a widget or in code, and locking it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets

from ... import runtime
from ...errors import InputError
from ...host import NOTEBOOKS
from ...prediction_file import FILE_NAME, Prediction
from ...tables import count_of
from ...units import Quantity, unit_name
from .. import notices
from ..notices import say, table
from ..wording import one_line, percent, title, value
from .keyboard import LISTED_CLASS, Box, spoken
from .question import (
    Answer,
    Question,
    Range,
    check_key,
    how_sure,
    known_questions,
    near,
    no_such_question,
    sentence_of,
)
from .store import PredictionStore, StoreResult, now

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
) -> PredictionBox | None:
    """Ask for a prediction, or lock one that is given. A prediction is locked once.

    Parameters
    ----------
    key : str
        Its name, such as "cpu-wall".
    answer : str, number or quantity, optional
        Locks this answer without a widget and says so in one line. If a notebook of the folder asks the
        question, it sets the choices, the unit and the range; otherwise a quantity brings its own unit.
    question : str, optional
        What is asked. An empty line starts a paragraph; ``**bold**`` and backticks work.
    choices : list of str, optional
        What may be chosen. Without choices the answer is a number.
    unit : str, optional
        Unit of the number, such as "img/s", "%" or "ms".
    between : pair of float or None, optional
        The lowest and the highest possible number, None for no limit. By default 0 and 100 for the unit "%",
        and 0 and no limit for others. Nothing else can be locked.
    whole : bool
        True if only a whole number can be locked.
    unchanged : float, optional
        If the number says what a change brings, the value for no change: 1 for "how many times as fast". A
        hit is then near the gain or the loss.
    confidence : float, optional
        How sure you are of the answer that is given, 0 to 1.

    Returns
    -------
    PredictionBox or None
        The widget, or None where an answer was given. A page without widgets shows the question, and the line
        of code that answers it.

    Raises
    ------
    InputError
        If the question cannot be asked, or the answer in code does not fit it, or no question has the key.
    """
    store = PredictionStore()
    is_known = answer is not None and question is choices is unit is None and between is None
    asked = _known(key, store) if is_known else None
    if asked is None:
        unit = _unit_of(answer) if unit is choices is None else unit
        asked = Question(
            key, text=question, choices=choices, unit=unit, between=between, whole=whole, unchanged=unchanged
        )
    if question:
        store.memory.questions[key] = question
    confidence = asked.check_confidence(confidence)
    if answer is None:
        store.memory.asked[key] = asked
        return PredictionBox(asked, store)
    result, mine = _lock(store, asked, answer, confidence)
    locked = result.prediction
    shown = ", ".join(filter(None, [value(locked.answer, locked.unit), how_sure(locked)]))
    where = FILE_NAME if result.problem is None else "memory"
    message = f"Locked {key!r} in {where}: {shown}."
    if not result.is_new:
        message = f"{key!r} was locked on {locked.locked_at[:10]}: {shown}."
    print(*filter(None, (message, _only_once(result, mine), result.problem)))
    store.wake(key)
    return None


def lock_predictions(answers: Mapping[str, Answer], notebooks: Mapping[str, str]) -> float:
    """Lock each answer alone, and show which were rejected and why, and which are missing.

    Parameters
    ----------
    answers : mapping of str to answer
        Predictions by their keys, as `predict` takes them.
    notebooks : mapping of str to str
        Every key that counts, and in which notebook it is asked.

    Returns
    -------
    float
        Share of the predictions that is locked now, here or in a box before, 0 to 1.
    """
    store = PredictionStore()
    known = known_questions(store.folder, store.memory.asked)
    if not notebooks.keys() <= known.keys():  # a notebook that asks is not in this folder
        for assignment in NOTEBOOKS.glob("*"):
            known = known_questions(assignment, known)
    rejected: dict[str, str] = {}
    said, new = [], 0
    if not isinstance(answers, Mapping):
        said.append(f"Answers are given by their keys, got {answers!r:.80}. Return a dict.")
        answers = {}
    for key, answer in answers.items():
        try:
            if key not in notebooks:
                raise InputError(no_such_question(key, notebooks))
            question = known.get(key) or Question(key, unit=_unit_of(answer))
            result, mine = _lock(store, question, answer, None)
        except InputError as error:
            rejected[key] = str(error)
            continue
        store.wake(key)
        new += result.is_new
        if _only_once(result, mine):
            before = value(result.prediction.answer, result.prediction.unit)
            rejected[key] = f"It was locked before, as {before}. That stays."
    locked = store.read().predictions
    missing = {key: "not locked yet" for key in notebooks if key not in locked}
    if answers:
        said.append(f"{count_of(new, 'prediction')} locked here, {len(rejected)} rejected.")
    said.append(f"{len(notebooks) - len(missing)} of {count_of(len(notebooks), 'prediction')} are locked.")
    texts = {key: title(one.text) for key, one in known.items() if one.text}
    rows = [
        [notebooks.get(key, ""), texts.get(key, ""), f"{key!s:.80}", why]
        for key, why in (missing | rejected).items()
    ]
    if rows or len(said) > 1:
        say(" ".join(said))
    if rows:
        table(("notebook", "prediction", "key", "how it stands"), rows)
    return 1 - len(missing) / len(notebooks)


def _unit_of(answer: Answer) -> str | None:
    """The unit that an answer brings to a question that nobody knows."""
    return (unit_name(answer.units) or None) if isinstance(answer, Quantity) else None


def _known(key: str, store: PredictionStore) -> Question | None:
    """The question that a key stands for; None where no question of this folder is known."""
    check_key(key)
    asked = store.memory.asked
    if key in asked:
        return asked[key]
    known = known_questions(store.folder, asked)
    # A notebook may be graded without those that ask.
    if known and key not in known and not runtime.current().is_grading:
        own = "To predict something of your own, pass its question=."
        raise InputError(f"{no_such_question(key, known)} {own}")
    return known.get(key)


def _lock(
    store: PredictionStore, question: Question, answer: Answer, confidence: float | None
) -> tuple[StoreResult, Prediction]:
    """Lock an answer: what is locked now, and the prediction that was to be."""
    answer = question.check_answer(answer)
    is_text = isinstance(answer, str)
    mine = Prediction(
        key=question.key,
        answer=answer,
        unit=None if is_text else question.unit,
        unchanged=None if is_text else question.unchanged,
        confidence=confidence,
        choices=None if question.choices is None else tuple(question.choices),
        question=question.text,
        locked_at=now(),
    )
    return store.lock(mine), mine


def _only_once(result: StoreResult, mine: Prediction) -> str:
    """Say that another answer was locked before; nothing where it was not."""
    if result.is_new or result.prediction.answer == mine.answer:
        return ""
    return f"A prediction is locked once; {value(mine.answer, mine.unit)} does not replace it."


class PredictionBox(Box):
    """The widget of one prediction: `answer`, `confidence`, the `button` that locks, and a `message`."""

    def __init__(self, question: Question, store: PredictionStore) -> None:
        self._question, self._store = question, store
        text = question.text or question.key
        if question.choices:
            about, width = "How sure are you?", "40em"
            self.answer = ipywidgets.RadioButtons(
                options=list(question.choices), value=None, layout={"width": "max-content"}
            )
        else:
            about, width = f"How sure are you that your number is {near(question.unchanged)}?", "56em"
            self.answer = ipywidgets.Text(
                placeholder="a number", description="My answer", style=_WIDE, layout={"width": "16em"},
                continuous_update=False,
            )  # fmt: skip
        low = question.lowest_confidence
        steps = [low, *(step / 20 for step in range(21) if step / 20 > low + 0.01)]
        self.confidence = ipywidgets.SelectionSlider(
            options=[("not said yet", NOT_STATED), *((percent(step), step) for step in steps)],
            value=NOT_STATED, description=about, style=_WIDE, layout={"width": width, "max_width": "100%"},
        )  # fmt: skip
        self.confidence.add_class(LISTED_CLASS)
        self.button = ipywidgets.Button(description="Lock my prediction", layout={"width": "max-content"})
        self.button.on_click(lambda _button: self.after_changes(lambda: self.show_errors(self._lock)))
        self.message = spoken()
        unit = [ipywidgets.Label(question.unit)] if question.unit else []
        answer = ipywidgets.HBox([self.answer, *unit])
        asked = ipywidgets.HTML(notices.paragraphs(text))
        super().__init__(one_line(text), [asked, answer, self.confidence, self.button, self.message])
        contents = store.read()
        if question.key in contents.predictions:
            self._show_locked(contents.predictions[question.key])
        self._note(contents.problem)

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
        return notices.paragraphs("\n\n".join(filter(None, said))) + str(self.message.value)

    @property
    def locked(self) -> bool:
        """True if the prediction can no longer be changed."""
        return bool(self.button.disabled)

    def _lock(self) -> None:
        answer, stated = self.answer.value, self.confidence.value
        if self._question.choices is None:
            answer = self._question.read_number(answer)
        elif answer is None:
            raise InputError("Choose one of the answers first, then lock.")
        confidence = None if stated == NOT_STATED else stated
        result, mine = _lock(self._store, self._question, answer, confidence)
        self._show_locked(result.prediction)
        if once := _only_once(result, mine):
            self._note(f"It was locked before, in another cell or window. {once}")
        self._note(result.problem)
        self._store.wake(mine.key)

    def _note(self, problem: str | None) -> None:
        if problem is not None:
            self.message.value += notices.notice(problem, "Please note")

    def _show_locked(self, locked: Prediction) -> None:
        if self._question.choices is None:
            self.answer.value = value(locked.answer, None)
            self.answer.description = "My answer"
        elif locked.answer in self._question.choices:
            self.answer.value = locked.answer
        if locked.confidence is None:
            self.confidence.layout.display = "none"
        else:
            stated = (option for _, option in self.confidence.options)
            self.confidence.value = min(stated, key=lambda option: abs(option - locked.confidence))
        for control in (self.answer, self.confidence, self.button):
            control.disabled = True
        self.button.description = "Locked"
        self.message.value = notices.notice(f"{sentence_of(locked)} It is locked, and kept in {FILE_NAME}.")
