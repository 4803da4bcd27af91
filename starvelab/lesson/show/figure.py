"""A figure as a notebook shows it: an image with alt text, a caption, and the same data as a table.

JupyterLab drops the alt text of images it draws itself, so a figure goes out as HTML.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ... import runtime
from ...tables import paragraph, to_html, to_text
from .canvas import Blank, Figure

# On the page; matplotlib's 10 points are then as large as the text around them.
_PIXELS_PER_INCH = 90
_IMAGE = "display:block;max-width:100%;border-radius:6px;margin-bottom:0.4em"
NO_IMAGE = "The picture needs matplotlib, which is not installed here. Its values stand in the table."


@dataclass(frozen=True)
class StaticFigure:
    """A drawn figure.

    Attributes
    ----------
    png : bytes or None
        Empty where nobody looks: while grading. None where matplotlib is missing.
    alt : str
        What a person who cannot see it needs to know.
    caption : str
    headers, rows
        The drawn data.
    width : int
        Width on the page in CSS pixels; the image has twice as many.
    """

    png: bytes | None
    alt: str
    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    width: int

    def __repr__(self) -> str:
        return f"{self.caption}\n{to_text(self.headers, self.rows)}"

    def _repr_html_(self) -> str:
        if self.png is None:
            table = to_html(self.headers, self.rows)
            return (
                f'<figure style="margin:0.5em 0"><figcaption>{escape(self.caption)}</figcaption>'
                f"{paragraph(NO_IMAGE)}{table}</figure>"
            )
        data = base64.b64encode(self.png).decode()
        source = f' src="data:image/png;base64,{data}"' if data else ""
        return (
            '<figure style="margin:0.5em 0">'
            f'<img alt="{escape(self.alt, quote=True)}" width="{self.width}" style="{_IMAGE}"{source}>'
            f"<figcaption>{escape(self.caption)}</figcaption>"
            "<details><summary>The same as a table</summary>"
            f"{to_html(self.headers, self.rows)}</details></figure>"
        )


def render_figure(
    figure: Figure, *, alt: str, caption: str, headers: Sequence[str], rows: Sequence[Sequence[object]]
) -> StaticFigure:
    """Render a matplotlib figure. Its ground is white, so that it reads the same in a dark theme."""
    if isinstance(figure, Blank):
        return StaticFigure(None, alt, caption, headers, rows, 0)
    width = round(_PIXELS_PER_INCH * figure.get_figwidth())
    # Drawing takes a sixth of the time of grading, and a feedback page shows the text instead.
    if runtime.current().is_grading:
        return StaticFigure(b"", alt, caption, headers, rows, width)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=2 * _PIXELS_PER_INCH, facecolor="white")
    return StaticFigure(buffer.getvalue(), alt, caption, headers, rows, width)
