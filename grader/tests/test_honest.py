"""Honest answers get exactly what they deserve; benchmarks/stock.py tries them under stock nbgrader."""

import shutil
import tomllib
from contextlib import chdir
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from grader.tests.a_course import MOST, RIGHT, TINY, Course, points, source
from grader.tests.hostile.tiny import execute
from grader.tests.hostile.tiny import points as earned
from starvelab.widgets import pack, predict
from starvelab_grader.lms.collecting import collect_download
from tests.archives import zipped

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_sandbox")]

ANSWERS = tomllib.loads((Path(__file__).parent / "honest.toml").read_text(encoding="utf-8"))
# What is done to the whole submission, besides answering all.
HABITS = ("adds", "damages", "stripped", "scatters", "packed", "merges", "keeps-old", "names", "writes-below")


def practise(course: Course, habit: str) -> None:
    """Hand in right answers as somebody of that habit does."""
    solved = course.solved()
    cells = solved["one"].cells
    (double,) = (cell for cell in cells if cell.id == "double")
    files: dict = {}
    if habit == "adds":  # cells, data, files like modules, and outputs that stay
        files = {"notes.txt": "x", "sub/two.txt": "x", "data/factor.txt": "2"}
        files |= {"math.py": "raise SystemExit", "numpy.py": "x = 1"}
        double.source = "with open('data/factor.txt') as file: factor = int(file.read())\n"
        double.source += "def double(x): return factor * x"
        for cell in (cell for cell in cells if cell.cell_type == "code"):
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="Right.\n" * 1000)]
            cell.execution_count = 7
        cells[0:0] = [new_code_cell("1 / 0"), new_code_cell("x = 5\nx")]
    elif habit == "damages":  # a cell is there twice, and a test and all texts are not
        cells.insert(cells.index(double) + 1, nbformat.from_dict(dict(double) | {"id": "copy"}))
        kept = [cell for cell in cells if "nbgrader" in cell.metadata and cell.id != "halve-test"]
        solved["one"].cells = kept
    elif habit == "stripped":  # as an editor of Windows does it that keeps the text of each cell
        for cell in (each for nb in solved.values() for each in nb.cells):
            cell.source = "Because it is." if cell.id == "why" else cell.source.replace("\n", "\r\n")
            cell.metadata = {}
            del cell["id"]
        for nb in solved.values():
            nb.nbformat_minor = 4
        solved = {f"{name}.ipynb": nbformat.writes(nb).encode("utf-16") for name, nb in solved.items()}
    elif habit == "merges":  # an answer into the set-up, and one into its check
        by_id = {cell.id: cell for cell in cells}
        by_id["set-up"].source += f"\n\n{double.source}"
        by_id["halve-test"].source = f"{by_id['halve'].source}\n\n{by_id['halve-test'].source}"
        solved["one"].cells = [cell for cell in cells if cell.id not in ("double", "halve")]
    elif habit == "writes-below":  # in new cells; one answer is left as it was given out, the others are gone
        for nb in solved.values():
            mine = [cell for cell in nb.cells if cell.id in RIGHT]
            nb.cells = [cell for cell in nb.cells if cell.id not in RIGHT]
            nb.cells += [new_code_cell(cell.source) for cell in mine]
        solved["one"].cells.insert(2, course.released()["one"].cells[2])
    elif habit == "keeps-old":  # a notebook in format 3
        solved["one.ipynb"] = nbformat.writes(solved.pop("one"), version=3)
    elif habit == "names":  # files that no file system takes, and that would lead elsewhere
        odd = ["n" * 300, "d/" * 2500 + "x", f"{'d' * 90}/" * 44 + "x", "../../up", "/etc/passwd", "C:\\x"]
        files = {"all.zip": zipped(dict.fromkeys(odd, "1"))}
    elif habit == "scatters":  # each answer stands below its check, and the set-up is the last cell
        cells.reverse()
    if habit == "packed":
        submit_packed(course, habit, solved)
    else:
        course.hand_in(habit, solved | files)


def submit_packed(course: Course, student: str, solved: dict[str, NotebookNode]) -> None:
    """Hand in what `pack()` writes, in a browser's tab as in JupyterLab, uploaded to Moodle as it is."""
    home = course.folder / "home" / TINY
    home.mkdir(parents=True)
    for name, nb in solved.items():
        nbformat.write(nb, home / f"{name}.ipynb")
    with chdir(home):
        predict("which", 3, question="How many?")
    download = course.folder / "download" / student
    download.mkdir(parents=True)
    shutil.move(pack(home).path, download)
    submitted = course.submitted(student).parents[1]
    collected = collect_download(download.parent, submitted, TINY, notebooks=solved)
    assert (collected.new, collected.left_out) == ([student], {})
    assert [path.name for path in course.submitted(student).iterdir()] == [f"{TINY}.zip"]


def answered(name: str, given_out: dict[str, str]) -> dict[str, str]:
    """What somebody has written into each answer cell; an empty answer leaves it as it was given out."""
    told = ANSWERS[name]
    return {cell: told.get(cell, right) or given_out[cell] for cell, right in RIGHT.items()}


def test_each_honest_answer_gets_what_it_deserves(released_course, tmp_path):
    """One after the other in one notebook, each from the beginning."""
    given_out = {cell.id: cell.source for nb in released_course.released().values() for cell in nb.cells}
    _, set_up, *cells = [cell for nb in source().values() for cell in nb.cells]
    nb, deserved = new_notebook(cells=[set_up]), {}
    for name, told in ANSWERS.items():
        answers = answered(name, given_out)
        nb.cells.append(new_code_cell("double = halve = answer = None"))
        for cell in (nbformat.from_dict(cell) for cell in cells if cell.id in RIGHT.keys() | MOST.keys()):
            cell.source = answers.get(cell.id, cell.source)
            cell.id = cell.metadata.nbgrader.grade_id = f"{cell.id}-{name}"
            nb.cells.append(cell)
        deserved |= {f"{test}-{name}": most for test, most in (MOST | told.get("earns", {})).items()}
    assert earned(execute(nb, tmp_path, student="everybody", deadline=3000.0)) == deserved


@pytest.mark.parametrize("habit", HABITS)
def test_no_habit_costs_a_point(course, habit):
    practise(course, habit)
    graded = course.graded(habit)
    found = points(graded)
    assert {cell: found[cell] for cell in MOST} == MOST
    room, submission = course.classroom(), course.handed_in(habit)
    assert room.records.save(graded, submission, room._inputs(submission)).student == habit
    if habit == "stripped":
        assert graded.grades["one"]["why"] == (None, True), "somebody has to read it"
        assert "Because it is." in graded.files["one.ipynb"].decode()
