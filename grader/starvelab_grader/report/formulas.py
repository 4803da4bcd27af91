"""Formulas in Markdown, as MathML that every browser draws by itself: a page needs no network."""

from __future__ import annotations

import re
from html import escape, unescape
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

# What passes the cleaning of HTML, and is drawn after it.
_FORMULA = re.compile(r'<code class="(inline|block)-formula">([^<]*)</code>')
# No address, no style, no event.
ATTRIBUTES = {"accent", "columnalign", "columnspacing", "depth", "display", "displaystyle", "fence", "form",
              "height", "linethickness", "lspace", "mathsize", "mathvariant", "maxsize", "minsize",
              "movablelimits", "rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "voffset",
              "width"}  # fmt: skip


def markdown_to_html(source: str) -> str:
    """Return Markdown as HTML, in which formulas are marked, see `draw_formulas`."""
    renderer = _Renderer(escape=False, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(source))


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


class _Renderer(IPythonRenderer):
    """Marks formulas, which MathJax would have to find in the page."""

    def inline_math(self, body: str) -> str:
        return mark_formula(body, "inline")

    def block_math(self, body: str) -> str:
        return mark_formula(body)

    def latex_environment(self, name: str, body: str) -> str:
        return mark_formula(rf"\begin{{{name}}}{body}\end{{{name}}}")
