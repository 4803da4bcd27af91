"""The end of an exercise for somebody who learns alone: a final answer is checked with new figures."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ... import runtime
from ...errors import check_names
from ...prediction_file import Prediction
from ...tables import points
from ..checks import Answer, Credit
from ..endings import ENDINGS
from ..exercises import FINAL, NOT_ANSWERED, digest
from . import words
from .store import PredictionStore, now

GRADED = "It is for somebody who learns alone. This notebook is being graded, and hidden checks decide."
OPEN = "There is nothing to finish yet: write your answer, run its cell, and then this one."
ASK = (
    "Do you learn alone, and is your answer final? Then write final=True here, and run this cell: you hear "
    "what hidden checks say, with figures that are drawn for you. Your report will say so."
)
CHANGED = "You have changed your answer since it was final, and your report says so."


@dataclass(frozen=True, repr=False)
class Finished(words.Sentences):
    """What somebody hears at the end of an exercise."""

    said: tuple[str, ...]

    def sentences(self) -> list[str]:
        """Say what came of it, or what to do first."""
        return list(self.said)


def finish(key: str, answer: Callable[..., Answer], *, final: bool = False) -> Finished:
    """Finish an exercise: lock the answer as final, check it with new figures, and tell what was hidden.

    Parameters
    ----------
    key : str
        The exercise, by the id of its answer.
    answer : function
        Your answer.
    final : bool
        True says that the answer is final; until then nothing is checked.

    Returns
    -------
    Finished
        Shows itself when it ends a cell.

    Raises
    ------
    UnknownNameError
        If there is no such exercise.
    """
    check_names([key], ENDINGS, "finish", kind="exercise")
    if runtime.current().is_grading:
        return Finished((GRADED,))
    source = "".join(linecache.getlines(answer.__code__.co_filename))
    if NOT_ANSWERED in source:
        return Finished((OPEN,))
    store = PredictionStore()
    locked = store.get(FINAL + key)
    if locked is None and not final:
        return Finished((ASK,))
    mine, problem = digest(source, store.folder), None
    if locked is None:
        stored = store.lock(Prediction(key=FINAL + key, answer=mine, locked_at=now()))
        locked, problem = stored.prediction, stored.problem
    most, check_ending = ENDINGS[key]
    credit = Credit(most)
    told = check_ending(credit, answer, Random())
    changed = CHANGED if locked.answer != mine else ""
    earned = f"{points(credit.earned)} of the {most} points that hidden checks give, with new figures."
    return Finished(tuple(filter(None, (earned, *told, changed, problem))))
