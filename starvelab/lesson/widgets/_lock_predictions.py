"""Predictions of a whole assignment, locked in code by whoever works without widgets."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...errors import InputError
from ..outcomes import count_of
from . import words
from ._predict import lock_answer, unit_of
from .known import known_questions, no_such_question
from .memory import KERNEL, Memory
from .question import Answer, Question
from .store import PredictionStore


def lock_predictions(
    answers: Mapping[str, Answer],
    notebooks: Mapping[str, str],
    *,
    folder: str | os.PathLike[str] | None = None,
    memory: Memory = KERNEL,
) -> float:
    """Lock each answer alone, and say which were locked, which were refused and why, and what is missing.

    Parameters
    ----------
    answers : mapping of str to answer
        Predictions by their keys, as `predict` takes them.
    notebooks : mapping of str to str
        Every key that counts, and in which notebook it is asked.
    folder : path, optional
        Where the notebooks and ``predictions.json`` stand; the folder the notebook runs in unless given.
    memory : Memory
        What this kernel keeps beside the file.

    Returns
    -------
    float
        Share of `notebooks` that is locked now, here or in a box before, 0 to 1.
    """
    store = PredictionStore(folder, memory)
    known = known_questions(store.folder, memory)
    refused, new = [], 0
    if not isinstance(answers, Mapping):
        refused.append(f"Answers are given by their keys, got {answers!r:.80}. Return a dict.")
        answers = {}
    for key, answer in answers.items():
        if key not in notebooks:
            refused.append(no_such_question(key, notebooks))
            continue
        try:
            question = known.get(key) or Question.ask(key, unit=unit_of(answer))
            locked, is_new = lock_answer(store, question, answer)
        except InputError as error:
            refused.append(f"{_name(key, known)}: {error}")
            continue
        new += is_new
        if not is_new and locked.answer != question.check_answer(answer):
            before = words.value(locked.answer, locked.unit)
            refused.append(f"{_name(key, known)}: It was locked before, as {before}. That stays.")
    if answers or refused:
        print(f"{count_of(new, 'prediction')} locked here, {len(refused)} refused.")
    for reason in refused:
        print(f"- {reason}")
    locked_now = store.read().predictions
    missing = [key for key in notebooks if key not in locked_now]
    print(f"{len(notebooks) - len(missing)} of {count_of(len(notebooks), 'prediction')} are locked.")
    for key in missing:
        print(f"- Missing in notebook {notebooks[key]}: {_name(key, known)}")
    return 1 - len(missing) / len(notebooks)


def _name(key: str, known: Mapping[str, Question]) -> str:
    """A key, which whoever writes code needs, and the question that it stands for."""
    text = known[key].text if key in known else None
    return f'{key!r} ("{words.title(text)}")' if text else repr(key)
