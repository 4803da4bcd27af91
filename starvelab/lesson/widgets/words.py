"""Predictions, truths and notices in words, as plain text and as HTML for light and dark themes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from ... import tables
from ...prediction_file import Prediction
from ..notices import escape
from ..outcomes import grouped, number, percent, quoted, truth, value
from .question import WITHIN, is_hit, near

_PARAGRAPH = "margin: 0 0 0.4em 0; line-height: 1.45; max-width: 52em"
NEVER_SHOWN = "Its answer was not shown before this was submitted."


# --- HTML -------------------------------------------------------------------------------------------------


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


class Sentences:
    """A result that shows itself, in a notebook and as text: a table, if it has rows, and sentences."""

    HEADERS: Sequence[str] = ()

    def rows(self) -> list[list[str]]:
        """The table's rows; none without a table."""
        return []

    def sentences(self) -> list[str]:
        """Say what stands beneath the table."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        rows = self.rows()
        shown = table(self.HEADERS, rows) if rows else ""
        # JupyterLab sets cells to the right, which is for numbers; these are texts.
        shown = re.sub(r"<(th|td)\b", r'<\1 style="text-align: left"', shown)
        return shown + "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())

    def __repr__(self) -> str:
        rows = self.rows()
        shown = [tables.to_text(self.HEADERS, rows), ""] if rows else []
        return "\n".join([*shown, *self.sentences()])


# --- predictions ------------------------------------------------------------------------------------------


def confidence(locked: Prediction) -> str:
    """Say how sure a learner was: ``70 % sure``, or nothing if they did not say."""
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


def result(
    locked: Prediction, *, now: str | float | None, within: float = WITHIN, why: str = ""
) -> tuple[str, str]:
    """Say what came of a prediction whose truth was revealed, and the word in front of it.

    The truth that was revealed first counts; `now` is what it is now. `within` is as for `is_hit`. After a
    miss it begins with `why`, the likeliest reason; without one it ends with how far off a number was.
    """
    if locked.truth is None:
        return f"{prediction(locked)} {NEVER_SHOWN}", "Please note"
    lines = [f"The answer is {quoted(truth(locked), locked.truth)}.", prediction(locked)]
    # With a credit for what was measured it counts as a hit, and still misses what the model says.
    hit = locked.hit if locked.measured is None else is_hit(locked, locked.truth, within)
    if why and not hit:
        lines.insert(0, why)
    elif not (hit or isinstance(locked.answer, str) or isinstance(locked.truth, str)):
        lines.append(_distance(locked.answer, locked.truth, locked.unit, locked.unchanged))
    if now != locked.truth:
        lines.append(
            f"The cell now gives {truth(replace(locked, truth=now))}; "
            "the score card keeps the answer that was shown first."
        )
    return " ".join(filter(None, lines)), "Hit" if hit else "Miss"


def _distance(answer: float, truth: float, unit: str | None, unchanged: float | None) -> str:
    """Say how far off a number was: the difference when it was near, a factor when it was not."""
    if unchanged is not None:
        of_truth, yours = (number(one - unchanged, unit) for one in (truth, answer))
        return f"What counts is the gain or loss: {of_truth} in the answer, {yours} in your number."
    if not truth:
        return ""
    # Two digits that count, without an exponent where people write none: 540 and not 5.4e+02.
    ratio = answer / truth
    if ratio >= 2:
        return f"Your number is {grouped(ratio, 2)} times the answer."
    if 0 < ratio <= 0.5:
        return f"The answer is {grouped(1 / ratio, 2)} times your number."
    side = "above" if answer > truth else "below"
    if unit == "%":
        return f"Your number is {grouped(abs(answer - truth), 2)} percentage points {side} the answer."
    return f"Your number is {percent(abs(ratio - 1))} {side} the answer."
