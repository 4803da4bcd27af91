"""Odd right answers of the lab, and wrong ones that earn a part, earn as much in the sandbox.

tests/test_wrong_answers.py runs every answer and its check in one namespace; here they are apart, as in
grading. Of the wrong answers that earn as much one is tried. One of all is graded in test_round.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from grader.tests.hostile.tiny import cell, execute, points
from grader.tests.shared_runners import RUNNERS
from starvelab.lesson.course.training_script import starved_script
from starvelab_grader.sandbox.process import IMPORTS
from tests.assignments import NOTEBOOKS, Notebook
from tests.notebooks.exercises import exercises

pytestmark = [pytest.mark.long, pytest.mark.sandbox]

# Some answers lock predictions.
FORGET = "from pathlib import Path\nPath('predictions.json').write_text('{}')"
# Nobody may run out of the time that one submission has.
ALL_TOGETHER = {"student": "everybody", "deadline": 3000.0, "imports": list(IMPORTS)}


def filled_in(notebook: Notebook) -> tuple[NotebookNode, dict[str, float]]:
    """Set-up, and for each exercise one answer after the other with its test; what each test cell gives.

    The right answers come last, since later exercises build on them.
    """
    mine = [one for one in exercises(notebook.assignment) if one.notebook == notebook.name]
    nb, earned = new_notebook(cells=[cell("set-up", mine[-1].setup, locked=True)]), {}
    for one in mine:
        partly = {answer.earns: answer for answer in one.wrong if answer.earns}
        for number, answer in enumerate([*partly.values(), *one.right]):
            test = f"{one.test_id}-{number}"
            nb.cells.append(new_code_cell(FORGET))
            nb.cells.append(cell(f"{one.answer_id}-{number}", answer.source, solution=True))
            nb.cells.append(cell(test, one.full, grade=True, locked=True, points=one.points))
            earned[test] = answer.earns
    return nb, earned


@pytest.fixture(scope="module", autouse=True)
def _the_sandbox_of_all_ends() -> Iterator[None]:
    yield
    RUNNERS.end_student()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_each_answer_earns_in_the_sandbox_what_it_should(notebook, tmp_path):
    nb, earned = filled_in(notebook)
    assert points(execute(nb, tmp_path, **ALL_TOGETHER)) == earned


SCRIPT = next(one for one in exercises("master-the-loader") if one.answer_id == "my-script")
OF_THE_FILE = 'def my_script():\n    return script_text("train.txt")'


def repaired_script() -> str:
    names = {"script_text": lambda _: starved_script()}
    exec(SCRIPT.solution, names)
    return str(names["my_script"]())


def earned_by(script: str, folder: Path, answer: str = OF_THE_FILE) -> float:
    """The points of `my-script` for this file."""
    (folder / "train.txt").write_text(script, encoding="utf-8")
    nb = new_notebook(
        cells=[
            cell("set-up", SCRIPT.setup, locked=True),
            cell("my-script", answer, solution=True),
            cell("my-script-test", SCRIPT.full, grade=True, locked=True, points=SCRIPT.points),
        ]
    )
    return points(execute(nb, folder, **ALL_TOGETHER))["my-script-test"]


PATCHED = """import numpy, starvelab.measure as m, starvelab.lesson.course as c
m.run = m.photos = c.training_script = numpy.asarray = None
"""


@pytest.mark.parametrize("before", ["", PATCHED], ids=["as it is", "patched"])
def test_a_script_that_was_repaired_in_its_file_earns_its_points(tmp_path, before):
    """The file reaches the sandbox, and what the notebook has done to its Python costs nothing."""
    assert earned_by(repaired_script(), tmp_path, before + OF_THE_FILE) == SCRIPT.points


IDEAL = """{"workers": 4, "batch size": 32, "shape": [3, 224, 224], "bytes sent": 150528,
    "decoded pixels": 187500, "blurred pixels": 50176, "label reads": 0, "labels used": 1,
    "images sent": 1}"""
# Each stands before the starved script, which by itself earns nothing.
PATCHES = {
    "the object that counts": f"""
import starvelab.lesson.course.training_script as script
script._Work.done = lambda self: {IDEAL}
script.what_it_does = lambda *args: {IDEAL}
script.starved_counts = lambda *args: dict(workers=0)
script._Work._count = lambda *args: None
""",
    "arrays that lie": """
import numpy as np
from starvelab.lesson.course import training_script as parts
class Lie(np.ndarray):
    nbytes = property(lambda self: 150528)
    shape = property(lambda self: (3, 224, 224))
    def tobytes(self): return bytes(150528)
normalize = parts.normalize
parts.normalize = lambda array: normalize(array).view(Lie)
""",
    "the messages": """
from starvelab.lesson.course import training_script as parts
work = parts._work.get()
for number in range(3):
    raw = work("photo")
    work("decode", raw)
    import numpy as np
    work("blur", np.zeros((224, 224, 3), "uint8"))
    work("send", np.zeros((3, 224, 224), "uint8"))
work("settle", 4, 32)
raise SystemExit
""",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_a_script_that_patches_what_counts_earns_nothing(tmp_path, patch):
    assert earned_by(f"{patch}\n{starved_script()}", tmp_path) == 0


def test_counts_that_are_typed_earn_nothing(tmp_path):
    assert earned_by("", tmp_path, f"def my_script():\n    return {IDEAL}") == 0
    patched = "import starvelab.lesson.course.training_script as s\ns._Work.done = lambda self: my_script()\n"
    assert earned_by("", tmp_path, f"{patched}def my_script():\n    return {IDEAL}") == 0
