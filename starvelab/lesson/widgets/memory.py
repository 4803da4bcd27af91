"""The memory of a kernel: what it knows about predictions, and what is not in their file."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path

from ...prediction_file import Prediction
from . import words
from .question import Question


@dataclass
class Memory:
    """What one kernel keeps until it stops.

    Attributes
    ----------
    questions : dict of str to str
        The text of each question that was asked, by its key: to say which one is still open.
    asked : dict of str to Question
        What may be answered to each of them.
    unsaved : dict of Path to dict of str to Prediction
        By file: predictions that could not be written (read-only folder, full disk). They count, too.
    waiting : dict of (Path, str) to dict of callable
        By file and key: what to call when that prediction is locked, each in its place.
    """

    questions: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Question] = field(default_factory=dict)
    unsaved: dict[Path, dict[str, Prediction]] = field(default_factory=dict)
    waiting: dict[tuple[Path, str], dict[Hashable, Callable[[], None]]] = field(default_factory=dict)

    def which(self, key: str) -> str:
        """The question asked under `key`, in a sentence: nobody sees keys. Empty if it was not asked."""
        text = words.title(self.questions.get(key, ""))
        return f'It is the one that asks: "{text}"' if text else ""


# Of the notebook that runs in this process. Functions that a notebook calls take another one as `memory`.
KERNEL = Memory()
