"""All that depends on how nbgrader works inside, and may change with its next version.

The rest of the package uses what nbgrader documents: its classes, its preprocessors and the tables of its
gradebook.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from logging import Logger
from pathlib import Path

import nbgrader.api
import nbgrader.dbutil
import nbgrader.utils
from alembic.script import ScriptDirectory
from jinja2 import Environment, Template
from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_code_cell
from nbgrader import preprocessors
from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from ..files import write_files

# nbgrader's comment on an answer that is as it was given out.
NO_RESPONSE = "No response."
UNSAFE = re.compile(r'["<>\\\x00-\x1f\u2028\u2029]')  # in a page and in its scripts


@contextmanager
def environment_with(**variables: str) -> Iterator[None]:
    """Set these environment variables, and put back what they were before, also after an error."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})


# nbgrader's own function puts nothing back after an error, and deletes a variable that was set before. One
# submission that cannot be graded would then leave its process, such as the JupyterLab that formgrader runs
# in, as one that grades: figures would come out empty, and reveals would store nothing. nbgrader's converters
# look the function up in its module at each call.
nbgrader.utils.setenv = environment_with


def path_with_alembic() -> str:
    """A PATH with the programs beside Python, for nbgrader's `alembic`, also where nothing is activated."""
    programs = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", os.defpath)
    return path if programs in path.split(os.pathsep) else os.pathsep.join([programs, path])


def is_ignored(filename: str, ignore_globs: list[str] | None = None) -> bool:
    """True if the name of a file or a folder, without its path, matches one of the patterns."""
    name = os.path.basename(filename)
    # As in a shell, a pattern means a hidden file only if it begins with a dot itself.
    patterns = [one for one in ignore_globs or () if one.startswith(".") or not name.startswith(".")]
    return any(fnmatchcase(name, pattern) for pattern in patterns)


# nbgrader's own function lists the whole folder for each file and each pattern: a submission of 2,000 files
# took 20 s. It also reads a folder's name as a pattern, so that in "hw [1]" nothing was ignored.
nbgrader.utils.is_ignored = is_ignored


# nbgrader's own function starts `alembic` for it, which takes a second or two for each new gradebook.
nbgrader.api.get_alembic_version = ScriptDirectory(nbgrader.dbutil.ALEMBIC_DIR).get_current_head


@contextmanager
def one_transaction(book: Gradebook) -> Iterator[None]:
    """Write all that nbgrader's own functions write in this block, or nothing of it."""
    session = book.db()
    try:
        # nbgrader commits after each entry.
        session.commit = session.flush
        try:
            yield
        finally:
            del session.commit  # the method of its class counts again
        session.commit()
    except BaseException:
        session.rollback()
        raise


def apply_late_penalty(book: Gradebook, submission: SubmittedAssignment, config: Config) -> None:
    """Set what a late submission costs, as the instructor's own plugin computes it of what was earned."""
    book.db.flush()
    book.db.expire_all()  # scores are sums, which the database makes
    rule = preprocessors.AssignLatePenalties(config=config)
    rule.init_plugin()
    for notebook in submission.notebooks:
        notebook.late_submission_penalty = None
        if submission.total_seconds_late > 0:
            late = submission.total_seconds_late
            penalty = rule.plugin_inst.late_submission_penalty(submission.student_id, notebook.score, late)
            if penalty is not None:
                notebook.late_submission_penalty = rule._check_late_penalty(notebook, penalty)


class _Page(Template):
    """A page on which the name of a student's folder stays a text, in HTML and in strings of JavaScript."""

    def render(self, *args: object, **values: object) -> str:
        names = {name: str(value) for name, value in values.items() if name.endswith("_id")}
        safe = {name: UNSAFE.sub(lambda one: f"\\u{ord(one[0]):04x}", text) for name, text in names.items()}
        return super().render(*args, **values | safe)


class _Pages(Environment):
    template_class = _Page


def escape_names_in_formgrader() -> None:
    """Let formgrader, if it is what loads the configuration, make its pages so."""
    formgrader = sys.modules.get("nbgrader.server_extensions.formgrader.formgrader")
    if formgrader is not None:
        formgrader.Environment = _Pages  # type: ignore[attr-defined]


def steps_of(config: Config, log: Logger, source: Mapping[str, bytes]) -> tuple[Path, list[Preprocessor]]:
    """Copy what stands beside the notebooks, the instructor's last; return its folder, and the steps."""
    grading = Autograde(coursedir=CourseDirectory(config=config), config=config, log=log)
    names = grading.coursedir.assignment_id, grading.coursedir.student_id
    BaseConverter.init_assignment(grading, *names)
    folder, kept = Path(grading._format_dest(*names)), grading.exclude_overwriting.get(names[0], ())
    given = (name for name in source if name not in kept and not name.endswith(".ipynb"))
    write_files(folder, {name: source[name] for name in given})
    exporter = grading.exporter = NotebookExporter(parent=grading, config=grading.config)
    steps: list[Preprocessor] = []
    for grading._sanitizing in (True, False):
        grading._init_preprocessors()
        steps += exporter._preprocessors
    # What these do follows from a graded notebook.
    own = preprocessors.OverwriteKernelspec, preprocessors.SaveAutoGrades, preprocessors.AssignLatePenalties
    return folder, [one for one in steps if type(one) not in own]


def without_hidden_tests(source: str) -> str:
    """The source of a cell as students are given it."""
    cell = new_code_cell(source)
    preprocessors.ClearHiddenTests()._remove_hidden_test_region(cell)
    return str(cell.source)
