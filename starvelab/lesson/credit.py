"""Partial credit: a check in parts, and the points that it earns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from threading import Lock, get_ident
from typing import Any, Self

from .. import runtime, tables
from .checks import NotAnsweredError

_TURN = Lock()


class Captured(StringIO):
    """Collects what its thread prints while it stands in place of the output, which all threads share.

    JupyterLab calls widgets in a thread of their own: what a cell prints meanwhile goes where it went before.
    """

    def __enter__(self) -> Self:
        with _TURN:
            self._thread, self._before, sys.stdout = get_ident(), sys.stdout, self
        return self

    def __exit__(self, *_: object) -> None:
        with _TURN:
            if sys.stdout is self:
                sys.stdout = self._before
                return
            # Another thread began later and goes on: what it passes on takes the place of this one.
            after = sys.stdout
            while isinstance(after, Captured):
                if after._before is self:
                    after._before = self._before
                after = after._before

    # Any: a kernel tells its output, for example, which cell runs.
    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__.get("_before"), name)

    def write(self, text: str) -> int:
        """Collect a text of this thread, and pass on that of another."""
        return super().write(text) if get_ident() == self._thread else self._before.write(text)

    def flush(self) -> None:
        """Flush what was passed on."""
        self._before.flush()


class Points(float):
    """Points of a check. A grader reads a plain number, and a learner a sentence.

    It is made of the points `earned`, and the `most` that the parts give that were checked.
    """

    most: float

    def __new__(cls, earned: float, most: float) -> Self:
        """Return the points that were earned."""
        points = super().__new__(cls, earned)
        points.most = most
        return points

    def _repr_html_(self) -> str | None:
        # In a saved notebook the number stands beside the sentence, and whoever grades sees it alone.
        if _is_graded():
            return None
        return f"<p>{tables.points(self)} of the {tables.points(self.most)} points that this check gives.</p>"


def _as_sentence(message: str) -> str:
    """The message with a capital letter, unless it begins with a name from code, as ``n`` or ``gpu_busy``."""
    first = message.split(" ")[0]
    return message[:1].upper() + message[1:] if first.isalpha() and len(first) > 1 else message


@dataclass
class Credit:
    """Partial credit: each part earns its points on its own, and a failed part says why.

    The last line of a test cell is ``credit.total()``: a float, which nbgrader takes as the score.

    Parameters
    ----------
    points : float
        The most that can be earned.

    Examples
    --------
    >>> from starvelab.lesson.checks import check
    >>> credit = Credit(3)
    >>> credit.part(1, "doubling", lambda: check(2 * 2, 4))
    1 of 1: doubling
    >>> credit.part(2, "halving", lambda: check(2 * 2, 1, what="half of 2"))
    0 of 2: halving. Half of 2 is 4, and that is not right: it is too large.
    >>> credit.total()
    1.0
    """

    points: float
    earned: float = field(default=0.0, init=False)
    tried: float = field(default=0.0, init=False)
    _open: list[str] | None = field(default_factory=list, init=False)

    def part(self, points: float, what: str, test: Callable[[], object]) -> None:
        """Run one check and add its points, or print why they are not earned."""

        def all_of_them() -> float:
            test()
            return 1.0

        self.share(points, what, all_of_them)

    def share(self, points: float, what: str, found: Callable[[], float]) -> None:
        """Add the share of the points that `found` returns, 0 to 1, or print why none is earned."""
        self.tried += points
        try:
            with Captured():  # the part says itself what is right
                earned = round(points * min(max(found(), 0.0), 1.0), 2)
        except NotImplementedError:
            self._tell(f"0 of {points:g}: {what}. Not written yet.", is_open=True)
        except Exception as error:
            name = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            self._tell(f"0 of {points:g}: {what}. {_as_sentence(f'{name}{error}')}")
        else:
            self.earned += earned
            self._tell(f"{tables.points(earned)} of {points:g}: {what}")

    def _tell(self, line: str, *, is_open: bool = False) -> None:
        """Print what came of a part; not before one of them is written."""
        if self._open is not None and is_open:
            self._open.append(line)
            return
        print(*(self._open or ()), line, sep="\n")
        self._open = None

    def total(self) -> float:
        """Points earned, a float between 0 and `points`.

        Raises
        ------
        NotAnsweredError
            If a learner has written nothing yet; a grader gets 0.
        """
        if self._open:
            if not _is_graded():
                raise NotAnsweredError("Nothing is written yet.")
            print(*self._open, sep="\n")
        if self.tried < self.points:
            hidden = self.points - self.tried
            points = "1 point" if hidden == 1 else f"{tables.points(hidden)} points"
            print(f"Hidden checks decide the other {points}.")
        return Points(round(min(max(self.earned, 0.0), self.points), 2), min(self.tried, self.points))


def _is_graded() -> bool:
    current = runtime.current()
    return current.is_grading or current.is_validating
