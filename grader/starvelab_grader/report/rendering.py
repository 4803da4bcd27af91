"""Cells and pages as HTML: templates, styles, and formulas that every browser draws without a network."""

import base64
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from html import escape, unescape
from io import BytesIO
from pathlib import Path
from urllib.parse import quote, unquote
from xml.etree.ElementTree import tostring

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from latex2mathml.converter import convert_to_element
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from PIL import Image
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from ..autograde.feedback import HarmlessHTML, PicturesInWords, ReadableOutputs, harmless_html
from ..batch.one_student import time_limit

NOTEBOOK_TIMEOUT = 60.0  # seconds; an honest notebook is shown in less than one
MIN_TIMEOUT = 0.001  # seconds
TEMPLATES = Path(__file__).parent / "templates"
# What passes the cleaning of HTML, and is drawn after it.
_FORMULA = re.compile(r'<code class="(inline|block)-formula">([^<]*)</code>')
ATTACHED = "attachment:"
# The place of an attached picture in clean HTML, where its text begins with its name.
_PICTURE = re.compile(rf'<span class="figure">Figure: {ATTACHED}([^\s<]+) ?([^<]*)</span>')
PICTURES = {"image/png": "PNG", "image/jpeg": "JPEG"}  # an SVG can hold scripts
MAX_PICTURE = 4_000_000  # characters in base64
MAX_PIXELS = 25_000_000  # few bytes can be a picture that fills the memory of whoever looks at the page
NOT_SHOWN = f"not shown: a picture is shown once, as PNG or JPEG of {MAX_PICTURE * 3 / 4 / 1e6:g} MB at most"
# No address, no style, no event.
ATTRIBUTES = {"accent", "columnalign", "columnspacing", "depth", "display", "displaystyle", "fence", "form",
              "height", "linethickness", "lspace", "mathsize", "mathvariant", "maxsize", "minsize",
              "movablelimits", "rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "voffset",
              "width"}  # fmt: skip


@dataclass
class PageTime:
    """The seconds in which the notebooks of one student may be shown, all together."""

    left: float = NOTEBOOK_TIMEOUT

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Interrupt what takes longer than there is left, and count the work of this thread."""
        start = time.thread_time()
        try:
            # Nothing left is no time, and not a time without a limit.
            with time_limit(max(MIN_TIMEOUT, min(self.left, NOTEBOOK_TIMEOUT))):
                yield
        finally:
            self.left -= time.thread_time() - start


def in_time(nb: NotebookNode, show: Callable[[], str], page_time: PageTime | None = None) -> str:
    """Return what `show` makes of a notebook, or its text where that takes too long."""
    page_time = page_time or PageTime()
    try:
        with page_time.limit():
            return show()
    except TimeoutError:
        message = "This notebook took too long to show. This is its text."
        text = "\n\n".join(cell.source for cell in nb.cells)[: ReadableOutputs.max_characters]
        return f"<p>{message}</p><pre>{escape(text)}</pre>"


def cells_as_html(cells: Sequence[NotebookNode]) -> str:
    """Return cells as HTML in which nothing is alive, whoever wrote them."""
    nb = new_notebook(cells=[deepcopy(cell) for cell in cells])
    for cell in nb.cells:
        cell.metadata.pop("starvelab_page", None)
    return in_time(nb, lambda: rendered(nb))


def rendered(nb: NotebookNode) -> str:
    """Return the cells of a notebook as HTML, whatever a template writes around them."""
    # HTMLExporter itself would read the whole page again, for what ours does not have.
    return draw_formulas(str(TemplateExporter.from_notebook_node(_exporter(), nb)[0]))


@cache
def _exporter() -> HTMLExporter:
    config = Config()
    config.HTMLExporter.preprocessors = [ReadableOutputs, HarmlessHTML]
    harmless = harmless_html(config, _Renderer(escape=False, exclude_anchor_links=True))

    @pass_context
    def markdown(context: Context, text: str) -> str:
        return _with_pictures(harmless(text), dict(context["cell"].get("attachments", {})))

    own = {"markdown2html": markdown, "formula": mark_formula}
    config.HTMLExporter.filters = own | {"frames": _frames, "highlight_code": Highlight2HTML()}
    config.HTMLExporter.optimistic_validation = True  # in the end, and not after each step
    config.HTMLExporter.extra_template_basedirs = [str(TEMPLATES)]
    config.HTMLExporter.template_name = "cells"
    return HTMLExporter(config=config)


@cache
def templates() -> Environment:
    """Return the templates of this room's pages."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    environment.filters["cell"] = _table_cell
    return environment


def _table_cell(value: object) -> str:
    """Return a value in a table: a number to four digits, and None as nothing."""
    if isinstance(value, float):
        return f"{float(f'{value:.4g}'):.15g}"
    return "" if value is None else str(value)


@cache
def page_style() -> str:
    """Return the styles of a page: ours, and the colors of code in light and in dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("default", "monokai"))
    return (
        f"{(TEMPLATES / 'page.css').read_text(encoding='utf-8')}{light}\n"
        f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
        ".highlight, .highlight .err { background: none; border: none; }"
    )


def _frames(error: NotebookNode) -> list[str]:
    """Return what a traceback says besides its heading and the message."""
    texts = ((frame, strip_ansi(frame)) for frame in error.traceback)
    heading = ("-----", f"{error.ename} ")
    return [
        frame for frame, text in texts
        if not error.evalue or not (text.startswith(heading) or error.evalue in text)
    ]  # fmt: skip


def mark_formula(formula: str, kind: str = "block") -> str:
    """Return a formula in LaTeX, `inline` or a `block`, as `draw_formulas` finds it."""
    formula = formula.strip("$ \n")
    return f'<code class="{kind}-formula">{escape(formula, quote=False)}</code>'


def draw_formulas(html: str) -> str:
    """Return clean HTML with the marked formulas as MathML; what is no formula stays as it was written."""
    return _FORMULA.sub(lambda found: _drawn(unescape(found[2]), found[1]) or found[0], html)


def _drawn(formula: str, kind: str) -> str:
    try:
        drawn = convert_to_element(formula, display=kind)
    # A student may write anything between two dollar signs, and the library raises whatever it meets.
    except Exception:
        return ""
    for element in drawn.iter():
        # The library writes text as HTML, and can write addresses and styles: here it is text only.
        element.text = unescape(element.text or "")
        for name in element.attrib.keys() - ATTRIBUTES:
            del element.attrib[name]
    return str(tostring(drawn, encoding="unicode"))


def _with_pictures(html: str, attached: dict[str, Mapping[str, str]]) -> str:
    """Return clean HTML with those of the attached pictures that a page may hold; each is used up."""

    def drawn(place: re.Match[str]) -> str:
        if address := _address(attached.pop(unquote(place[1]), {})):
            return f'<img src="{address}" alt="{place[2]}">'
        return f'<span class="figure">Figure: {place[2]} ({NOT_SHOWN})</span>'

    return _PICTURE.sub(drawn, html)


def _address(picture: Mapping[str, str]) -> str:
    """Return an address that holds a picture itself; empty if it is not what it says, or too large."""
    for kind in PICTURES.keys() & picture.keys():
        text = "".join(picture[kind].split())
        # A student may attach anything, and the library raises whatever it meets.
        with suppress(Exception):
            content = BytesIO(base64.b64decode(text[: MAX_PICTURE + 1], validate=True))
            with Image.open(content, formats=[PICTURES[kind]]) as image:
                if image.width * image.height <= MAX_PIXELS and len(text) <= MAX_PICTURE:
                    return f"data:{kind};base64,{text}"
    return ""


class _Renderer(PicturesInWords):
    """Marks formulas, which MathJax would have to find in the page, and attached pictures."""

    def image(self, text: str, url: str = "", *_: object, **more: object) -> str:  # noqa: ARG002
        name = url.removeprefix(ATTACHED)
        return super().image(text if name == url else f"{ATTACHED}{quote(unquote(name))} {text}")

    def inline_math(self, body: str) -> str:
        return mark_formula(body, "inline")

    def block_math(self, body: str) -> str:
        return mark_formula(body)

    def latex_environment(self, name: str, body: str) -> str:
        return mark_formula(rf"\begin{{{name}}}{body}\end{{{name}}}")
