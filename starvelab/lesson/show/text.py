"""Printed tables and titled lists, the way the walkthrough prints them.

They print and return nothing, so that a cell shows them once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

from ...errors import InputError
from ...tables import cell, to_text


def info(title: str, **fields: object) -> None:
    """Print a titled two-column list; underscores in a field's name become spaces.

    Examples
    --------
    >>> from starvelab import Q_
    >>> info("Baseline", step_time=Q_("11.743 ms"), binds="Compute")
    Baseline
    --------
    step time  11.74 ms
    binds      Compute
    """
    names = [name.replace("_", " ") for name in fields]
    width = max((len(name) for name in names), default=0)
    lines = (f"{name:<{width}}  {cell(value)}" for name, value in zip(names, fields.values(), strict=True))
    print("\n".join((title, "-" * len(title), *lines)))


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print an aligned table; quantities to four significant digits with short units.

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
    print(to_text(headers, rows))


def say(text: object) -> None:
    """Print a paragraph, broken between words; a notebook would break it within them.

    Examples
    --------
    >>> say("word " * 30)
    word word word word word word word word word word word word word word word word word word word word
    word word word word word word word word word word
    """
    print(fill(str(text), width=100))
