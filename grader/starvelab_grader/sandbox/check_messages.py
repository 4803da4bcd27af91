"""What a check says to a student, and which of it comes from its hidden part.

Students have the check without its hidden lines. So a message that such a line caused may tell what the
course keeps to itself, and whoever shows messages has to know which these are.
"""

import sys
from collections.abc import Iterable
from traceback import walk_stack, walk_tb
from types import FrameType

from ..plugins import declared

BEGIN_HIDDEN, END_HIDDEN = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"
PART = "part"  # the note of a check that gives credit by parts: what one earned, and its most
MAX_MESSAGES = 50  # of a check
MAX_TEXT = 4000  # characters of one
FAILED = "A check fails."


class CheckMessages:
    """The texts that one cell prints and raises, each with whether a hidden line of the cell caused it."""

    def __init__(self, source: str, namespace: object) -> None:
        self.texts: list[tuple[str, bool]] = []
        self.is_quoting = False  # what a function of the student printed
        self._lines = source.lstrip("\n").split("\n")  # IPython leaves out empty lines at the top
        self._hidden, self._namespace = hidden_lines(self._lines), namespace
        self._parts_are_full: list[bool] = []  # of the visible ones

    def print(self, text: str) -> None:
        """Keep what the cell prints just now."""
        if self.is_quoting:
            return
        hidden = self.is_hidden_now()
        if self.texts and self.texts[-1][1] is hidden:
            text = self.texts.pop()[0] + text
        self._add(text, hidden)

    def note(self, name: str, value: object) -> None:
        """Keep what a visible part of the check earned."""
        if name == PART and isinstance(value, list) and len(value) == 2 and not self.is_hidden_now():
            self._parts_are_full.append(value[0] >= value[1])

    def end(self, error: BaseException | None, text: str) -> bool | None:
        """Keep the error that ended the cell, and return whether its visible part is right, if that shows."""
        is_right = all(self._parts_are_full) if self._parts_are_full else None
        if error is not None:
            frames = list(walk_tb(error.__traceback__))
            hidden = self._names_hidden_line(frames)
            numbers = [number for frame, number in frames if self._is_cell(frame)]
            line = self._lines[numbers[-1] - 1] if numbers and numbers[-1] <= len(self._lines) else FAILED
            is_said = isinstance(error, AssertionError) or type(error).__name__ in declared("error_texts")
            kind = "" if is_said else f"{type(error).__name__}: "
            self._add(f"{kind}{text}" if kind or text else line, hidden)
            is_right = hidden and is_right is not False
        self.texts = [(text.strip(), hidden) for text, hidden in self.texts if text.strip()]
        return is_right

    def is_hidden_now(self) -> bool:
        """True if a hidden line of the cell is running."""
        return bool(self._hidden) and self._names_hidden_line(walk_stack(sys._getframe()))

    def _add(self, text: str, hidden: bool) -> None:
        if len(self.texts) < MAX_MESSAGES:
            self.texts.append((text[:MAX_TEXT], hidden))

    def _names_hidden_line(self, frames: Iterable[tuple[FrameType, int]]) -> bool:
        frames = list(frames)
        if not self._hidden or self._lines[0].startswith("%%"):  # a magic runs the cell elsewhere
            return bool(self._hidden)
        files = {frame.f_code.co_filename for frame, _ in frames if self._is_cell(frame)}
        return any(line in self._hidden and frame.f_code.co_filename in files for frame, line in frames)

    def _is_cell(self, frame: FrameType) -> bool:
        return frame.f_code.co_name == "<module>" and frame.f_globals is self._namespace


def hidden_lines(lines: Iterable[str]) -> frozenset[int]:
    """Return the numbers of the lines that students do not get, from 1.

    Examples
    --------
    >>> sorted(hidden_lines(["f(1)", "### BEGIN HIDDEN TESTS", "f(2)", "### END HIDDEN TESTS", "f(3)"]))
    [2, 3, 4]
    """
    hidden, is_hidden = set(), False
    for number, line in enumerate(lines, start=1):
        is_hidden |= BEGIN_HIDDEN in line
        hidden |= {number} if is_hidden else set()
        is_hidden &= END_HIDDEN not in line
    return frozenset(hidden)
