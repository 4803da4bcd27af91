"""The site: Sphinx with MyST-NB. `make docs` builds it into docs/_build/html.

The learners' notebooks are copied from labs/ and run while the site is built, so that a page shows what a
learner sees. The instructor's notebooks, with answers and hidden checks, are never copied.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import starvelab

DOCS = Path(__file__).resolve().parent
REPOSITORY = DOCS.parent
sys.path.insert(0, str(DOCS))

from addresses import IN_A_TAB  # noqa: E402
from feed_the_gpu import draw_link  # noqa: E402

project = "starvelab"
author = "starvelab contributors"
copyright = "starvelab contributors, Apache-2.0"  # noqa: A001 (Sphinx calls it so)
version = release = starvelab.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "_generated", "**/.ipynb_checkpoints"]

# --- text -----------------------------------------------------------------------------------------
myst_enable_extensions = ["deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3  # the same anchors that GitHub makes, so that links work in both places
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more: the dimension and the shape


html_math_renderer = "mathml"


def setup(app: Sphinx) -> None:
    """Write assumptions by their name and formulas as MathML, and give the menu levels."""

    def formula(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
        # Browsers draw MathML themselves; Sphinx would load MathJax from another site.
        drawn = convert(node.astext(), display="block" if isinstance(node, nodes.math_block) else "inline")
        translator.body.append(f'<span class="formula">{drawn}</span>')
        raise nodes.SkipNode

    def named(*told: object) -> tuple[str | None, str | None]:
        signature, returned = told[-2:]
        for assumptions in (starvelab.TUTORIAL, starvelab.PUBLISHED):
            # Sphinx has put the table on one line.
            table = repr(assumptions).replace("\n", " ")
            signature = signature and signature.replace(table, assumptions.name)
        return signature, returned

    def leveled(_app: Sphinx, _page: str, _template: str, context: dict[str, object], _tree: object) -> None:
        # A heading without its level is an error to whoever listens to the menu.
        menu = str(context.get("furo_navigation_tree", ""))
        context["furo_navigation_tree"] = menu.replace('role="heading"', 'role="heading" aria-level="2"')

    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-signature", named)
    app.connect("html-page-context", leveled, priority=900)


# --- the learners' notebooks ----------------------------------------------------------------------
nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_in_temp = True  # so that no predictions.json is left beside a notebook
# Live notebooks measure the machine that builds the site; here nothing is worth measuring.
os.environ["STARVELAB_CLOCK"] = "simulated"
os.environ.setdefault("STARVELAB_CACHE", str(Path(tempfile.gettempdir()) / "starvelab-docs"))
os.environ["MPLBACKEND"] = "agg"
# A traceback may begin inside a docstring, and then it cannot be colored as Python.
suppress_warnings = ["misc.highlighting_failure"]

PREVIEW = (
    '<p class="start"><a href="{to}">Open this notebook</a></p>\n\n'
    "*This page shows the notebook as it opens: no prediction is locked, and no exercise is answered.*"
)

# A hidden cell: it shows widgets without a kernel behind them. It names the state of the package as well, so
# that the cache runs a notebook again when what it imports has changed.
FILES = sorted(path for path in REPOSITORY.glob("starvelab/**/*.*") if path.suffix != ".pyc")
FILES.append(DOCS / "static_widgets.py")
STATE = hashlib.sha256(b"".join(path.read_bytes() for path in FILES)).hexdigest()[:12]
STILL = f"import sys\nsys.path.insert(0, {str(DOCS)!r})\nimport static_widgets  # starvelab {STATE}"


def copy_student_notebooks() -> None:
    """Copy labs/ to docs/learners/: an exercise without an answer may fail, and folded cells stay folded."""
    for source in sorted(REPOSITORY.glob("labs/*/*.ipynb")):
        notebook = nbformat.read(source, as_version=4)
        for cell in notebook.cells:
            told = cell.metadata.get("nbgrader", {})
            if cell.cell_type == "code" and (told.get("grade") or told.get("solution")):
                cell.metadata.setdefault("tags", []).append("raises-exception")
            if cell.metadata.get("jupyter", {}).get("source_hidden"):
                cell.metadata.setdefault("tags", []).append("hide-input")
        to = f"{IN_A_TAB}{source.parent.name}/{source.name}"
        note = nbformat.v4.new_markdown_cell(PREVIEW.format(to=to), id="preview")
        still = nbformat.v4.new_code_cell(STILL, id="still", metadata={"tags": ["remove-cell"]})
        notebook.cells[1:1] = [note, still]
        target = DOCS / "learners" / source.parent.name / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = nbformat.writes(notebook)
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


shutil.rmtree(DOCS / "learners", ignore_errors=True)
copy_student_notebooks()

# --- the pages ------------------------------------------------------------------------------------
html_theme = "furo"
html_title = "starvelab"
html_static_path = ["_static"]
html_favicon = "_extra/feed-the-gpu/icon.svg"
html_css_files = ["site.css"]
draw_link(DOCS / "_generated/feed-the-gpu/link.png")
# Copied as they are: pages that are no documents, and the script that they share with the lab.
html_extra_path = ["_extra", "_generated", "../starvelab/lesson/widgets/moving.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "source_repository": "https://github.com/starvelab/starvelab/",
    "source_branch": "main",
    "source_directory": "docs/",
}

# --- links (make docs-links) ----------------------------------------------------------------------
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_workers = 4
linkcheck_ignore = [r"https://mybinder\.org/v2/.*"]  # opening it would start a machine
