"""Predictions, truths and notices in words, as plain text and as HTML for light and dark themes."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from ... import tables
from ...prediction_file import Prediction
from ..outcomes import grouped as grouped
from ..outcomes import number as number
from ..outcomes import one_line as one_line
from ..outcomes import percent as percent
from ..outcomes import quoted as quoted
from ..outcomes import title as title
from ..outcomes import truth as truth
from ..outcomes import value as value
from .question import near

_NOTICE = (
    "border: 1px solid; border-left-width: 5px; border-color: {color}; border-radius: 3px; "
    "padding: 0.5em 0.9em; margin: 0.3em 0; max-width: 46em; line-height: 1.45; "
    "font-size: var(--jp-content-font-size1, 14px); color: inherit"
)
_PARAGRAPH = "margin: 0 0 0.4em 0; line-height: 1.45; max-width: 52em"
# Each passes 3:1 on white and on the dark theme's background. The word in front says the same as the color.
_NOTICES = {
    "": "#0072B2",
    "Please note": "#0072B2",
    "Not answered yet": "#0072B2",
    "Problem": "#D55E00",
    "Hit": "#009E73",
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


def paragraphs(text: str) -> str:
    """Plain text as HTML: an empty line starts a paragraph; ``**bold**`` and backticks are kept."""
    blocks = []
    for block in filter(None, re.split(r"\n\s*\n", text.strip())):
        safe = escape(" ".join(block.split()))
        safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
        safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
        blocks.append(f'<p style="{_PARAGRAPH}">{safe}</p>')
    return "".join(blocks)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML that looks like one of JupyterLab's own, inside a widget too."""
    return (
        f'<div class="jp-RenderedHTMLCommon" style="overflow-x: auto">{tables.to_html(headers, rows)}</div>'
    )


def left_aligned(table: str) -> str:
    """A table of texts: JupyterLab sets cells to the right, which is for numbers."""
    return re.sub(r"<(th|td)\b", r'<\1 style="text-align: left"', table)


def confidence(locked: Prediction) -> str:
    """How sure a learner was: ``70 % sure``, or nothing if nobody asked."""
    if locked.confidence is None:
        return ""
    about = "" if isinstance(locked.answer, str) else f" to be {near(locked.unchanged)}"
    return f"{percent(locked.confidence)} sure{about}"


def timestamp(stored: str) -> str:
    """A stored time as people write it: ``21 Nov 2026 at 10:05 UTC``."""
    try:
        when = datetime.fromisoformat(stored)
    except ValueError:
        return stored
    return f"{when.day} {when:%b %Y} at {when:%H:%M} UTC"


def prediction(locked: Prediction) -> str:
    """A locked prediction as one sentence of plain text."""
    parts = [f"You predicted {quoted(value(locked.answer, locked.unit), locked.answer)}", confidence(locked)]
    return ", ".join(filter(None, parts)) + "."
