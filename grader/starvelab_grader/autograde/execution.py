"""nbgrader's two steps of grading, replaced: a notebook is restored, and it runs with its checks apart.

Student code runs in a sandbox, the checks outside it. Of the files beside the notebooks, data cross into the
sandbox. Modules are the instructor's only: one of a student, whatever its name, could stand in the place of
another.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import all_suffixes
from pathlib import Path

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_solution
from traitlets import Bool, Enum, Float, Instance, Integer, List, Unicode

from ..errors import GraderError
from ..files import VERSION, scratch_folder
from ..plugins import declared
from ..sandbox import bubblewrap
from ..sandbox.process import IMPORTS, Place, Runners
from ..submissions import SubmissionWarning, reference
from ..submissions.reading import read_notebook, restore
from ..submissions.submission import OWN_NUMBER
from ..text import IMPORT, enumerated, shown
from .definition import in_order, reference_cells
from .notebook_run import EXTRA_TIMEOUT, NotebookRun, NotebookRunInside
from .outputs import as_nodes, printed, scored

# How a notebook was run, the safest first.
MODES = ["not run", "sandboxed", "sandboxed, checks inside", "unsafe", "unsafe, checks inside"]
# Where a graded notebook says how it was run, what is to be said of it, and why it was not looked at.
RESULT, WARNINGS, REJECTED = "starvelab_graded", "starvelab_warnings", "starvelab_rejected"
NOTE_ID = "about-your-submission"
# What a notebook says of its run.
SAID = ("notes", "said", "unreadable", "is_out_of_time", "is_limited", "hide_prints")
SETTINGS = ("timeout", "deadline", "max_output", "max_output_in_all", "hide_prints")


class NoSandboxError(GraderError, RuntimeError):
    """Student code cannot be run safely here."""


class RestoreStructure(NbGraderPreprocessor):
    """Puts the instructor's cells back, keeps the answers, and lists on top of the page what it changed."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Make the notebook anew from its sources and from the instructor's cells."""
        names = resources["nbgrader"]
        notebook, assignment = names["notebook"], names["assignment"]
        more, cells = list(names.get("warnings", ())), names.get("cells")
        if cells is None:  # nbgrader's own program has read the notebook
            nb, more[:] = read_notebook(json.dumps(nb).encode())
            with Gradebook(names["db_url"]) as gradebook:
                cells = reference_cells(gradebook, notebook, assignment)
        locked = {cell.name for cell in cells if cell.is_check_side}
        written = reference.read_reference(CourseDirectory(parent=self), assignment, notebook, locked=locked)
        outline = [reference.name_of(cell) or cell.source for cell in written]
        answers = {str(reference.name_of(cell)): cell for cell in written if is_solution(cell)}
        defines = {
            name: reference.defined([cell.source], imports=False)
            for name, cell in answers.items() if cell.cell_type == "code"
        }  # fmt: skip
        more += restore(nb, in_order(cells, written), outline, defines)
        if reason := names.get("rejected"):
            more = [*names["warnings"], reason]
            nb.metadata[REJECTED] = reason.text
        add_warnings(nb, more)
        return nb, resources


def add_warnings(nb: NotebookNode, warnings: Sequence[SubmissionWarning]) -> None:
    """Write warnings on top of a notebook's page, and into the metadata, which become its record."""
    nb.metadata[WARNINGS] = [*nb.metadata.get(WARNINGS, []), *([one.text, one.person] for one in warnings)]
    if warnings and (not nb.cells or nb.cells[0].id != NOTE_ID):
        nb.cells.insert(0, new_markdown_cell("**About your submission**\n", id=NOTE_ID))
    for one in warnings:
        nb.cells[0].source += f"\n- {one.text}"


class IsolatedExecute(NbGraderPreprocessor):
    """Runs a notebook for grading, with student code in bubblewrap and test cells where none of it runs."""

    unsafe = Bool(
        help="Run student code with your own rights where bubblewrap does not work. "
        "It can then read, change and send all that you can.",
    )
    timeout = Float(60.0, min=0, help="Seconds that a cell may take.")
    deadline = Float(
        300.0,
        min=0,
        help="Seconds that all code of a submission may take, with what the "
        "grader itself works on its outputs, cells and values.",
    )
    imports = List(Unicode(), list(IMPORTS), help="What a runner imports before the first cell.")
    readable = List(Unicode(), help="Folders that student code may read, such as those with data sets.")
    max_bytes = Integer(5_000_000, help="Bytes of files beside the notebooks.")
    max_output = Integer(8_000_000, help="Bytes of outputs that a notebook keeps.")
    max_output_in_all = Integer(24_000_000, help="Bytes of outputs that a submission keeps.")
    shown_warnings = List(Unicode(), help="Warnings that another notebook of the submission shows already.")
    checks = Enum(
        ("outside", "inside"), "outside",
        help="Where test cells run: outside of the sandbox, where student code can neither read nor change "
        "them, or inside, in one process with it, for checks whose values cannot leave that process.",
    )  # fmt: skip
    hide_prints = Bool(
        help="Leave out what functions of a student print while checks call them, which may be the inputs of "
        "hidden checks, and on pages what cells of the student put out after those.",
    )
    runners = Instance(Runners, (), help="The runners that notebooks share; `configure` sets them.")

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Run all cells, and put their outputs where nbgrader looks for them; may raise NoSandboxError."""
        result = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "version": VERSION}
        if reason := nb.metadata.get(REJECTED):
            for cell in filter(reference.is_test, nb.cells):
                reply = {"failed": False, "outputs": [printed(reason)], "value": 0.0}
                cell.outputs = as_nodes(scored(reply, max_points=0.0))
            nb.metadata[RESULT] = result | {"mode": "not run"}
            return nb, resources
        is_sandboxed = self._is_sandboxed()
        run = self._run(nb, resources, is_sandboxed)
        mode = ("sandboxed" if is_sandboxed else "unsafe") + ", checks inside" * (self.checks == "inside")
        nb.metadata[RESULT] = result | {"mode": mode, **{name: getattr(run, name) for name in SAID}}
        return nb, resources

    def _run(self, nb: NotebookNode, resources: ResourcesDict, is_sandboxed: bool) -> NotebookRun:
        course, names = CourseDirectory(parent=self), resources["nbgrader"]
        assignment, student = names["assignment"], names["student"]
        released = reference.released_source(course, assignment)
        if not released.is_dir():
            released = Path(course.format_path(course.source_directory, ".", assignment))
        source = reference.read_source(course, released)
        submitted = Path(course.format_path(course.submitted_directory, student, assignment))
        folder = Path(resources["metadata"]["path"])
        files, checks_files, modules, warnings = read_attachments(source, submitted, folder, self.max_bytes)
        restored = {str(reference.name_of(cell)) for cell in nb.cells if reference.is_check_side(cell)}
        written = reference.read_reference(course, assignment, names["notebook"], locked=restored)
        submission = (names.get("db_url"), assignment, student)
        # Of what most notebooks import a sandbox gets what a file of the instructor's imports.
        text = b"\n".join(source.values()).decode("utf-8", "replace")
        used = set(IMPORT.findall(text))
        needed = [one for one in self.imports if one not in IMPORTS or one.split(".")[0] in used]
        more = {"imports": needed, "readable": self.readable}
        self.runners.begin(submission, self.shown_warnings, sandboxed=is_sandboxed, **more)
        with scratch_folder() as here, scratch_folder() as unsafe:
            checks_place = Place(str(here), checks_files, modules)
            student_place = Place(bubblewrap.SCRATCH if is_sandboxed else str(unsafe), files, modules)
            locked = reference.ReferenceNotebook(written, nb.cells)
            settings = {name: getattr(self, name) for name in SETTINGS}
            kind = NotebookRunInside if self.checks == "inside" else NotebookRun
            run = kind(nb, locked, self.runners, checks_place, student_place, **settings)
            run.open()
            try:
                new = [one for one in warnings if one.text not in self.runners.shown_warnings]
                self.runners.shown_warnings |= {one.text for one in new}
                add_warnings(nb, new)
                run.run_cells()
                run.is_limited |= run.time_left() < EXTRA_TIMEOUT
                add_warnings(nb, [SubmissionWarning(run.cut)] if run.cut else [])
            finally:
                run.close()
        return run

    def _is_sandboxed(self) -> bool:
        if reason := bubblewrap.why_not():
            if not self.unsafe:
                raise NoSandboxError(reason)
            self.log.warning("UNSAFE: student code runs with all your rights. %s", reason)
            return False
        for weakness in {bubblewrap.weakness()} - self.runners.logged - {""}:
            self.log.warning(weakness)
            self.runners.logged.add(weakness)
        return True


for _setting in IsolatedExecute.class_own_traits().values():
    _setting.tag(config=True)


def modules_in(paths: Iterable[str]) -> dict[str, str]:
    """Return the files of the modules that can be imported, by their names.

    Examples
    --------
    >>> modules_in(["utils.py", "plots/__init__.py", "plots/bars.py", "data/rates.csv"])
    {'plots': 'plots/__init__.py', 'utils': 'utils.py'}
    """
    places = ((path, path.removesuffix(".py").removesuffix("/__init__")) for path in sorted(paths))
    return {name: path for path, name in places if path.endswith(".py") and "/" not in name}


def read_attachments(
    source: Mapping[str, bytes], submitted: Path, folder: Path, max_bytes: int
) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, str], list[SubmissionWarning]]:
    """Read the files beside the notebooks of a submission, which nbgrader has copied into a folder.

    They are those that the student's side finds, those for the checks, the modules among both, and warnings
    about others. The `source` is the instructor's.
    """
    beside = {name: content for name, content in source.items() if not name.endswith(".ipynb")}
    # Where the student submitted a link, it has copied what that points to, be it the instructor's secret.
    sizes, warnings = {}, []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if _is_linked(folder, inner) or _is_linked(submitted, inner):
            text = f"`{shown(str(inner))}` is a link, and was left out."
            warnings.append(SubmissionWarning(text, person=True))
        elif path.is_file() and inner.as_posix() in declared("unread_files").keys() - beside.keys():
            continue
        elif path.is_file() and path.suffix in all_suffixes():
            name, path = inner.as_posix(), submitted / inner
            text = f"`{shown(name)}` was left out, since code beside the notebooks is not run."
            if name in beside:
                text = f"`{shown(name)}` was changed, and the one that was given out counts."
            # nbgrader has put the instructor's file in the place of a student's, which may be the same.
            if name not in beside or (path.is_file() and path.read_bytes() != beside[name]):
                warnings.append(SubmissionWarning(text, person=name in beside))
        elif path.is_file() and path.suffix != ".ipynb" and inner.parts[0][0] != ".":
            sizes[inner.as_posix()] = path.stat().st_size
    modules = {name: content for name, content in beside.items() if name.endswith(".py")}
    files, left, left_out = dict(modules), max_bytes, []
    own_limits = {name: most for name, (most, _) in declared("student_files").items()}
    # What the lab wrote comes first, and no other file takes its place; then small files, so that most fit.
    for name, size in sorted(sizes.items(), key=lambda item: (item[0] not in own_limits, item[1], item[0])):
        if size > own_limits.get(name, left):
            left_out.append(name)
        else:
            left -= size
            files[name] = (folder / name).read_bytes()
    if left_out:
        others = "".join(f", and `{name}` {most / 1e6:g} MB" for name, most in own_limits.items())
        rule = f"The files beside the notebooks may have {max_bytes / 1e6:g} MB in all{others}."
        text = f"{rule} These were left out: {enumerated(left_out)}."
        warnings.append(SubmissionWarning(text, person=True))
    checks = beside if sum(map(len, beside.values())) <= max_bytes else modules
    own = {name: content for name, content in files.items() if name in {*own_limits, OWN_NUMBER}}
    return files, checks | own, modules_in(modules), warnings


def _is_linked(folder: Path, inner: Path) -> bool:
    """True if a file is a symbolic link, or stands in a folder that is one."""
    return any((folder / part).is_symlink() for part in (inner, *inner.parents[:-1]))
