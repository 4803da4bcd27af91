"""The score card: what was predicted, what came true, and whether the learner was as sure as they were right.

A prediction counts for having been made. Being wrong costs nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from ...tables import to_text
from ..outcomes import HEADERS, Outcomes
from . import words
from .known import known_questions
from .memory import KERNEL, Memory
from .store import PredictionStore


@dataclass(frozen=True)
class ScoreCard(Outcomes):
    """Predictions beside the truth; shows itself as a table in a notebook and as text elsewhere.

    Attributes
    ----------
    predictions : tuple of Prediction
        Every prediction, in the order it was locked.
    problem : str or None
        In words, what could not be read.
    """

    problem: str | None = None

    def sentences(self) -> list[str]:
        """What the card says beneath its table."""
        return [*super().sentences(), *filter(None, [self.problem])]

    def _repr_html_(self) -> str:
        body = words.left_aligned(words.table(HEADERS, self.rows())) if self.predictions else ""
        return body + "".join(f"<p>{words.escape(sentence)}</p>" for sentence in self.sentences())

    def __repr__(self) -> str:
        table = [to_text(HEADERS, self.rows()), ""] if self.predictions else []
        return "\n".join([*table, *self.sentences()])


def scorecard(folder: str | os.PathLike[str] | None = None, *, memory: Memory = KERNEL) -> ScoreCard:
    """The score card of one folder.

    Parameters
    ----------
    folder : path, optional
        Where ``predictions.json`` stands; the folder the notebook runs in unless given.
    memory : Memory
        What this kernel keeps beside the file.

    Returns
    -------
    ScoreCard
        Shows itself when it ends a cell.
    """
    store = PredictionStore(folder, memory)
    contents = store.read()
    predictions = sorted(contents.predictions.values(), key=lambda one: one.locked_at)
    if any(one.question is None for one in predictions):
        # Nobody sees keys: who locked it in code, before a notebook was there, is shown what it asks.
        known = known_questions(store.folder, memory)
        texts = {key: question.text for key, question in known.items()}
        predictions = [
            one if one.question else replace(one, question=texts.get(one.key)) for one in predictions
        ]
    return ScoreCard(tuple(predictions), contents.problem)
