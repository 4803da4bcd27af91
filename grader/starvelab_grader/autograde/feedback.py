"""The steps that make a feedback page: no hidden checks, nothing that a browser runs, readable on a phone."""

import re
from collections.abc import Callable
from html import escape
from typing import TypeAlias

from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import Preprocessor
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool
from traitlets.config import Config

from ..sandbox.check_messages import BEGIN_HIDDEN, END_HIDDEN
from ..submissions.reference import is_test
from .execution import RESULT
from .notebook_run import ENDED_EARLY, ENDED_PYTHON
from .outputs import as_nodes, printed

Changed: TypeAlias = tuple[NotebookNode, ResourcesDict]
MAX_OUTPUTS = 100  # of a cell
# From the root, or from the home folder; not what is a part of a word, an address or a fraction.
PATH = re.compile(r"(?<![\w/:.~-])~?/(?:[\w.+@-]+/)+([\w.+@-]+)")
COLOR = re.compile(r"(\x1b\[[\d;]*m)")
# A picture, and the text right after it, such as its caption: the tags of figures are left out.
FIGURE = re.compile(r'<img(?: alt="([^"]*)")?\s*/?>([^<]*)')
# A picture within a text, as Colab pastes it.
INLINE = re.compile(r"data:(image/(?:png|jpeg));base64,([\w+/]+=*)", re.ASCII)
# What formgrader tells its page of a student.
NAMES = ("student", "first_name", "last_name", "notebook_path")
AFTER_HIDDEN = "The output of this cell is not shown, because it ran after hidden checks."
TAGS = (
    "a abbr b blockquote br code details div em h1 h2 h3 h4 hr i img kbd li ol p pre small span strong sub "
    "summary sup table caption tbody td th thead tr ul"
)


class ClearHiddenTracebacks(NbGraderPreprocessor):
    """Takes the frames that show a hidden check out of tracebacks, and leaves those of the student's code."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Changed:
        """Change all cells; if the course says so, the student's own show nothing after hidden checks."""
        hides, checks_ran = nb.metadata.get(RESULT, {}).get("hide_prints"), False
        for cell in nb.cells:
            self.preprocess_cell(cell, resources, 0)
            checks_ran |= is_test(cell) and BEGIN_HIDDEN in cell.source
            if hides and checks_ran and not is_test(cell) and cell.get("outputs"):
                errors = [output for output in cell.outputs if output.output_type == "error"]
                cell.outputs = [*as_nodes([printed(AFTER_HIDDEN)]), *errors]
        return nb, resources

    def preprocess_cell(self, cell: NotebookNode, resources: ResourcesDict, _: int) -> Changed:
        """Change one cell."""
        region = cell.source.partition(BEGIN_HIDDEN)[2].partition(END_HIDDEN)[0]
        hidden = [line.strip() for line in region.splitlines() if line.strip("# }),")]
        for error in (output for output in cell.get("outputs", []) if output.output_type == "error"):
            frames = [one for one in error.traceback if not any(line in strip_ansi(one) for line in hidden)]
            lines = ([line for line in one.split("\n") if " HIDDEN TESTS" not in line] for one in frames)
            error.traceback = ["\n".join(kept) for kept in lines]
        return cell, resources


class ReadableOutputs(Preprocessor):
    """Limits what is shown of a cell, removes paths of this machine, and says what ended Python."""

    enabled = Bool(True, help="Whether to use it.").tag(config=True)
    # Of a text: rendering takes a time that grows with the square of the length.
    max_characters = 20_000

    def preprocess_cell(self, cell: NotebookNode, resources: ResourcesDict, _: int) -> Changed:
        """Change one cell."""
        if cell.cell_type == "markdown":
            _attach_inline(cell)
        cell.source = self._cut(cell.source)
        if cell.cell_type == "code":
            cell.outputs = [self._shown(output) for output in cell.outputs[:MAX_OUTPUTS]]
        return cell, resources

    def _shown(self, output: NotebookNode) -> NotebookNode:
        if output.output_type == "stream":
            output.text = self._cut(without_paths(output.text))
        elif output.output_type == "error":
            output.evalue = self._cut(without_paths(output.evalue))
            if output.ename in (ENDED_EARLY, "SystemExit"):
                why = output.evalue if output.ename == ENDED_EARLY else ENDED_PYTHON
                return NotebookNode(printed(why))
            output.traceback = [self._cut(without_paths(one)) for one in output.traceback[:MAX_OUTPUTS]]
        else:
            # Pictures are put into words, by their alternative text; scripts and widgets are not shown.
            texts = ((kind, text) for kind, text in output.data.items() if isinstance(text, str))
            shown = ((kind, without_paths(text)) for kind, text in texts if kind.startswith("text/"))
            output.data = {kind: self._cut(text) for kind, text in shown}
        return output

    def _cut(self, text: str) -> str:
        kept, more = text[: self.max_characters], len(text) - self.max_characters
        return f"{kept}\n[{more} more characters are not shown]" if more > 0 else text


def _attach_inline(cell: NotebookNode) -> None:
    """Attach the pictures within a text, which is cut where it is long."""
    text, *parts = INLINE.split(cell.source)
    attached = dict(cell.get("attachments", {}))
    for number, (kind, content, after) in enumerate(zip(*[iter(parts)] * 3, strict=True)):
        attached[f"inline-{number}"] = {kind: content}
        text += f"attachment:inline-{number}{after}"
    cell.source, cell.attachments = text, NotebookNode(attached)


def without_paths(text: str) -> str:
    """A text in which files of the machine that graded are called by their names alone.

    Examples
    --------
    >>> without_paths('File "/home/ada/course/checks.py", line 3, at 5 img/s; https://a.org/b/c')
    'File "checks.py", line 3, at 5 img/s; https://a.org/b/c'
    """
    return "".join(PATH.sub(r"\1", piece) for piece in COLOR.split(text))


class HarmlessHTML(SanitizeHTML):
    """Cleans what a student could have written; pictures, which may ask a server, become their texts."""

    def __init__(self, **more: object) -> None:
        super().__init__(**more)
        self.enabled, self.strip = True, True  # what is not allowed would be shown as source
        self.tags = TAGS.split()
        self.attributes = {"*": ["class", "title"], "a": ["href"], "img": ["alt"], "th": ["scope"]}

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Changed:
        """Clean the cells, and escape the names that formgrader's page puts above them."""
        for name in NAMES:
            if isinstance(resources.get(name), str):
                resources[name] = escape(resources[name])
        nb, resources = super().preprocess(nb, resources)
        return nb, resources

    def sanitize_html_tags(self, html_str: str) -> str:
        """HTML in which nothing runs."""
        clean = super().sanitize_html_tags(html_str)
        return FIGURE.sub(_in_words, clean)


def _in_words(figure: re.Match[str]) -> str:
    """Return the alternative text of a picture, and what follows it unless that is said already."""
    text, following = figure[1] or "", figure[2]
    said = following.strip() in text
    return f'<span class="figure">Figure: {text}</span>{"" if said else following}'


class PicturesInWords(IPythonRenderer):
    """Renders pictures without their addresses."""

    def image(self, text: str, url: str = "", *_: object, **more: object) -> str:  # noqa: ARG002
        """Return a picture's text alone: nbconvert raises an error where an attached one is missing."""
        return str(super().image(text, ""))


def harmless_html(config: Config, renderer: IPythonRenderer | None = None) -> Callable[[str], str]:
    """A filter that renders markdown and cleans the result: a link to a script becomes HTML only then."""
    return lambda text: HarmlessHTML(config=config).sanitize_html_tags(
        str(MarkdownWithMath(renderer=renderer or PicturesInWords(escape=False)).render(text))
    )
