"""The notebooks are derived: always the same bytes, never stale, and what nbgrader itself would release."""

import json
import re
import runpy
import subprocess
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace

import nbformat
import pytest
from nbformat import NotebookNode

from tests.assignments import ASSIGNMENTS, NOTEBOOKS

pytest.importorskip("starvelab_grader")  # the notebooks are made as the configuration of the course says
pytestmark = [pytest.mark.long, pytest.mark.programs]

SCRIPT = '''\
# %% [markdown]
# # Doubling
# Prose, with `code`.

# %% role="setup" id="setup"
import math
# cat food

# %%
print("play")

# %% role="answer" id="double"
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% role="test" id="double-test" points=6
assert double(2) == 4, "Twice two is four."
### BEGIN HIDDEN TESTS
assert double(7) == 14
### END HIDDEN TESTS

# %% [markdown] role="essay" id="explain-double" points=4
# Because it is x + x.
#
# ### BEGIN MARK SCHEME
# 4: says so.
# ### END MARK SCHEME
'''


@pytest.fixture(scope="module")
def build(repository: Path) -> SimpleNamespace:
    """The names of solutions/build.py: run, not imported, so that no __pycache__ appears in solutions/."""
    return SimpleNamespace(**runpy.run_path(str(repository / "solutions" / "build.py")))


@pytest.fixture
def run(build: SimpleNamespace, tmp_path: Path) -> Callable[..., int]:
    """Build below tmp_path; returns the exit status."""
    return lambda *arguments: build.main([*arguments, "--root", str(tmp_path)])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "solutions" / "doubling" / "01_double.py"
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def made(run: Callable[..., int], script: Path, tmp_path: Path) -> Callable[..., list[list[NotebookNode]]]:
    """Build what is written; the cells of the instructor's notebook, and those of the student's."""

    def build_it(source: str = SCRIPT) -> list[list[NotebookNode]]:
        script.write_text(source)
        assert run() == 0
        paths = (script.with_suffix(".ipynb"), tmp_path / "labs" / "doubling" / "01_double.ipynb")
        return [nbformat.read(path, as_version=4).cells for path in paths]

    return build_it


def notebooks_of(repository: Path, *folders: str) -> list[Path]:
    found = sorted(path for folder in folders for path in repository.glob(f"{folder}/*/*.ipynb"))
    assert found, f"no notebooks in {folders}"
    return found


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- the notebooks of the repository; `make lint` says whether they are fresh -----------------------------


def test_no_notebook_holds_an_output_or_what_a_machine_left_in_it(repository, build):
    for path in notebooks_of(repository, "solutions", "labs"):
        notebook = nbformat.read(path, as_version=4)
        assert notebook.metadata == build.METADATA, path
        for cell in notebook.cells:
            allowed = {"nbgrader", "deletable", "editable", "tags", "jupyter"}
            assert set(cell.metadata) <= allowed, (path, cell.id)
            if cell.cell_type == "code":
                assert cell.outputs == [], (path, cell.id)
                assert cell.execution_count is None, (path, cell.id)


def test_no_student_notebook_holds_a_solution_a_hidden_test_or_a_mark_scheme(repository, build):
    for path in notebooks_of(repository, "labs"):
        assert not re.search(f"(BEGIN|END) ({'|'.join(build.REGIONS)})", path.read_text("utf-8")), path
        cells = nbformat.read(path, as_version=4).cells
        assert sum(cell.source.startswith(build.SET_UP) for cell in cells) == 1, path
        for cell in cells:
            # What is seen of a folded cell gives nothing away.
            folded, graded = cell.metadata.get("jupyter"), cell.metadata.get("nbgrader", {}).get("grade")
            opening = build.FIRST_LINES if graded else (build.SET_UP, build.PLUMBING)
            assert not folded or cell.source.startswith(opening), (path, cell.id)


def test_no_prediction_is_committed_since_it_would_stand_in_for_the_learners(repository):
    listed = subprocess.run(
        ["git", "ls-files", "labs", "solutions"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert [name for name in listed.stdout.splitlines() if "predictions.json" in name] == []


# --- what build.py makes of a script -----------------------------------------------------------------


def test_the_instructor_sees_everything_and_the_student_the_stubs(made, build):
    authored, given = made(SCRIPT.replace('# %%\nprint("play")', '# %% tags=["play"]\nprint("play")'))
    assert [cell.id for cell in authored] == [
        "cell-01", "setup", "cell-03", "double", "double-test", "explain-double",
    ]  # fmt: skip
    assert [cell.id for cell in given] == [cell.id for cell in authored]
    assert "return 2 * x" in authored[3].source
    assert "double(7)" in authored[4].source
    assert "MARK SCHEME" in authored[5].source
    assert given[3].source.startswith('def double(x):\n    """Twice x."""\n    # YOUR CODE HERE\n')
    assert "    raise NotImplementedError(" in given[3].source
    assert "2 * x" not in given[3].source
    assert given[4].source == build.FIRST_LINES + '\nassert double(2) == 4, "Twice two is four."'
    assert given[5].source == "Your answer here."
    assert authored[2].metadata.tags == ["play"]
    # A comment that reads like a shell command stays a comment.
    assert authored[1].source == f"{build.SET_UP}\n{build.INSTALL_IN_COLAB}\nimport math\n# cat food"


def test_each_role_becomes_what_nbgrader_calls_it_and_test_cells_come_folded(made):
    both = made()
    seen = {
        cell.id: (m.grade, m.solution, m.locked, m.get("points"), cell.metadata.get("editable", True))
        for cell in both[1]
        if (m := cell.metadata.get("nbgrader"))
    }
    assert seen == {
        "setup": (False, False, True, None, False),
        "double": (False, True, False, None, True),
        "double-test": (True, False, True, 6, False),
        "explain-double": (True, True, False, 4, True),
    }
    for cells in both:
        folded = {cell.id: cell.metadata.jupyter for cell in cells if "jupyter" in cell.metadata}
        assert folded == {"setup": {"source_hidden": True}, "double-test": {"source_hidden": True}}


def test_the_first_cell_says_how_long_the_notebook_takes(build, made, monkeypatch):
    assert (
        "About 11 minutes." in made(SCRIPT.replace("# # Doubling", "# About MINUTES minutes."))[0][0].source
    )
    # By hand: 360 words, two exercises and a prediction; its cells run for no time that is recorded.
    asked = build.Counts(words=360, lines=11, first=0, exercises=2, predictions=1)
    assert [asked.minutes(name) for name in ("doubling/01_double", "master-the-loader/01_double")] == [15, 55]
    monkeypatch.setitem(build.RUN_SECONDS, "doubling/01_double", 150)
    assert asked.minutes("doubling/01_double.py") == 17


def test_the_first_notebook_of_each_assignment_says_which_packages_count(build, made):
    assert "numpy" in build.packages()
    assert "pandas" not in build.packages()
    said = made(SCRIPT.replace("Prose,", "Prose. PACKAGES"))[0][0].source
    assert said == f"# Doubling\nProse. {build.packages()} with `code`."
    for assignment in ASSIGNMENTS:
        first, *_ = (notebook for notebook in NOTEBOOKS if notebook.assignment == assignment)
        assert build.packages() in "\n".join(cell.source for cell in first.cells), assignment


ALONE = """\
# %% tags=["learning-alone"]
finish("double", double, final=False)
### BEGIN ENDING
ending = 6, "numbers", lambda draw: (draw.randint(1, 9),)
### END ENDING

# %% [markdown] role="essay\""""


def test_an_ending_is_in_no_notebook_and_goes_with_its_model_answer_into_a_file_of_the_lab(made, tmp_path):
    made()
    assert not (tmp_path / "starvelab").exists()
    for cells in made(SCRIPT.replace('# %% [markdown] role="essay"', ALONE)):
        (cell,) = (cell for cell in cells if "finish" in cell.source)
        assert cell.source == 'from starvelab.widgets import finish\nfinish("double", double, final=False)'
        assert cell.metadata.tags == ["learning-alone"]
    told = json.loads((tmp_path / "starvelab/lesson/endings.json").read_text())
    names = {}
    exec(b64decode(told["double"]["double"]), names)
    assert names["double"](4) == 8
    assert names["ending"][2](Random(0))[0] in range(1, 10)


def test_two_builds_give_the_same_bytes_and_other_files_go_to_the_students(run, script, tmp_path, capsys):
    (script.parent / "rates.csv").write_text("1\n")
    assert run() == 0
    shown = next(line for line in capsys.readouterr().out.splitlines() if "words" in line)
    assert " ".join(shown.split()).endswith("5 words, 1 lines, 5 first, 2 exercises, 0 predictions")
    first = files_below(tmp_path)
    for path in [*tmp_path.rglob("*.ipynb")]:
        path.unlink()
    assert run() == 0
    assert files_below(tmp_path) == first
    assert sorted(files_below(tmp_path / "labs")) == ["doubling/01_double.ipynb", "doubling/rates.csv"]
    script.unlink()
    capsys.readouterr()
    assert run("--check") == 1
    assert capsys.readouterr().err == (
        f"{tmp_path.resolve()}: notebooks are made from solutions/ASSIGNMENT/NN_name.py; none came.\n"
    )


def test_a_notebook_that_was_edited_by_hand_is_named_and_only_build_mends_it(run, script, tmp_path, capsys):
    assert run() == 0
    given = tmp_path / "labs" / "doubling" / "01_double.ipynb"
    notebook = json.loads(given.read_text())
    notebook["cells"][0]["source"] = ["Tampered"]
    given.write_text(json.dumps(notebook))
    capsys.readouterr()
    assert run("--check") == 1
    assert capsys.readouterr().out.splitlines() == [
        "labs/doubling/01_double.ipynb: stale",
        "Mend it with: python solutions/build.py (or: make build)",
    ]
    assert "Tampered" in given.read_text()
    assert run() == 0
    assert run("--check") == 0
    # One without a script is named, and not deleted.
    orphan = given.with_name("02_old.ipynb")
    orphan.write_text("{}")
    capsys.readouterr()
    assert run("--check") == 1
    assert capsys.readouterr().out == "labs/doubling/02_old.ipynb: no script makes it; delete it\n"
    assert orphan.exists()


def test_a_code_cell_has_twelve_lines_at_most_as_the_learner_sees_it(run, script, capsys):
    hidden = "\n".join("assert double(0) == 0" for _ in range(20))
    script.write_text(SCRIPT.replace("assert double(7) == 14", hidden))
    assert run() == 0, "hidden tests do not count"
    script.write_text(SCRIPT.replace('print("play")', "\n".join(f"print({n})" for n in range(13))))
    capsys.readouterr()
    assert run() == 1
    assert capsys.readouterr().err == (
        "labs/doubling/01_double.ipynb, cell 3: a code cell has 12 lines at most; 13 came. Split it.\n"
    )


NAME = "labs/doubling/01_double.ipynb"
ONE = f"{NAME}: a notebook has {{}} words at most, and {{}} before something is asked; "


@pytest.mark.parametrize(
    ("limit", "message"), [({"MAX_WORDS": 4}, ONE.format(4, 150)), ({"MAX_FIRST": 4}, ONE.format(900, 4))]
)
def test_what_asks_too_much_of_a_learner_is_refused(build, run, script, monkeypatch, capsys, limit, message):
    for name, most in limit.items():
        monkeypatch.setitem(build.main.__globals__, name, most)
    assert run() == 1
    assert capsys.readouterr().err == f"{message}5 and 5 came. Show it in place of telling it.\n"


def test_the_whole_lab_says_little_and_shows_little_code(build, repository):
    labs = notebooks_of(repository, "labs")
    found = [build.counts(nbformat.read(path, as_version=4).cells) for path in labs]
    assert sum(one.words for one in found) <= 10_500
    assert sum(one.lines for one in found) <= 900


TAKES = 'a header takes id, points, role, tags, as in id="x"; '
REFUSED = [
    ('role="setup"', 'role="lecture"', "cell 2: a header has a role of setup, answer, test, essay, or neit"),
    ("points=6", "point=6", f"cell 5: {TAKES}{{'role': 'test', 'id': 'double-test', 'point': 6}} came."),
    ('role="setup" id="setup"', "role=setup", f"cell 2: {TAKES}{{'incorrectly_encoded_metadata':"),
    (' id="setup"', "", "cell 2: a header with a role has an id in kebab-case; {'role': 'setup'} came."),
    ('role="setup" id="setup"', 'id="setup"', "cell 2: a header has a role of setup, answer, test, "),
    ('id="double-test"', 'id="double"', 'cell 5: an id names one cell; "double" came twice.'),
    (" points=6", "", "cell 5: a header of role test has points, 0 or more; {'role': 'test', 'id': "),
    ("points=4", "points=-1", "cell 6: a header of role essay has points, 0 or more; {'role': 'essay', "),
    ('id="double"', 'id="double" points=3', "cell 4: a header of role answer has no points; {'role': "),
    ("# %% [markdown] role", "# %% role", "cell 6: a header of role essay is for markdown cells; {'role': "),
    ("    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION\n", "    return 2 * x\n",
     "cell 4: role answer needs a BEGIN SOLUTION region; none came."),
    ('print("play")', "### BEGIN SOLUTION\nprint(4)\n### END SOLUTION",
     "cell 3: BEGIN SOLUTION needs role answer; no role came."),
    ('print("play")', "### BEGIN ENDING\n### END ENDING",
     "cell 3: BEGIN ENDING needs tag learning-alone; no role came."),
    ("### END HIDDEN TESTS", "", "cell 5: each BEGIN HIDDEN TESTS needs its END HIDDEN TESTS; BEGIN came."),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), REFUSED, ids=[said for *_, said in REFUSED])
def test_markup_that_breaks_a_rule_is_refused_with_its_cell_and_the_rule(
    run, script, capsys, old, new, message
):
    script.write_text(broken := SCRIPT.replace(old, new))
    assert broken != SCRIPT
    assert run() == 1
    assert capsys.readouterr().err.startswith(f"solutions/doubling/01_double.py, {message}")
    assert list(script.parents[2].rglob("*.ipynb")) == []
