"""Which questions can be answered in code: those asked in this kernel, and in the notebooks of a folder."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ...errors import InputError
from ..exercises import read_questions
from .memory import Memory
from .question import Question


def known_questions(folder: Path, memory: Memory) -> dict[str, Question]:
    """Every question that can be answered, by key.

    Parameters
    ----------
    folder : Path
        Where the notebooks stand. Whoever works without widgets may not have run them in this kernel.
    memory : Memory
        What this kernel asked; it counts before what stands in a file.
    """
    found = {}
    for key, asked in read_questions(*sorted(folder.glob("*.ipynb"))).items():
        try:
            found[key] = Question.ask(key, text=asked.pop("question"), **asked)
        except InputError:  # somebody changed the cell
            continue
    return found | memory.asked


def no_such_question(key: object, keys: Collection[str]) -> str:
    """What is said of a key under which nothing is asked."""
    return f"No question has the key {key!r:.80}. The keys are {', '.join(map(repr, keys))}. Correct the key."
