"""The lab's own sections of the report of a class: how sure students were, and how often right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ..prediction_file import Prediction, read_file
from .calibration import RatedAnswers, by_confidence, draw_calibration, rated
from .outcomes import Outcomes
from .wording import percent

MAX_QUESTIONS, MAX_KEY = 100, 80  # of a class; of characters, the second


class ReportedStudent(Protocol):
    """A student, as the grader tells of one."""

    folder: Path  # of the graded notebooks, and of what came with them


def sections(members: Sequence[ReportedStudent]) -> Iterator[dict[str, object]]:
    """Yield the sections of the report, each a table and perhaps a picture in HTML."""
    predictions = [
        prediction for member in members for prediction in read_file(member.folder).predictions.values()
    ]
    headers = ["confidence", "predictions", "sure on average", "came true"]
    outcomes = Outcomes(tuple(predictions))
    groups, picture = by_confidence(outcomes.rated), ""
    if (whole := outcomes.group) is not None:
        came_true = f"Of {whole.number} predictions {percent(whole.right)} came true, and their students were"
        caption = f"<figcaption>{came_true} {percent(whole.sure)} sure on average.</figcaption>"
        picture = f"<figure>{draw_calibration(groups)}{caption}</figure>"
    yield {
        "name": "calibration",
        "title": "Predictions",
        "about": "How sure the students were of their predictions, and how many of these came true.",
        "headers": headers,
        "rows": _rows(groups),
        "figure": picture,
    }
    groups = by_question(predictions)
    about = "The same by question: teach again what the class was sure of and had wrong."
    if len(groups) == MAX_QUESTIONS:
        about += f" These are the {MAX_QUESTIONS} that most students answered; the files may hold more."
    yield {
        "name": "questions",
        "title": "Predictions by question",
        "about": about,
        "headers": ["prediction", "students", *headers[2:]],
        "rows": _rows(groups),
    }


def _rows(groups: Iterable[RatedAnswers]) -> list[list[object]]:
    return [[group.what, group.number, round(group.sure, 3), round(group.right, 3)] for group in groups]


def by_question(predictions: Iterable[Prediction]) -> list[RatedAnswers]:
    """Return one group for each question, by its key."""
    by_key: dict[str, list[tuple[float, bool]]] = {}
    for prediction in predictions:
        if pair := rated(prediction):
            by_key.setdefault(prediction.key, []).append(pair)
    # A student can write any number of keys into a file. The keys of the notebooks are those that many have.
    asked = sorted(by_key, key=lambda key: (-len(by_key[key]), key))[:MAX_QUESTIONS]
    return [RatedAnswers.of(key[:MAX_KEY], by_key[key]) for key in sorted(asked)]
