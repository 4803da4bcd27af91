"""Notices: a framed box with a word in front, in which a verdict is said once; and what is printed."""

from __future__ import annotations

import html
import sys
from io import StringIO
from threading import Lock, get_ident
from typing import Any, Self

_TURN = Lock()

_NOTICE = (
    "border: 1px solid; border-left-width: 5px; border-color: {color}; background: {color}1a; "
    "border-radius: 3px; padding: 0.5em 0.9em; margin: 0.3em 0; max-width: 46em; line-height: 1.45; "
    "font-size: var(--jp-content-font-size1, 14px); color: inherit"
)
# Each passes 3:1 on white and on the dark theme's background. The word in front says the same as the color.
_NOTICES = {
    "": "#0072B2",
    "Please note": "#0072B2",
    "Not answered yet": "#0072B2",
    "Not run yet": "#0072B2",
    "Not yet": "#CC79A7",
    "Problem": "#D55E00",
    "Hit": "#009E73",
    "Done": "#009E73",
    "Credit": "#009E73",
    "Miss": "#CC79A7",
}


def escape(text: object) -> str:
    """Text made safe to stand in HTML."""
    return html.escape(str(text))


def notice(text: object, word: str = "") -> str:
    """A framed box in HTML that says a plain text, opened by a `word` such as "Problem"."""
    opening = f"<strong>{escape(word)}.</strong> " if word else ""
    return f'<div style="{_NOTICE.format(color=_NOTICES[word])}">{opening}{escape(text)}</div>'


def formats(text: object, word: str) -> dict[str, str]:
    """A notice as a cell's output has it: in HTML, and as plain text."""
    return {"text/html": notice(text, word), "text/plain": f"{word}. {text}"}


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
