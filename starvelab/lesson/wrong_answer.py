"""What a check raises where it does not accept an answer."""

from __future__ import annotations


class WrongAnswer(AssertionError):  # noqa: N818  # it is the answer that is wrong
    """An answer that a check does not accept; shown in a notebook as its message alone."""

    def _render_traceback_(self) -> list[str]:
        return [f"Not yet: {self}"]


class NotAnsweredError(WrongAnswer):
    """Nothing was answered yet, which is no mistake."""
