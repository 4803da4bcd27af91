"""Derives each notebook, the instructor's and the student's, from one script in the percent format.

It knows nothing of what the notebooks teach. jupytext reads the script, and nbgrader's own
`generate_assignment` makes the student's notebook, so the two cannot drift apart. What somebody hears at the
end who learns alone is in no notebook: the lab reads it from a file of its own.

    python solutions/build.py            write the notebooks
    python solutions/build.py --check    compare only; exit 1 and name the stale ones
"""

import argparse
import json
import os
import re
import shutil
import sys
from base64 import b64encode
from importlib.metadata import requires
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import jupytext
import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from traitlets.config import PyFileConfigLoader

from starvelab_grader.autograde.nbgrader_private import environment_with

REPOSITORY = Path(__file__).resolve().parent.parent
LONGEST_CELL = 12
# Of a folded cell JupyterLab shows the first line: a check would have its expected value there, a board its
# best settings.
SET_UP = "# What this notebook takes from the lab: nothing to change here."
PLUMBING = "# What the next cells show and need: nothing to change here."
# The import lets the lab say which cells to run where a name is missing after a restart of the kernel.
FIRST_LINES = """\
# The check of your answer. It holds the expected values: try first, and look later.
import starvelab.widgets"""
# Cells that call one of these first import it: people run them alone, after a restart of the kernel.
RUN_ALONE = re.compile(r"^(finish|progress|report|scorecard)\(")
# What notebooks write when they are tried: students have their own.
OF_LEARNERS = (
    "predictions.json*", "report.html", "train.txt", "loader.txt", "my_model.py",
)  # fmt: skip
# How long a notebook takes: what there is to read, and what there is to do. In eight that were played by
# keyboard, reading and typing took 0.5 to 0.9 of it: the rest is for thinking.
WORDS_A_MINUTE, MINUTES_A_PREDICTION = 180, 2.5
# A loader to write or to repair takes longer than a formula.
MINUTES_AN_EXERCISE = {"master-the-loader": 25}
MINUTES_OF_A_FORMULA = 5
# How long the cells of each notebook run; written by `python -m benchmarks.notebooks --record`.
RUN_SECONDS = json.loads(Path(__file__).with_name("run_seconds.json").read_text(encoding="utf-8"))
# Show before telling: what a notebook may ask of a learner.
MAX_WORDS, MAX_FIRST = 900, 150
# The author writes these, the first one in the first cell, and the build puts what they stand for there.
MINUTES, PACKAGES = "MINUTES", "PACKAGES"

# Stands at the beginning of the first set-up cell. A cell of its own would be a second one before there is
# something to see, and a line with %pip no Python that a test or the grader could read.
INSTALL_IN_COLAB = """\
import os
if "COLAB_RELEASE_TAG" in os.environ:  # Google Colab has to install the lab first.
    get_ipython().system("pip install -q 'starvelab[notebooks] @ "
                         "git+https://github.com/starvelab/starvelab'")
"""
DOCTOR_IN_COLAB = """\
    get_ipython().system("pip install -q 'starvelab-doctor @ git+https://"
                         "github.com/starvelab/starvelab#subdirectory=doctor'")
"""

# What the author writes after `# %%`, and what nbgrader calls it.
ROLES = {
    "setup": {"cell_type": "code", "grade": False, "solution": False, "locked": True},
    "answer": {"cell_type": "code", "grade": False, "solution": True, "locked": False},
    "test": {"cell_type": "code", "grade": True, "solution": False, "locked": True},
    "essay": {"cell_type": "markdown", "grade": True, "solution": True, "locked": False},
}
KEYS = {"role", "id", "points", "tags"}
LAYOUT = {"cell_marker", "lines_to_next_cell", "lines_to_end_of_cell_marker"}  # what jupytext adds itself
FOLDED = "folded"  # the tag of a cell that nobody has to read
# The tag of a cell that calls `finish`, and the region in it that says which figures are drawn for an answer.
ALONE = "learning-alone"
CALL = re.compile(r'^finish\("([\w-]+)", (\w+), final=False\)$', re.MULTILINE)
ENDING = re.compile(r"\n### BEGIN ENDING\n(.*?)\n### END ENDING", re.DOTALL)
ENDINGS = Path("starvelab/lesson/endings.json")
REGIONS = {"SOLUTION": "answer", "HIDDEN TESTS": "test", "MARK SCHEME": "essay", "ENDING": ALONE}

# Fixed, because a notebook saved by hand carries the versions of the machine it was saved on.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class MarkupError(ValueError):
    """A script breaks a rule of the markup."""


def instructor_notebook(script, name):
    """The instructor's notebook of a script, as text. Raises MarkupError, naming the cell and the rule."""
    parsed = _parsed(script)
    cells = [_cell(cell, f"{name}, cell {n}", f"cell-{n:02}") for n, cell in enumerate(parsed, start=1)]
    _fold_set_up(cells)
    for cell in (cell for cell in cells if cell.cell_type == "markdown"):
        cell.source = cell.source.replace(PACKAGES, packages())
    cells[0].source = cells[0].source.replace(MINUTES, str(counts(cells).minutes(name)))
    for n, cell in enumerate(cells, start=1):
        if cell.id in (other.id for other in cells[: n - 1]):
            raise MarkupError(f'{name}, cell {n}: an id names one cell; "{cell.id}" came twice.')
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def packages():
    """The sentence on the packages that count in grading: what the lab installs for its notebooks."""
    wanted = re.compile(r"(?!.*\bextra ==)|.*\bextra == .notebooks\b")
    required = filter(wanted.match, requires("starvelab"))
    *names, last = sorted(re.match(r"[\w-]+", each)[0] for each in required)
    return f"Graded code may import Python's own modules, starvelab, {', '.join(names)} and {last}."


def _parsed(script):
    # Without comment_magics=False a comment such as "# cat food" would become the shell command "cat food".
    parsed = jupytext.reads(script, {"extension": ".py", "format_name": "percent", "comment_magics": False})
    return parsed.cells


def endings(scripts):
    """The endings by the id of an answer and its function: the model answer, and what is drawn for it."""
    found = {}
    for script in scripts:
        cells = _parsed(script.read_text(encoding="utf-8"))
        answers = {cell.metadata.get("id"): cell.source for cell in cells}
        for ending, cell in ((ENDING.search(cell.source), cell) for cell in cells):
            if ending:
                key, function = CALL.findall(cell.source)[0]
                text = f"{answers[key]}\n\n{ending[1]}\n"
                found.setdefault(key, {})[function] = b64encode(text.encode()).decode()
    return found


def _fold_set_up(cells):
    """Fold what sets a notebook up; the first such cell begins with what only Google Colab needs."""
    locked = [cell for cell in cells if cell.metadata.get("nbgrader", {}).get("locked")]
    for n, cell in enumerate(cell for cell in locked if not cell.metadata.nbgrader.grade):
        doctor = DOCTOR_IN_COLAB if "starvelab_doctor" in cell.source else ""
        install = "" if n else f"{INSTALL_IN_COLAB}{doctor}\n"
        cell.source = f"{PLUMBING if n else SET_UP}\n{install}{cell.source}"
        cell.metadata["jupyter"] = {"source_hidden": True}


class Counts(NamedTuple):
    """What a notebook asks of a learner: `first` are the words before the first code that is not folded."""

    words: int
    lines: int
    first: int
    exercises: int
    predictions: int

    def minutes(self, name):
        """Return how long a learner takes to read, to predict and to do the exercises, and cells to run."""
        path = Path(name)
        running = RUN_SECONDS.get(f"{path.parent.name}/{path.stem}", 0) / 60
        of_one = MINUTES_AN_EXERCISE.get(path.parent.name, MINUTES_OF_A_FORMULA)
        doing = of_one * self.exercises + MINUTES_A_PREDICTION * self.predictions
        return ceil(self.words / WORDS_A_MINUTE + doing + running)


def counts(cells):
    """Count the words, and the lines of code that are neither folded nor an answer's."""
    words, lines, first = 0, 0, None
    for cell in cells:
        answer = cell.metadata.get("nbgrader", {}).get("solution", False)
        if cell.cell_type == "markdown":
            words += 0 if answer else len(cell.source.split())
        elif not cell.metadata.get("jupyter"):
            first = words if first is None else first
            if not answer:
                lines += sum(bool(line.strip()) for line in cell.source.splitlines())
    # Where predictions count, whoever has locked them has nothing to do.
    asking = (cell for cell in cells if "lock_predictions(" not in cell.source)
    exercises = sum(cell.metadata.get("nbgrader", {}).get("grade", False) for cell in asking)
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    predictions = sum(len(re.findall(r"^predict\(", source, flags=re.MULTILINE)) for source in code)
    return Counts(words, lines, words if first is None else first, exercises, predictions)


def _cell(parsed, where, position):
    """One cell, with nbgrader's metadata where the author gave it a role."""
    said = {key: value for key, value in parsed.metadata.items() if key not in LAYOUT}
    _check_header(said, parsed, where)
    _check_regions(ALONE if ALONE in said.get("tags", ()) else said.get("role"), parsed.source, where)
    new = nbformat.v4.new_markdown_cell if parsed.cell_type == "markdown" else nbformat.v4.new_code_cell
    source = RUN_ALONE.sub(r"from starvelab.widgets import \1\n\g<0>", ENDING.sub("", parsed.source))
    cell = new(source, id=said.get("id", position))
    if "tags" in said:
        cell.metadata["tags"] = said["tags"]
    if FOLDED in said.get("tags", ()):
        cell.source = f"{PLUMBING}\n{cell.source}"
        cell.metadata["jupyter"] = {"source_hidden": True}
    if "role" in said:
        flags = {key: value for key, value in ROLES[said["role"]].items() if key != "cell_type"}
        cell.metadata["nbgrader"] = {"schema_version": 3, "task": False, "grade_id": said["id"], **flags}
        if flags["grade"]:
            cell.metadata["nbgrader"]["points"] = said["points"]
        if said["role"] == "test":
            # It holds the expected values and every mistake that has a name: folded, hints mean something.
            cell.metadata["jupyter"] = {"source_hidden": True}
            cell.source = f"{FIRST_LINES}\n{cell.source}"
    return cell


def _check_header(said, parsed, where):
    """Refuse what follows `# %%` if it is not a role with what the role needs."""
    role, points, kind = said.get("role"), said.get("points"), parsed.cell_type
    known, is_named = ROLES.get(role, {}), re.fullmatch(r"[a-z\d]+(-[a-z\d]+)*", str(said.get("id", "")))
    is_number = isinstance(points, int | float) and not isinstance(points, bool) and points >= 0
    rules = {
        f'takes {", ".join(sorted(KEYS))}, as in id="x"': said.keys() <= KEYS,
        f"has a role of {', '.join(ROLES)}, or neither id nor points": known or said.keys() <= {"tags"},
        f"of role {role} is for {known.get('cell_type')} cells": known.get("cell_type", kind) == kind,
        "with a role has an id in kebab-case": not known or is_named,
        f"of role {role} has points, 0 or more": not known.get("grade") or is_number,
        f"of role {role} has no points": known.get("grade") or points is None,
    }
    for rule, holds in rules.items():
        if not holds:
            raise MarkupError(f"{where}: a header {rule}; {said} came.")


def _check_regions(role, source, where):
    """Refuse BEGIN and END lines that do not pair up, or that stand where nbgrader would not remove them."""
    for region, owner in REGIONS.items():
        marks = re.findall(rf"\b(BEGIN|END) {region}\b", source)
        if marks != ["BEGIN", "END"] * (len(marks) // 2):
            raise MarkupError(f"{where}: each BEGIN {region} needs its END {region}; {' '.join(marks)} came.")
        if marks and role != owner:
            kind = "tag" if owner == ALONE else "role"
            raise MarkupError(f"{where}: BEGIN {region} needs {kind} {owner}; {role or 'no role'} came.")
    if role == "answer" and "BEGIN SOLUTION" not in source:
        raise MarkupError(f"{where}: role answer needs a BEGIN SOLUTION region; none came.")


def derive(root, scratch):
    """The contents of each derived file by its path below `root`; `scratch` is an empty folder to work in."""
    config = PyFileConfigLoader(str(REPOSITORY / "nbgrader_config.py")).load_config()
    config.CourseDirectory.root = str(scratch)
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    ignored = shutil.ignore_patterns(*config.CourseDirectory.ignore, "*.ipynb", *OF_LEARNERS)
    for assignment in sorted({script.parent for script in _scripts(root)}):
        folder = scratch / "solutions" / assignment.name
        shutil.copytree(assignment, folder, ignore=ignored)
        for script in sorted(assignment.glob("[0-9][0-9]_*.py")):
            name = script.relative_to(root).as_posix()
            text = instructor_notebook(script.read_text(encoding="utf-8"), name)
            (folder / f"{script.stem}.ipynb").write_text(text, encoding="utf-8", newline="\n")
        course = CourseDirectory(config=config, assignment_id=assignment.name)
        GenerateAssignment(coursedir=course, config=config).start()
    for notebook in sorted(scratch.glob("labs/*/*.ipynb")):
        _check_counts(notebook.relative_to(scratch).as_posix(), nbformat.read(notebook, as_version=4).cells)
    made = [*scratch.glob("solutions/*/*.ipynb"), *scratch.glob("labs/*/**/*")]
    derived = {path.relative_to(scratch): path.read_bytes() for path in sorted(made) if path.is_file()}
    if told := endings(_scripts(root)):
        derived[ENDINGS] = json.dumps(told, indent=0).encode() + b"\n"
    return derived


def _scripts(root):
    found = sorted(root.glob("solutions/*/[0-9][0-9]_*.py"))
    if not found:
        raise MarkupError(f"{root}: notebooks are made from solutions/ASSIGNMENT/NN_name.py; none came.")
    return found


def _check_counts(name, cells):
    """Refuse a cell or a notebook that asks too much of a learner."""
    for n, cell in enumerate(cells, start=1):
        lines = len(cell.source.splitlines())
        # What is folded nobody has to read.
        if cell.cell_type == "code" and not cell.metadata.get("jupyter") and lines > LONGEST_CELL:
            raise MarkupError(
                f"{name}, cell {n}: a code cell has {LONGEST_CELL} lines at most; {lines} came. Split it."
            )
    found = counts(cells)
    if found.words > MAX_WORDS or found.first > MAX_FIRST:
        raise MarkupError(
            f"{name}: a notebook has {MAX_WORDS} words at most, and {MAX_FIRST} before something is asked; "
            f"{found.words} and {found.first} came. Show it in place of telling it."
        )


def _show_counts(derived):
    """Print what each of the students' notebooks asks of a learner."""
    for path in derived:
        if path.match("labs/*/*.ipynb"):
            found = counts(nbformat.reads(derived[path], as_version=4).cells)
            shown = ", ".join(f"{n:>4} {name}" for name, n in found._asdict().items())
            print(f"{path.as_posix():<60}{shown}")


def main(arguments=None):
    """Write the notebooks, or with --check compare them. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Derive the notebooks from solutions/ASSIGNMENT/NN_name.py.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a notebook is stale")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="the folder of solutions/ and labs/")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    # Deriving notebooks needs no course folder: make none.
    path = os.environ.get("PATH", os.defpath)  # which nbgrader_config.py makes longer
    with TemporaryDirectory() as scratch, environment_with(STARVELAB_COURSE=scratch, PATH=path):
        (Path(scratch) / "gradebook.db").touch()  # else the configuration says that it makes a course
        try:
            derived = derive(root, Path(scratch).resolve())
        except MarkupError as error:
            print(error, file=sys.stderr)
            return 1
    stale = [path for path, made in derived.items() if _contents(root / path) != made]
    if not options.check:
        _show_counts(derived)
    for path in stale:
        print(f"{path.as_posix()}: {'stale' if options.check else 'written'}")
        if not options.check:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(derived[path])
    there = [*root.glob("solutions/*/*.ipynb"), *root.glob("labs/*/*.ipynb")]
    orphans = sorted({path.relative_to(root) for path in there} - derived.keys())
    for path in orphans:
        print(f"{path.as_posix()}: no script makes it; delete it")
    if options.check and stale:
        print("Mend it with: python solutions/build.py (or: make build)")
    return 1 if orphans or (options.check and stale) else 0


def _contents(path):
    return path.read_bytes() if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
