"""How far a learner is in the notebook that runs, and the score card: what was predicted and came true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ... import runtime, tables
from ...prediction_file import Prediction
from ...tables import count_of
from ..exercises import FINAL, Exercise, read_exercises, read_questions
from ..notices import Sentences
from ..outcomes import HEADERS, Outcomes
from ..show.factors import CROSS, DISC, draw_factors
from ..wording import title
from .cells import LOG
from .question import known_questions
from .store import PredictionStore

NO_NOTEBOOK = (
    "Progress is read from the notebook's file, and no notebook in this folder has the cells that were run. "
    "Save this notebook, run its first cell, and then this one."
)
GRADED = "Progress is for whoever works on the notebook. It is being graded."


@dataclass(frozen=True, repr=False)
class Progress(Sentences):
    """The exercises and predictions of one notebook; shows itself as a table, and as text outside of one.

    Exercises that are `done` (nothing is left to do that the learner could see) or `wrong` (the check found
    nothing right in its last run) are named by their sources, and questions by their keys. Where an answer is
    final, hidden checks decide, too.
    """

    exercises: tuple[Exercise, ...] = ()
    points: tuple[float, ...] = ()  # what the check of each found in its last run
    done: frozenset[str] = frozenset()
    wrong: frozenset[str] = frozenset()
    locked: Mapping[str, str] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    finished: frozenset[str] = frozenset()  # the ids of answers that are final
    rejected: frozenset[str] = frozenset()  # and of those that a hidden check rejects
    problem: str = ""  # why there is nothing to show

    HEADERS = ("exercise", "points so far", "how it stands")

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
        if exercise.answer_id in self.rejected:
            return "final, and a hidden check rejects it"
        if exercise.source in self.done:
            if exercise.points == earned:
                return "done"
            hidden = exercise.points - exercise.visible_points
            return f"done; hidden checks decide {tables.points(hidden)} more" if hidden else "done"
        if earned:
            return "begun: a part is right"
        return "tried, not right yet" if exercise.source in self.wrong else "open"

    def sentences(self) -> list[str]:
        """Say what stands beneath the table; the last sentence says how to go on."""
        if self.problem:
            return [self.problem]
        checked = [
            (one, got) for one, got in zip(self.exercises, self.points, strict=True) if not one.is_essay
        ]
        essays = [one for one in self.exercises if one.is_essay]
        done = sum(one.source in self.done for one, _ in checked)
        earned = sum(min(got, one.visible_points) for one, got in checked)
        visible = sum(one.visible_points for one, _ in checked)
        hidden = sum(one.points for one, _ in checked) - visible
        by_person = sum(one.points for one in essays)
        more = f", and decide {tables.points(hidden)} more" if hidden else ""
        found = [
            f"{done} of {count_of(len(checked), 'exercise')} done, with {tables.points(earned)} of the "
            f"{tables.points(visible)} points of the checks that you can see. "
            f"Hidden checks look at each answer once more when it is graded{more}."
            f"{f' A person decides {tables.points(by_person)}.' if by_person else ''}"
        ]
        unwritten = sum(not one.is_written for one in essays)
        if unwritten:
            found.append(
                f"{count_of(unwritten, 'explanation')} to be written, as the notebook was last saved."
            )
        last = self._next()
        if self.locked or self.open:
            still = " ".join(text for text in self.open.values() if text not in last)
            asked = count_of(len(self.locked) + len(self.open), "prediction")
            now = f"Locked when this cell ran: {len(self.locked)} of {asked}."
            found.append(f"{now} Still open: {still}" if still else now)
        return [*found, last]

    def _next(self) -> str:
        """Say how to go on."""
        left = [one for one in self.exercises if one.source not in self.done]
        begin = "Go on with" if len(left) < len(self.exercises) or self.locked else "Begin with"
        asked_before = [self.open[key] for key in left[0].asked_before if key in self.open] if left else []
        if asked_before:
            return f'{begin} the prediction that asks: "{asked_before[0]}"'
        if left:
            return f"{begin} {left[0].name}"
        if self.open:
            return "Every exercise is done. Go on with what is open: lock it in its box above."
        silent = [one for one in self.exercises if one.can_finish and one.answer_id not in self.finished]
        if silent:
            done = "Every exercise is done. If you learn alone, write final=True in the call of finish below"
            return f"{done} {silent[0].name}"
        return "Nothing is left to do in this notebook."

    def _repr_html_(self) -> str:
        before, _, last = super()._repr_html_().rpartition("<p>")
        return f"{before}<p><strong>{last.removesuffix('</p>')}</strong></p>"


def progress() -> Progress:
    """Show how far the notebook that runs is: exercises, points by visible checks, explanations, predictions.

    What was done before the last start of the kernel counts again once its cells have run.

    Returns
    -------
    Progress
        Shows itself when it ends a cell.
    """
    if runtime.current().is_grading:
        return Progress(problem=GRADED)
    path = LOG.notebook()
    exercises = () if path is None else read_exercises(path)
    if path is None or not exercises:
        return Progress(problem=NO_NOTEBOOK)
    store = PredictionStore()
    locked = store.read().predictions
    texts = {key: asked["question"] for key, asked in read_questions(path).items()} | store.memory.questions
    asked = {key: title(text) for key, text in texts.items()}
    finished = store.memory.finished
    rejected = frozenset(key for key, (earned, most) in finished.items() if earned < most)
    done = (one for one in exercises if one.is_done(LOG.earned.get(one.source)))
    return Progress(
        exercises,
        tuple(one.points_when_final(LOG.points(one), finished.get(one.answer_id)) for one in exercises),
        frozenset(one.source for one in done if one.answer_id not in rejected),
        frozenset(one.source for one in exercises if LOG.is_wrong(one)),
        {key: text for key, text in asked.items() if key in locked},
        {key: text for key, text in asked.items() if key not in locked},
        frozenset(key.removeprefix(FINAL) for key in locked if key.startswith(FINAL)),
        rejected,
    )


@dataclass(frozen=True, repr=False)
class ScoreCard(Outcomes, Sentences):
    """Predictions beside the truth, and in words what could not be read; shows itself as a table."""

    problem: str | None = None

    HEADERS = HEADERS

    def sentences(self) -> list[str]:
        """Say what stands beneath the table."""
        return [*super().sentences(), *filter(None, [self.problem])]


def scorecard() -> ScoreCard:
    """Return the score card of the folder that the notebook runs in; it shows itself when it ends a cell."""
    store = PredictionStore()
    contents = store.read()
    asked = (one for key, one in contents.predictions.items() if not key.startswith(FINAL))
    predictions = sorted(asked, key=lambda one: one.locked_at)
    if any(one.question is None for one in predictions):
        # Nobody sees keys: who locked it in code, before a notebook was there, is shown what it asks.
        known = known_questions(store.folder, store.memory.asked)
        texts = {key: question.text for key, question in known.items()}
        predictions = [
            one if one.question else replace(one, question=texts.get(one.key)) for one in predictions
        ]
    return ScoreCard(tuple(predictions), contents.problem)


def draw_numbers(predictions: Sequence[Prediction]) -> str:
    """Draw each predicted number as a factor of its truth, by its row in the table; empty for none."""
    rows = [
        (number, {"hit" if one.hit else "miss": float(one.answer) / float(one.truth)})
        for number, one in enumerate(predictions, start=1)
        if isinstance(one.answer, int | float) and isinstance(one.truth, int | float) and one.truth
    ]
    words = "; ".join(
        f"prediction {number}: {factor:.2g} times the answer, a {kind}"
        for number, factors in rows
        for kind, factor in factors.items()
    )
    title = "Predicted numbers beside the answers"
    marks = {"hit": DISC, "miss": CROSS}
    return draw_factors(rows, marks, truth="the answer", title=title, description=f"{words}.") if rows else ""
