"""Showing the truth beside a locked prediction, and what follows a miss or a disturbed measurement."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import ipywidgets

from ... import runtime
from ...errors import InputError
from ...prediction_file import Prediction
from ...units import Q_
from .. import notices
from ..wording import number, one_line
from ._evidence import QuietRun, show_disturbed, show_notice, show_object
from ._report import MAX_LESSON, read_notes, save_lesson
from .keyboard import Box, spoken
from .question import WITHIN, Answer, check_key, comparable, is_hit, result_of, sentence_of
from .store import PredictionStore

# What an answer means, and what mistakes would have predicted.
_About: TypeAlias = tuple[str, Mapping[str, Answer]]
LOCK_FIRST = "Lock your prediction above first. Then this cell shows the answer by itself."
SHOWN_TOO = "This, too, is shown when you have locked your prediction above."
RUN_AGAIN = "Lock your prediction above first, then run this cell again."
# So near to the number of a mistake, as a share of it, a prediction may come from it.
MISTAKEN_WITHIN = 0.1


def reveal(
    key: str,
    truth: Answer = None,
    *,
    then: Callable[[], object] | None = None,
    meaning: str = "",
    mistakes: Mapping[str, Answer] | None = None,
    why: Callable[[], Mapping[str, Any]] | Mapping[str, Any] | None = None,
    within: float = WITHIN,
    measured: Answer = None,
    disturbed: str = "",
) -> None:
    """Show `truth` beside the prediction locked under `key`, then call `then`.

    While nothing is locked it shows neither, says what to do, and raises nothing: Run All continues. When the
    prediction is locked in this kernel, what was held back is shown in the same place. Without a truth it
    only holds `then` back.

    Parameters
    ----------
    key : str
        Name of the prediction.
    truth : str, number or quantity, optional
        The answer. A quantity is converted to the unit of the prediction; a plain number is taken to
        be in that unit.
    then : function without arguments, optional
        Prints or displays what follows; what it returns is displayed too.
    meaning : str
        What the answer means, said with it: "So 44 workers, and a host has 16 cores."
    mistakes : mapping of message to answer, optional
        What plausible mistakes predict; after a miss the first that fits, within a tenth, is named first,
        instead of how far off the number was.
    why : function without arguments or mapping, optional
        Returns `meaning` and `mistakes` as a mapping, in place of these two.
    within : float
        How near a number must be to count as a hit, as a share of the truth.
    measured : number or quantity, optional
        The measured value, if the truth is a model's. Whoever predicted this number gets credit for it: the
        score card counts a hit.
    disturbed : str
        What disturbed the measurements behind `truth` and `then`; empty if nothing did. A disturbed
        measurement is not shown, and never becomes the answer. If a quiet run was recorded, the learner may
        choose that instead.
    """
    check_key(key)
    if truth is None and then is None and measured is None:
        raise InputError("A reveal shows a truth, calls `then`, or both; it got neither. Pass one of them.")
    store = PredictionStore()

    def show() -> None:
        prediction, current = store.read().predictions[key], runtime.current()
        spoiled = "" if current.is_grading else disturbed
        if truth is not None and (prediction.revealed or not spoiled):
            # What was disturbed is no news to whoever knows the answer of a quiet run.
            with _problems_shown():
                about: dict[str, Any] = {"meaning": meaning, "mistakes": mistakes or {}}
                if not spoiled:
                    about |= why() if callable(why) else why or {}
                shown = prediction.truth if spoiled else truth
                _show_truth(shown, prediction, store, within, (about["meaning"], about["mistakes"]))
        if measured is not None:
            with _problems_shown():
                _show_measured(measured, prediction, store, within)
        if spoiled:
            said = "" if prediction.revealed else sentence_of(prediction)
            show_disturbed(key, spoiled, said, lambda quiet: _choose(quiet, prediction, store, within))
        elif then is not None and (returned := then()) is not None:
            show_object(returned)
        # What happened is shown before anything is asked.
        if truth is not None and current.has_widgets and not current.is_grading:
            revealed = store.read().predictions[key]
            if revealed.revealed and not revealed.hit:
                show_object(MissBox(key))

    contents = store.read()
    if key in contents.predictions:
        show()
        return
    current = runtime.current()
    # A page without widgets cannot put anything in a place that was shown before.
    follows = current.has_widgets and not current.is_for_nbgrader
    text = LOCK_FIRST if follows else RUN_AGAIN
    text = " ".join(filter(None, (text, store.memory.which(key), contents.problem)))
    if not follows:
        show_notice(text, "Please note")
        return
    frame = inspect.currentframe()
    caller = frame and frame.f_back
    # A cell that runs once more is in the same place, and waits once.
    _hold_back(text, show, key, store, (caller.f_code.co_filename, caller.f_lineno) if caller else None)


def _hold_back(
    text: str, show: Callable[[], None], key: str, store: PredictionStore, place: Hashable
) -> None:
    """Display a text, and in its place what `show` displays, once the prediction is locked."""
    notice = notices.formats(text, "Please note")
    # Said once: others may wait for the same prediction.
    if next(iter(store.memory.waiting.get((store.path, key), {})), place) != place:
        notice = {"text/html": notices.paragraphs(SHOWN_TOO), "text/plain": SHOWN_TOO}
    output = ipywidgets.Output(outputs=({"output_type": "display_data", "data": notice, "metadata": {}},))

    def wake() -> None:
        output.outputs = ()
        with output:
            show()

    # The formats of the text are for whoever reads the saved notebook without widgets.
    show_object(output._repr_mimebundle_() | notice, raw=True)
    store.when_locked(key, wake, place)


@contextmanager
def _problems_shown() -> Iterator[None]:
    """Show a mistake of the notebook, not of the learner, and go on with what was to be shown."""
    try:
        yield
    except InputError as error:
        show_notice(str(error), "Problem")


def _judge(
    truth: Answer, prediction: Prediction, store: PredictionStore, within: float, why: str = ""
) -> tuple[str, str, str | None]:
    """Store a truth: what came of the prediction, the word in front of it, and a problem with the file."""
    value = comparable(truth, prediction)
    result = store.reveal(prediction.key, truth=value, hit=is_hit(prediction, value, within))
    return *result_of(result.prediction, now=value, within=within, why=why), result.problem


def _choose(quiet: QuietRun, prediction: Prediction, store: PredictionStore, within: float) -> str:
    """Make a recorded quiet run the answer, where it has one, and say so in HTML."""
    if quiet.value is None:
        return ""
    truth = Q_(quiet.value, quiet.unit) if quiet.unit else quiet.value
    text, word, problem = _judge(truth, prediction, store, within)
    return notices.notice(" ".join(filter(None, (text, problem))), word)


def _show_truth(
    truth: Answer, prediction: Prediction, store: PredictionStore, within: float, about: _About
) -> None:
    if runtime.current().is_grading:
        # A grader's run measures nothing, and what it finds is no news to the learner: only the old is shown.
        comparable(truth, prediction)
        show_notice(*result_of(prediction, now=prediction.truth, within=within))
        return
    meaning, mistakes = about
    values = ((why, comparable(one, prediction)) for why, one in mistakes.items())
    why = next((why for why, one in values if is_hit(prediction, one, MISTAKEN_WITHIN)), "")
    text, word, problem = _judge(truth, prediction, store, within, why)
    show_notice(" ".join(filter(None, (text, meaning))), word)
    if problem is not None:
        show_notice(problem, "Please note")


def _show_measured(measured: Answer, prediction: Prediction, store: PredictionStore, within: float) -> None:
    """Give credit to whoever predicted what was measured and not what the model says."""
    value = comparable(measured, prediction)
    if isinstance(value, str) or not is_hit(prediction, value, within):
        return
    if not runtime.current().is_grading:
        store.credit(prediction.key, measured=value)
    show_notice(
        f"{number(value, prediction.unit)} were measured: your number is closer to that than the model's. "
        "The score card counts it as a hit.",
        "Credit",
    )


# --- what a miss taught -----------------------------------------------------------------------------------


class MissBox(Box):
    """A field for the `text` of what a miss taught, saved in the lab report when the learner leaves it."""

    def __init__(self, key: str) -> None:
        self._key = key
        question = "What did this teach you?"
        self.text = ipywidgets.Textarea(
            value=read_notes()[1].get(key, ""), description=question, rows=2, continuous_update=False,
            placeholder="One or two sentences, for your lab report", style={"description_width": "initial"},
            layout={"width": "46em", "max_width": "100%"},
        )  # fmt: skip
        self.message = spoken()
        self.text.observe(lambda _change: self.show_errors(self._save), names="value")
        super().__init__(question, [self.text, self.message])

    def _save(self) -> None:
        text = one_line(self.text.value)
        save_lesson(self._key, text)
        kept = "It is" if len(text) <= MAX_LESSON else f"The first {MAX_LESSON} characters are"
        kept += " kept for your lab report."
        self.message.value = notices.notice(kept if text else "Nothing about this miss is saved.")
