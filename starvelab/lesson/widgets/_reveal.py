"""Showing the truth beside a prediction, once it is locked."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Hashable
from types import FrameType

import ipywidgets
from IPython.display import display

from ... import runtime
from ...errors import InputError
from ...prediction_file import Prediction
from . import words
from .judging import comparable, is_hit, result_in_words
from .memory import KERNEL, Memory
from .misses import MissBox
from .question import WITHIN, Answer, check_key
from .quiet_runs import QuietRunOffer, recorded_run
from .store import PredictionStore

LOCK_FIRST = "Lock your prediction above first. Then this cell shows the answer by itself."
RUN_AGAIN = "Lock your prediction above first, then run this cell again."
NOT_COUNTED = (
    "This measurement was disturbed ({}), so it does not become the answer. Close what else runs on this "
    "machine, run the measuring cell again, and then this one."
)


def reveal(
    key: str,
    truth: Answer = None,
    *,
    then: Callable[[], object] | None = None,
    within: float = WITHIN,
    measured: Answer = None,
    disturbed: str = "",
    folder: str | os.PathLike[str] | None = None,
    memory: Memory = KERNEL,
) -> None:
    """Show `truth` beside the prediction locked under `key`, then call `then`.

    While nothing is locked it shows neither, says what to do, and raises nothing: Run All gets through. When
    the prediction is locked in this kernel, what was held back is shown in the same place. Without a truth it
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
    within : float
        How near a number must be to count as a hit, as a share of the truth.
    measured : number or quantity, optional
        What was measured, where the truth is what a model says. Whoever predicted this number gets credit for
        it: the score card counts a hit.
    disturbed : str
        What disturbed the measurement that `truth` comes from; empty if nothing did. A disturbed measurement
        is shown by `then`, and never becomes the answer. Where a quiet run of it was recorded, the learner
        may choose that in its place.
    folder : path, optional
        Where ``predictions.json`` stands; the folder the notebook runs in unless given.
    memory : Memory
        What this kernel keeps beside the file.
    """
    check_key(key)
    if truth is None and then is None and measured is None:
        raise InputError("A reveal shows a truth, calls `then`, or both; it got neither. Pass one of them.")
    store = PredictionStore(folder, memory)

    def show() -> None:
        prediction = store.read().predictions[key]
        if truth is not None and disturbed and not prediction.revealed and not runtime.current().is_grading:
            _show(f"{words.prediction(prediction)} {NOT_COUNTED.format(disturbed)}", "Please note")
            if (quiet := recorded_run(key)) is not None:
                display(QuietRunOffer(prediction, quiet, store, within))  # type: ignore[no-untyped-call]
        elif truth is not None:
            # What was disturbed is no news to whoever knows the answer of a quiet run.
            _show_truth(prediction.truth if disturbed else truth, prediction, store, within)
        if measured is not None:
            _show_measured(measured, prediction, store, within)
        if truth is not None:
            _ask_about_miss(store.read().predictions[key], store)
        if then is not None:
            returned = then()
            if returned is not None:
                display(returned)  # type: ignore[no-untyped-call]

    contents = store.read()
    if key in contents.predictions:
        show()
        return
    current = runtime.current()
    # A page without widgets cannot put anything in a place that was shown before.
    follows = current.has_widgets and not (current.is_grading or current.is_validating)
    text = LOCK_FIRST if follows else RUN_AGAIN
    text = " ".join(filter(None, (text, memory.which(key), contents.problem)))
    if follows:
        _hold_back(text, show, key, store, _place(inspect.currentframe()))
    else:
        _show(text, "Please note")


def _hold_back(
    text: str, show: Callable[[], None], key: str, store: PredictionStore, place: Hashable
) -> None:
    """Display a text, and in its place what `show` displays, once the prediction is locked."""
    notice = words.formats(text, "Please note")
    output = ipywidgets.Output(outputs=({"output_type": "display_data", "data": notice, "metadata": {}},))

    def wake() -> None:
        output.outputs = ()
        with output:
            show()

    # The formats of the text are for whoever reads the saved notebook without widgets.
    display(output._repr_mimebundle_() | notice, raw=True)  # type: ignore[no-untyped-call]
    store.when_locked(key, wake, place)


def _place(frame: FrameType | None) -> Hashable:
    """Where `reveal` was called: a cell that runs once more is in the same place, and waits once."""
    caller = frame and frame.f_back
    return (caller.f_code.co_filename, caller.f_lineno) if caller else None


def _show_truth(truth: Answer, prediction: Prediction, store: PredictionStore, within: float) -> None:
    try:
        value = comparable(truth, prediction)
    except InputError as error:
        # A mistake of the notebook, not of the learner: say it, and go on with what was to be shown.
        _show(str(error), "Problem")
        return
    if runtime.current().is_grading:
        # A grader's run measures nothing, and what it finds is no news to the learner: only the old is shown.
        _show(*result_in_words(prediction, now=prediction.truth, within=within))
        return
    result = store.reveal(prediction.key, truth=value, hit=is_hit(prediction, value, within))
    _show(*result_in_words(result.prediction, now=value, within=within))
    if result.problem is not None:
        _show(result.problem, "Please note")


def _show_measured(measured: Answer, prediction: Prediction, store: PredictionStore, within: float) -> None:
    """Give credit to whoever predicted what was measured and not what the model says."""
    try:
        value = comparable(measured, prediction)
    except InputError as error:
        _show(str(error), "Problem")
        return
    if isinstance(value, str) or not is_hit(prediction, value, within):
        return
    if not runtime.current().is_grading:
        store.credit(prediction.key, measured=value)
    _show(
        f"{words.prediction(prediction)} {words.number(value, prediction.unit)} were measured: your number "
        "is closer to that than the model's. The score card counts it as a hit.",
        "Credit",
    )


def _ask_about_miss(prediction: Prediction, store: PredictionStore) -> None:
    current = runtime.current()
    if prediction.revealed and not prediction.hit and current.has_widgets and not current.is_grading:
        display(MissBox(prediction.key, store.folder))  # type: ignore[no-untyped-call]


def _show(text: str, word: str) -> None:
    display(words.formats(text, word), raw=True)  # type: ignore[no-untyped-call]
