"""Feedback pages: without hidden tests, without anything alive in them, readable on a phone.

They only change how a graded notebook is shown; what it earned is settled.
"""

from __future__ import annotations

import re
from typing import Any

from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.filters import markdown2html, strip_ansi
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets.config import Config

STYLE = """
.highlight pre, .output_error pre { white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; }
.output_stream pre { overflow-x: auto; }
.nbgrader_cell .input_area { clear: both; }
th, td { padding: 0.1em 0.8em; }
caption { text-align: left; }
summary { display: list-item; cursor: pointer; }
.output_area, .rendered_html, .jp-OutputArea, .jp-RenderedHTMLCommon { overflow-x: auto; max-width: 100%; }
.figure { display: inline-block; border-left: 3px solid; padding-left: 0.6em; font-style: italic; }
"""
VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">'
TAGS = (
    "a abbr b blockquote br code details div em h1 h2 h3 h4 hr i img kbd li ol p pre small span strong sub "
    "summary sup table caption tbody td th thead tr ul"
)


class ClearHiddenTracebacks(NbGraderPreprocessor):
    """Takes the frames that show a hidden test out of tracebacks, and leaves those of the student's code."""

    def preprocess_cell(
        self,
        cell: NotebookNode,
        resources: ResourcesDict,
        cell_index: int,  # noqa: ARG002
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Do it for one cell."""
        region = cell.source.partition("BEGIN HIDDEN TESTS")[2].partition("END HIDDEN TESTS")[0]
        hidden = [line.strip() for line in region.splitlines() if line.strip("# }),")]
        for error in (output for output in cell.get("outputs", []) if output.output_type == "error"):
            frames = [one for one in error.traceback if not any(line in strip_ansi(one) for line in hidden)]
            lines = ([line for line in one.split("\n") if " HIDDEN TESTS" not in line] for one in frames)
            error.traceback = ["\n".join(kept) for kept in lines]
        return cell, resources


class HarmlessHTML(SanitizeHTML):
    """Cleans what a student could have written, and puts what a figure shows into words.

    A picture may be a request to somebody's server, so pictures go; their alternative text stays.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.enabled, self.strip = True, True  # what is not allowed would be shown as source
        self.tags = TAGS.split()
        self.attributes = {"*": ["class", "title"], "a": ["href"], "img": ["alt"], "th": ["scope"]}

    def sanitize_html_tags(self, html_str: str) -> str:
        """HTML with nothing alive in it."""
        clean = super().sanitize_html_tags(html_str)
        return re.sub(r'<img(?: alt="([^"]*)")?\s*/?>', r'<span class="figure">Figure: \1</span>', clean)


class ReadableHeader(CSSHTMLHeaderPreprocessor):
    """Adds what makes wide tables and long messages fit."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.enabled = True

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Add it to the page's styles."""
        nb, resources = super().preprocess(nb, resources)
        # nbgrader's template has no other place in the head of the page.
        resources["inlining"]["css"].append(f"{STYLE}</style>{VIEWPORT}<style>")
        return nb, resources


def harmless_html(config: Config) -> Any:
    """A filter that renders markdown and cleans what came of it: before, a link to a script is no HTML."""
    return lambda markdown: HarmlessHTML(config=config).sanitize_html_tags(markdown2html(markdown))
