"""Tables, titled lists and sentences: HTML in a notebook, plain text elsewhere. Each returns nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from textwrap import fill

from ... import runtime
from ...errors import InputError
from ...tables import to_html, to_text
from ..notices import notice


def info(title: str, **fields: object) -> None:
    """Show a titled two-column list; underscores in a field's name become spaces.

    Examples
    --------
    >>> from starvelab import Q_
    >>> info("Baseline", step_time=Q_("11.743 ms"), binds="Compute")
    Baseline    value
    ----------  --------
    step time   11.74 ms
    binds       Compute
    """
    table([title, "value"], [[name.replace("_", " "), value] for name, value in fields.items()])


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
    _show(to_text(headers, rows), to_html(headers, rows))


def say(text: object) -> None:
    """Show a paragraph as a notice; as plain text it is broken between words.

    Examples
    --------
    >>> say("word " * 30)
    word word word word word word word word word word word word word word word word word word word word
    word word word word word word word word word word
    """
    _show(fill(str(text), width=100), notice(text))


def link(text: str, address: str) -> None:
    """Show a link that opens beside the notebook."""
    anchor = f'<a href="{escape(address)}" target="_blank" rel="noopener">{escape(text)}</a>'
    _show(f"{text}: {address}", f"<p>{anchor}</p>")


def _show(text: str, html: str) -> None:
    """Show HTML to a front end, and its text where IPython does not run."""
    shell = runtime.shell()
    if shell is None:
        print(text)
    else:
        shell.display_pub.publish({"text/plain": text, "text/html": html})
