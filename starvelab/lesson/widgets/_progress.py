"""How far a learner is in the notebook that runs: by title, from the checks that they can see."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from ... import runtime, tables
from ...tables import to_text
from ..exercises import Exercise, read_exercises, read_questions
from ..outcomes import count_of
from . import words
from .cells import LOG, CellLog
from .memory import KERNEL, Memory
from .store import PredictionStore

NO_NOTEBOOK = (
    "Progress is read from the notebook's file, and no notebook in this folder has the cells that were run. "
    "Save this notebook, run its first cell, and then this one."
)
GRADED = "Progress is for whoever works on the notebook. It is being graded."


@dataclass(frozen=True)
class Progress:
    """The exercises and predictions of one notebook; shows itself as a table, and as text outside of one.

    Attributes
    ----------
    exercises : tuple of Exercise
        In the order of the notebook.
    points : tuple of float
        What the visible check of each found in its last run.
    done : frozenset of str
        The exercises, by their sources, in which nothing is left to do that the learner could see.
    wrong : frozenset of str
        The checks, by their sources, that found nothing right in their last run.
    locked, open : dict of str to str
        The questions of the notebook, by their keys: with a locked prediction, and without.
    problem : str
        Why there is nothing to show; empty if there is something.
    """

    exercises: tuple[Exercise, ...] = ()
    points: tuple[float, ...] = ()
    done: frozenset[str] = frozenset()
    wrong: frozenset[str] = frozenset()
    locked: Mapping[str, str] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    def rows(self) -> list[list[str]]:
        """The table's rows: the exercise, its points so far, and how it stands."""
        return [
            [
                one.title,
                f"of {one.points:g}" if one.is_essay else f"{tables.points(got)} of {one.points:g}",
                self._state(one, got),
            ]
            for one, got in zip(self.exercises, self.points, strict=True)
        ]

    def _state(self, exercise: Exercise, earned: float) -> str:
        if exercise.is_essay:
            return "written, for a person to read" if exercise.is_written else "open"
        if exercise.source in self.done:
            if exercise.only_names_mistakes:
                return "no known mistake; hidden checks decide it"
            hidden = exercise.points - exercise.visible_points
            return f"done; hidden checks decide {tables.points(hidden)} more" if hidden else "done"
        if earned:
            return "begun: a part is right"
        return "tried, not right yet" if exercise.source in self.wrong else "open"

    def sentences(self) -> list[str]:
        """What stands beneath the table; the last sentence says how to go on."""
        if self.problem:
            return [self.problem]
        pairs = list(zip(self.exercises, self.points, strict=True))
        checked = [(one, got) for one, got in pairs if not one.is_essay]
        essays = [one for one, _ in pairs if one.is_essay]
        done = sum(one.source in self.done for one, _ in checked)
        earned, visible = sum(got for _, got in checked), sum(one.visible_points for one, _ in checked)
        hidden = sum(one.points for one, _ in checked) - visible
        by_person = sum(one.points for one in essays)
        more = f", and decide {tables.points(hidden)} more" if hidden else ""
        found = [
            f"{done} of {count_of(len(checked), 'exercise')} done, with {tables.points(earned)} of the "
            f"{tables.points(visible)} points that the checks you can see give. "
            f"Hidden checks look at each answer once more when it is graded{more}."
            f"{f' A person decides {tables.points(by_person)}.' if by_person else ''}"
        ]
        unwritten = sum(not one.is_written for one in essays)
        if unwritten:
            found.append(
                f"{count_of(unwritten, 'explanation')} to be written, as the notebook was last saved."
            )
        if self.locked or self.open:
            still = f" Still open: {' '.join(self.open.values())}" if self.open else ""
            asked = len(self.locked) + len(self.open)
            found.append(f"{len(self.locked)} of {count_of(asked, 'prediction')} locked.{still}")
        left = [one for one in self.exercises if one.source not in self.done]
        begin = "Go on with" if len(left) < len(pairs) or self.locked else "Begin with"
        asked_before = [self.open[key] for key in left[0].asked_before if key in self.open] if left else []
        if asked_before:
            found.append(f'{begin} the prediction that asks: "{asked_before[0]}"')
        elif left:
            found.append(f"{begin} {left[0].name}")
        elif self.open:
            found.append("Every exercise is done. Go on with what is open: lock it in its box above.")
        else:
            found.append("Nothing is left to do in this notebook.")
        return found

    def _repr_html_(self) -> str:
        body = words.left_aligned(words.table(_HEADERS, self.rows())) if self.exercises else ""
        *before, last = (words.escape(sentence) for sentence in self.sentences())
        return body + "".join(f"<p>{sentence}</p>" for sentence in before) + f"<p><strong>{last}</strong></p>"

    def __repr__(self) -> str:
        table = [to_text(_HEADERS, self.rows()), ""] if self.exercises else []
        return "\n".join([*table, *self.sentences()])


_HEADERS = ["exercise", "points so far", "how it stands"]


def progress(
    folder: str | os.PathLike[str] | None = None, *, log: CellLog = LOG, memory: Memory = KERNEL
) -> Progress:
    """How far the notebook that runs is: exercises, points by visible checks, explanations, predictions.

    Parameters
    ----------
    folder : path, optional
        Where the notebook and its ``predictions.json`` stand; the folder it runs in unless given.
    log : CellLog
        What ran in this kernel. What was done before its last start counts again once its cells have run.
    memory : Memory
        What this kernel keeps beside the file.

    Returns
    -------
    Progress
        Shows itself when it ends a cell.
    """
    if runtime.current().is_grading:
        return Progress(problem=GRADED)
    path = log.notebook(folder)
    exercises = () if path is None else read_exercises(path)
    if path is None or not exercises:
        return Progress(problem=NO_NOTEBOOK)
    locked = PredictionStore(folder, memory).read().predictions
    texts = {key: asked["question"] for key, asked in read_questions(path).items()} | memory.questions
    asked = {key: words.title(text) for key, text in texts.items()}
    return Progress(
        exercises,
        tuple(log.points(one) for one in exercises),
        frozenset(one.source for one in exercises if one.is_done(log.earned.get(one.source))),
        frozenset(one.source for one in exercises if log.is_wrong(one)),
        {key: text for key, text in asked.items() if key in locked},
        {key: text for key, text in asked.items() if key not in locked},
    )
