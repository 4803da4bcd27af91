"""What a notebook says: notices, paragraphs, tables and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape as escape_html
from textwrap import fill

from .. import runtime, tables
from ..errors import InputError

_PARAGRAPH = "margin: 0 0 0.4em 0; line-height: 1.45; max-width: 52em"
_NOTICE = (
    "border: 1px solid; border-left-width: 5px; border-color: {color}; background: {color}1a; "
    "border-radius: 3px; padding: 0.5em 0.9em; margin: 0.3em 0; max-width: 46em; line-height: 1.45; "
    "font-size: var(--jp-content-font-size1, 14px); color: inherit"
)
# Each passes 3:1 on white and on the dark theme's background. The word in front says the same as the color.
_BLUE, _GREEN, _PINK, _ORANGE = "#0072B2", "#009E73", "#CC79A7", "#D55E00"
_NOTICES = {
    **dict.fromkeys(("", "Please note", "Not answered yet", "Not run yet"), _BLUE),
    **dict.fromkeys(("Hit", "Done", "Credit"), _GREEN),
    **dict.fromkeys(("Miss", "Not yet"), _PINK),
    "Problem": _ORANGE,
}


def escape(text: object) -> str:
    """Text made safe to stand in HTML."""
    return escape_html(str(text))


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


def widget_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML that looks like one of JupyterLab's own, inside a widget too."""
    return f'<div class="jp-RenderedHTMLCommon">{tables.to_html(headers, rows)}</div>'


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
        shown = widget_table(self.HEADERS, rows) if rows else ""
        # JupyterLab sets cells to the right, which is for numbers; these are texts.
        shown = re.sub(r"<(th|td)\b", r'<\1 style="text-align: left"', shown)
        return shown + "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())

    def __repr__(self) -> str:
        rows = self.rows()
        shown = [tables.to_text(self.HEADERS, rows), ""] if rows else []
        return "\n".join([*shown, *self.sentences()])


# --- shown at once, each as HTML in a notebook and as plain text elsewhere; none returns anything ---------


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Show a table; quantities to four significant digits with short units.

    Raises
    ------
    InputError
        If a row has not one value for each header.

    Examples
    --------
    >>> from starvelab import Q_
    >>> table(["batch", "step"], [[32, Q_("5.856 ms")], [1024, Q_("31.93 ms")]])
      batch      step
    -------  --------
         32  5.856 ms
       1024  31.93 ms
    """
    rows = [list(row) for row in rows]
    for row in rows:
        if len(row) != len(headers):
            raise InputError(
                f"A row has one value for each of the {len(headers)} headers, got {len(row)}: {row!r:.80}. "
                "Add what is missing, or None for an empty cell."
            )
    _show(tables.to_text(headers, rows), tables.to_html(headers, rows))


def say(text: object, word: str = "") -> None:
    """Show a paragraph as a notice, opened by a `word`; as plain text it is broken between words.

    Examples
    --------
    >>> say("word " * 30)
    word word word word word word word word word word word word word word word word word word word word
    word word word word word word word word word word
    """
    _show(fill(f"{word}. {text}" if word else str(text), width=100), notice(text, word))


def fold(title: str, shown: object) -> None:
    """Show a thing folded away below its title until the reader opens it; as plain text whole.

    Examples
    --------
    >>> fold("The two", "one and two")
    The two
    one and two
    """
    html = getattr(shown, "_repr_html_", lambda: f"<pre>{escape(shown)}</pre>")()
    folded = f'<details><summary style="cursor: pointer">{escape(title)}</summary>{html}</details>'
    _show(f"{title}\n{shown}", folded)


def _show(text: str, html: str) -> None:
    """Show HTML to a front end, and its text where IPython does not run."""
    shell = runtime.shell()
    if shell is None:
        print(text)
    else:
        shell.display_pub.publish({"text/plain": text, "text/html": html})
