"""What an explorer shows for one setting of its controls: a figure, a sentence, and the values as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InputError
from . import words


@dataclass(frozen=True)
class Drawing:
    """One figure with its words.

    Attributes
    ----------
    svg : str
        The figure, an ``<svg>`` element with role="img" and a title.
    sentence : str
        What is to be seen, in plain text.
    headers : sequence of str, optional
        Head of the table of values.
    rows : sequence of sequences, optional
        The values; quantities and numbers are shown to four digits.
    """

    svg: str
    sentence: str = ""
    headers: Sequence[str] | None = None
    rows: Sequence[Sequence[object]] | None = None

    @classmethod
    def of(cls, drawn: object) -> Drawing:
        """Read what a drawing function returned: a `Drawing`, anything with its fields, or an SVG string."""
        if isinstance(drawn, str):
            drawn = cls(drawn)
        svg = getattr(drawn, "svg", None)
        if not isinstance(svg, str) or "<svg" not in svg:
            raise InputError(
                f"An explorer's function must return a Drawing or an SVG string, got {drawn!r:.80}. "
                "Return Drawing(svg, sentence)."
            )
        drawing = cls(
            svg, getattr(drawn, "sentence", ""), getattr(drawn, "headers", None), getattr(drawn, "rows", None)
        )
        if (drawing.headers is None) != (drawing.rows is None):
            raise InputError("A Drawing has both headers and rows or neither. Pass the one that is missing.")
        return drawing

    def table(self) -> str:
        """The values as HTML, folded away until the reader opens them; empty without values."""
        if self.headers is None or self.rows is None:
            return ""
        return (
            '<details><summary style="cursor: pointer">The values as a table</summary>'
            f"{words.table(self.headers, self.rows)}</details>"
        )
