"""Anybody's course: configured in one line, and refused with the reason where safe checks cannot serve it."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from grader.tests.a_course import RIGHT, exercise_cells, graded_cell, points
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde import releasing
from starvelab_grader.autograde.definition import Definition
from starvelab_grader.autograde.nbgrader_private import NO_RESPONSE
from starvelab_grader.autograde.releasing import (
    ReleaseError,
    as_submission,
    is_remembered,
    release,
    require_full_points,
)
from starvelab_grader.autograde.task import grade
from starvelab_grader.files import read_files
from tests.archives import zipped
from tests.rejected import message

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("one_sandbox")]
QUIZ = "ps1"
CONFIG = """
from starvelab_grader import configure
c = get_config()
configure(c)
c.IsolatedExecute.imports = []
"""
# As the notebooks of a course that nobody wrote for this grader: a table, a class, a generator, a decorator,
# and names that a set-up cell and a plain cell define.
SET_UP = """import numpy as np
class Table:
    def __init__(self, **columns): self.columns = {name: np.array(each) for name, each in columns.items()}
    def __getitem__(self, name): return self.columns[name]
    def mean(self): return Table(**{name: [each.mean()] for name, each in self.columns.items()})
times = Table(read=[1.0, 3.0], decode=[2.0, 6.0])"""
PLAIN = "from functools import wraps\nscale = lambda table: table['read'] * 10"
EXERCISES = {  # what is given, the answer, the points, and the check
    "square": ("def square(x):", "return x * x", 3, "assert square(3) == 9"),
    "table": ("def means(table):", "return table.mean()", 2, "assert means(times)['decode'][0] == 4"),
    "class": ("class Counter:", "n = 0\n    def add(self): self.n += 1; return self", 2,
              "assert Counter().add().add().n == 2"),
    "generator": ("def halves(x):", "while True:\n        x /= 2\n        yield x", 2,
                  "it = halves(8.0)\nassert (next(it), next(it)) == (4, 2)"),
    "decorator": ("def twice(f):", "return wraps(f)(lambda x: f(f(x)))", 1,
                  "@twice\ndef more(x): return x + 1\nassert more(1) == 3"),
    "plain": ("def total(table):", "return scale(table).sum()", 1, "assert total(times) == 40"),
}  # fmt: skip
ALL = {f"{name}-test": float(most) for name, (_, _, most, _) in EXERCISES.items()}


def make_quiz(folder: Path) -> Path:
    """A course with one notebook, as nbgrader's quickstart lays it out."""
    cells = [graded_cell(new_code_cell(SET_UP), "set-up", locked=True), new_code_cell(PLAIN, id="plain-code")]
    for name, exercise in EXERCISES.items():
        cells += exercise_cells(name, *exercise)
    (folder / "source" / QUIZ).mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), folder / "source" / QUIZ / "problem1.ipynb")
    (folder / "nbgrader_config.py").write_text(CONFIG)
    return folder


@pytest.fixture
def quiz(tmp_path):
    return make_quiz(tmp_path)


def configured(folder: Path, **settings: object) -> tuple[CourseDirectory, Config]:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
    config.CourseDirectory.root = str(folder)
    config.IsolatedExecute.update(settings, runners=RUNNERS)
    return CourseDirectory(config=config), config


def test_checks_that_need_more_than_plain_data_are_refused_with_the_cell_and_the_kind_of_value(quiz):
    told = message(ReleaseError, release, *configured(quiz), QUIZ)
    assert told.startswith("The reference solution of ps1 does not earn every point, and no student")
    assert "problem1.ipynb, cell class-test (0 of 2): `Counter` cannot leave the sandbox, since it" in told
    assert "problem1.ipynb, cell table-test (0 of 2): " in told
    assert "square-test" not in told
    assert 'c.IsolatedExecute.checks = "inside" in nbgrader_config.py' in told
    assert not (quiz / "release").exists(), "nothing was given out"
    with Gradebook(f"sqlite:///{quiz / 'gradebook.db'}") as book:
        assert book.assignments == []


def test_with_checks_inside_the_solution_earns_all_and_it_is_recorded(quiz, monkeypatch):
    seen = []
    monkeypatch.setattr(releasing, "grade", lambda *given: seen.append(grade(*given)) or seen[-1])
    course, config = configured(quiz, checks="inside")
    release(course, config, QUIZ)
    assert "x * x" not in (quiz / "release" / QUIZ / "problem1.ipynb").read_text()
    assert points(seen[0]) == ALL
    assert sum(ALL.values()) == 11
    assert seen[0].mode == "sandboxed, checks inside"

    assert is_remembered(course, Definition.of(course, config, QUIZ)), "the class need not wait for it"
    assert not is_remembered(course, Definition.of(*configured(quiz), QUIZ))

    # A wrong answer gets no points, nor does one that ends Python, and what stands behind it does.
    definition = Definition.of(course, config, QUIZ)
    submission = as_submission(definition)
    text = submission.notebooks["problem1"].decode().replace("return x * x", "return x + y")
    submission.notebooks["problem1"] = text.replace("self.n += 1", "import os; os._exit(0)").encode()
    wrong = grade(submission, definition, RUNNERS)
    assert points(wrong) == ALL | {"square-test": 0, "class-test": 0}
    with pytest.raises(ReleaseError, match=r"test \(0 of 3\): NameError: name 'y'.* not de") as refused:
        require_full_points(definition, lambda _: wrong)
    assert str(refused.value).endswith("\nCorrect the answer or the check.")


def notebook_with(quiz: Path, *cells: tuple[str, str, float]) -> None:
    """A notebook of set-up, answers and tests: a test has points."""
    made = []
    for name, source, most in cells:
        flags = {"grade": True, "locked": True, "points": most} if most else {"locked": True}
        flags = {"solution": True} if "SOLUTION" in source else flags
        made.append(graded_cell(new_code_cell(source), name, **flags))
    nbformat.write(new_notebook(cells=made), quiz / "source" / QUIZ / "problem1.ipynb")


def refusal(quiz: Path, *cells: tuple[str, str, float]) -> str:
    """What the release of a notebook of these cells says against it."""
    notebook_with(quiz, *cells)
    return message(ReleaseError, release, *configured(quiz), QUIZ)


ANSWER = "def area(x):\n    ### BEGIN SOLUTION\n    {}\n    ### END SOLUTION"


def test_an_argument_that_cannot_cross_and_a_missing_network_are_said_with_what_to_do(quiz):
    test = ("area-test", "assert area(object()) == 2", 2)
    told = refusal(quiz, ("area", ANSWER.format("return 2"), 0), test)
    assert re.search(r"of the type object\nBetween student code and .* = \"inside\"", told)
    told = refusal(
        quiz,
        ("set-up", "from urllib.request import urlopen\ndf = urlopen('http://example.org/a.csv').read()", 0),
        ("area", ANSWER.format("return len(df) * x"), 0),
        ("area-test", "assert area(0) == 0", 2),
    )
    assert "Before it, cell set-up failed: URLError: " in told
    assert told.endswith(
        "\nThe sandbox has no network: put the data beside the notebook, or name their folder in "
        "c.IsolatedExecute.readable. Correct the answer or the check."
    )


def test_what_nbgrader_says_is_one_sentence(quiz):
    notebook_with(quiz, ("area", ANSWER.format("return x"), 0), ("area-test", "assert area(2) == 2", 2))
    path = quiz / "source" / QUIZ / "problem1.ipynb"
    path.write_text(path.read_text().replace('"schema_version": 3', '"schema_version": 1'))
    with pytest.raises(ReleaseError, match=r"the metadata using: nbgrader update \. Nothing was released\.$"):
        release(*configured(quiz), QUIZ)


def test_the_cell_that_failed_first_is_named_where_a_test_only_shows_what_followed(quiz):
    told = refusal(
        quiz,
        ("set-up", "import pandas_of_nobody as pd\ndf = pd.DataFrame({'a': [1]})", 0),
        ("area", ANSWER.format("return df['a'][0] * x"), 0),
        ("area-test", "assert area(2) == 2", 2),
    )
    assert (
        "cell area-test (0 of 2): NameError: name 'df' is not defined. Before it, cell set-up failed: "
        in told
    )
    assert "failed: ModuleNotFoundError: No module named 'pandas_of_nobody'\n" in told
    assert "install there what is missing" in told
    assert "inside" not in told, "which would not help"
    told = refusal(quiz, ("area", ANSWER.format("return 3 * x"), 0), ("area-test", "assert area(2) == 2", 2))
    assert re.search(r"AssertionError:\nCorrect the answer or the check\.$", told)
    told = refusal(
        quiz,
        ("area", ANSWER.format("return x"), 0),
        ("leaves", "### BEGIN SOLUTION\nimport os\nos._exit(1)\n### END SOLUTION", 0),
        ("area-test", "assert area(2) == 3", 2),
    )
    assert "Before it, cell leaves failed: Your cell ended Python." in told


UTILS = """from pathlib import Path
RATE = int(Path(__file__).with_name('rate.txt').read_text())
def twice(x): return RATE * x"""


@pytest.fixture(scope="module")
def helped(tmp_path_factory):
    """A course whose notebook imports modules that stand beside it, released, and what is given out."""
    quiz = make_quiz(tmp_path_factory.mktemp("helped"))
    (quiz / "source" / QUIZ / "plots").mkdir()
    for name, content in {
        "utils.py": UTILS,
        "rate.txt": "2",
        "plots/__init__.py": "from .bars import height",
    }.items():
        (quiz / "source" / QUIZ / name).write_text(content)
    (quiz / "source" / QUIZ / "plots" / "bars.py").write_text("def height(x): return x + 1")
    notebook_with(
        quiz,
        ("set-up", "import numpy as np\nimport utils\nfrom plots import height", 0),
        ("area", ANSWER.format("return height(utils.twice(x)) * np.ones(1)[0]"), 0),
        ("area-test", "assert area(2) == height(utils.twice(2)) == 5", 2),
    )
    course, config = configured(quiz)
    release(course, config, QUIZ)
    return Definition.of(course, config, QUIZ), quiz / "release" / QUIZ


def test_modules_beside_a_notebook_are_given_out_and_can_be_imported_by_both_sides(helped):
    helped, given = helped
    assert {path.name for path in given.iterdir()} == {"plots", "problem1.ipynb", "rate.txt", "utils.py"}
    graded = grade(as_submission(helped), helped, RUNNERS)
    assert points(graded) == {"area-test": 2}
    assert not any(graded.warnings.values()), "what was given out is submitted again"


# One after the other: the first that works earns the points.
CHEATS = r"""import importlib
    for module, name in (("mine", "height"), ("utils", "height"), ("numpy", "height")):
        try: return getattr(importlib.import_module(module), name)(0)
        except (ImportError, AttributeError): pass"""
OWN = "def twice(x): return 2 * x\ndef height(x): return 5\nones = twice\n"
SHADOWS = dict.fromkeys(
    ("utils.py", "plots.py", "numpy.py", "numpy/__init__.py", "plots/bars.py", "mine.py"), OWN
) | {"IPython.py": "raise SystemExit", "utils.pyc": "x", "plots/bars.pyc": "x", "rate.txt": "3"}


def test_a_module_of_a_student_never_stands_in_the_place_of_another(helped):
    helped, _ = helped
    submission = as_submission(helped)
    submission.files |= {name: content.encode() for name, content in SHADOWS.items()}
    graded = grade(submission, helped, RUNNERS)
    assert points(graded) == {"area-test": 2}, "the honest answer takes the instructor's"
    said = {one.text: one.person for one in graded.warnings["problem1"]}
    assert said["`utils.py` was changed, and the one that was given out counts."]
    assert said["`mine.py` was left out, since code beside the notebooks is not run."] is False
    answer = "return height(utils.twice(x)) * np.ones(1)[0]"
    text = helped.source["problem1.ipynb"].decode()
    assert answer in text
    submission.notebooks["problem1"] = text.replace(answer, CHEATS).encode()
    assert points(grade(submission, helped, RUNNERS)) == {"area-test": 0}


def test_a_learners_own_model_never_runs_here_and_the_labs_stands_in_for_it(helped):
    helped, _ = helped
    submission = as_submission(helped)
    submission.files["my_model.py"] = b"def step_time(batch_size): return 0\nraise SystemExit\n"
    answer = "return height(utils.twice(x)) * np.ones(1)[0]"
    text = helped.source["problem1.ipynb"].decode()
    for line in ("import my_model\n", "from starvelab.widgets import my_model as m; my_model = m()\n"):
        check = "return 5 * (my_model.step_time(1000).m_as('ms') > 31)"
        of_the_lab = f"import starvelab.widgets; {line}    {check}"
        submission.notebooks["problem1"] = text.replace(answer, of_the_lab.replace("\n", "\\n")).encode()
        graded = grade(submission, helped, RUNNERS)
        assert points(graded) == {"area-test": 2}
        assert not any(graded.warnings.values()), "the lab wrote it, so nobody is warned"


def test_answers_that_share_a_new_cell_above_their_own_are_told_on_the_page(course):
    """What was given out stands below and undoes one of them, as when the student ran it."""
    nb = course.released()["one"]
    nb.cells.insert(2, new_code_cell(f"{RIGHT['double']}\n{RIGHT['halve']}"))
    course.hand_in("ada", {"one": nb})
    graded = course.graded("ada")
    assert (points(graded)["double-test"], points(graded)["halve-test"]) == (2, 0)
    text = "halve has no answer in its cell. It may be in another cell: double."
    assert (text, True) in [(one.text, one.person) for one in graded.warnings["one"]]
    page = nbformat.reads(graded.files["one.ipynb"].decode(), as_version=4)
    assert text in page.cells[0].source


def test_a_file_whose_place_is_taken_is_named(course):
    course.hand_in("ada", course.solved() | {"data": "2", "data.zip": zipped({"x.csv": "1"})})
    graded = course.graded("ada")
    assert graded.files["data"] == b"2"
    text = "Of a file and a folder with one name the file that came first counts, without `data/x.csv`."
    assert [(one.text, one.person) for one in graded.warnings["one"]] == [(text, True)]


def test_it_earns_without_a_gradebook_what_nbgraders_own_program_writes_into_one(course, monkeypatch):
    """Of an answer that is right, one that is wrong, one as it was given out, and an essay."""
    answers = course.solved(double="def double(x):\n    return x ** 2", why="Because of the bytes.")
    course.hand_in("ada", answers | {"two": course.released()["two"], "notes.txt": "mine"})
    submission, definition = course.handed_in("ada"), course.definition
    with monkeypatch.context() as patch:
        patch.setattr(Gradebook, "__init__", lambda *_: pytest.fail("a gradebook was opened"))
        graded = grade(submission, definition, RUNNERS)
    config = Config(course.config)
    config.CourseDirectory.update({"assignment_id": definition.assignment, "student_id": "ada"})
    Autograde(coursedir=CourseDirectory(config=config), config=config).start()
    with course.gradebook() as book:
        for nb in book.find_submission(definition.assignment, "ada").notebooks:
            grades = {one.name: (one.auto_score, one.needs_manual_grade) for one in nb.grades}
            assert graded.grades[nb.name] == grades
            assert graded.comments[nb.name] == {one.name: one.auto_comment for one in nb.comments}
    assert points(graded) == {"double-test": 0, "halve-test": 3, "why": None, "value-test": 0}
    assert graded.comments == {
        "one": {"double": None, "halve": None, "why": None},
        "two": {"value": NO_RESPONSE},
    }
    written = read_files(course.folder / "course" / "autograded" / "ada" / definition.assignment)
    assert {name: without_time(content) for name, content in graded.files.items()} == {
        name: without_time(content) for name, content in written.items()
    }


def without_time(content: bytes) -> bytes:
    return re.sub(rb'"at": "[^"]*"', b"", content)
