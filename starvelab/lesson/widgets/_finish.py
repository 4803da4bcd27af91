"""The end of an exercise for somebody who learns alone: a final answer is checked with new values."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ... import runtime
from ...prediction_file import Prediction
from ...tables import points
from ..checks import Answer, Credit
from ..endings import ending_of
from ..exercises import FINAL, NOT_ANSWERED, digest
from . import words
from .store import PredictionStore, now

GRADED = "It is for somebody who learns alone. This notebook is being graded, and hidden checks decide."
OPEN = "There is nothing to finish yet: write your answer, run its cell, and then this one."
ASK = (
    "Do you learn alone, and is your answer final? With final=True you see what hidden checks say, "
    "and your report says that you did."
)
ASKED = "__finish_asked_at__"  # a name of the notebook's, so that another notebook asks again
CHANGED = "You have changed your answer since it was final, and your report says so."


@dataclass(frozen=True, repr=False)
class Finished(words.Sentences):
    """What somebody hears at the end of an exercise."""

    said: tuple[str, ...]

    def sentences(self) -> list[str]:
        """Say what came of it, or what to do first."""
        return list(self.said)


def finish(key: str, answer: Callable[..., Answer], *, final: bool = False) -> Finished | None:
    """Finish an exercise: lock the answer as final, check it with new values, and tell what was hidden.

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
    Finished or None
        Shows itself when it ends a cell. None where the answer is not final, and is not written or is graded,
        or the notebook has asked already.

    Raises
    ------
    UnknownNameError
        If there is no such exercise, or another function answers it.
    """
    if runtime.current().is_grading:
        return Finished((GRADED,)) if final else None
    ending = ending_of(key, answer)
    source = "".join(linecache.getlines(answer.__code__.co_filename))
    if NOT_ANSWERED in source:
        # Else the check above says so already.
        return Finished((OPEN,)) if final else None
    store = PredictionStore()
    locked = store.get(FINAL + key)
    if locked is None and not final:
        return Finished((ASK,)) if answer.__globals__.setdefault(ASKED, key) == key else None
    mine, problem = digest(source, store.folder), None
    if locked is None:
        stored = store.lock(Prediction(key=FINAL + key, answer=mine, locked_at=now()))
        locked, problem = stored.prediction, stored.problem
    credit = Credit(ending.points)
    told = ending.check(credit, answer, Random())
    changed = CHANGED if locked.answer != mine else ""
    earned = f"{points(credit.total())} of the {points(ending.points)} points that hidden checks give"
    return Finished(tuple(filter(None, (f"{earned}, with new values.", *told, changed, problem))))
