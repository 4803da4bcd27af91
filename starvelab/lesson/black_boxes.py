"""Records of pipelines of which nothing else is known, and how a verdict with probabilities is scored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isclose, log
from numbers import Real
from pathlib import Path

from .checks import WrongAnswer

# Written by `python -m benchmarks.black_boxes`.
RECORDS = Path(__file__).with_name("black_boxes.json")
RESOURCES = ("storage", "CPU", "link", "accelerator")
# Nobody has to be surer than this to earn all points.
ENOUGH = 0.9


def record(box: str) -> dict[str, list[float]]:
    """Return the record of box "A", "B" or "C": for each batch the number of its worker, and times [ms]."""
    records: dict[str, dict[str, list[float]]] = json.loads(RECORDS.read_text(encoding="utf-8"))
    return records[box]


def total(verdict: object) -> float:
    """Add up the probabilities, whatever they are; raise WrongAnswer if a resource has no number."""
    return float(sum(_numbers(verdict).values()))


def most_likely(verdict: object) -> str:
    """Return the resource with the highest probability; raise WrongAnswer if two resources share it."""
    probabilities = _probabilities(verdict)
    highest = max(probabilities.values())
    found = [name for name, probability in probabilities.items() if probability == highest]
    if len(found) > 1:
        raise WrongAnswer(
            f"One resource is the most likely, got {highest:g} for {' and '.join(found)}. "
            "Decide, if only by little."
        )
    return found[0]


def log_score(verdict: object, truth: str) -> float:
    """The share of the points that a verdict earns, 0 to 1.

    With a probability p for what is true it is (1 + log4 p) / (1 + log4 0.9): a guess, one in four, earns
    nothing, and 0.9 earns all. Who wants to earn the most on average has to say what they believe.

    >>> from starvelab.lesson.black_boxes import log_score
    >>> verdict = {"storage": 0.1, "CPU": 0.7, "link": 0.1, "accelerator": 0.1}
    >>> round(log_score(verdict, "CPU"), 2), log_score(verdict, "link")
    (0.8, 0.0)
    """
    probability = _probabilities(verdict)[truth]
    if probability <= 1 / len(RESOURCES):
        return 0.0

    def score(p: float) -> float:
        return 1 + log(p) / log(len(RESOURCES))

    return min(1.0, score(probability) / score(ENOUGH))


def _numbers(verdict: object) -> dict[str, float]:
    if not isinstance(verdict, Mapping) or set(verdict) != set(RESOURCES):
        came = ", ".join(map(repr, verdict)) if isinstance(verdict, Mapping) else repr(verdict)
        raise WrongAnswer(
            f"A verdict gives a probability to each of {', '.join(RESOURCES)}, got {came:.80}. "
            "Write a dict with these four keys."
        )
    for name, value in verdict.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise WrongAnswer(f"A probability is a number, got {value!r:.80} for {name}. Write 0.7 for 70 %.")
    return {name: float(value) for name, value in verdict.items()}


def _probabilities(verdict: object) -> dict[str, float]:
    numbers = _numbers(verdict)
    for name, value in numbers.items():
        if not 0 <= value <= 1:
            raise WrongAnswer(
                f"A probability lies from 0 to 1, got {value:g} for {name}. Write 0.7 for 70 %."
            )
    if not isclose(found := sum(numbers.values()), 1, abs_tol=1e-6):
        raise WrongAnswer(f"The four probabilities add up to 1, got {found:.4g}. Divide each by their sum.")
    return numbers
