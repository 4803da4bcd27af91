"""The walkthrough's notebooks: what each must hold, which mistakes they meet, and what Run All shows."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from starvelab.widgets import predict
from starvelab.widgets.reveal import LOCK_FIRST

REPOSITORY = Path(__file__).resolve().parents[1]
WALKTHROUGH = REPOSITORY / "solutions" / "starving-the-gpu"
NOTEBOOKS = sorted(path.stem for path in WALKTHROUGH.glob("*.ipynb"))

# What the walkthrough this lab grew from gets wrong, and where a learner meets it.
MISTAKES = {
    1: ("forward pass taken for a training step", "01_compute_baseline", "it times the forward pass only"),
    2: ("MACs taken for FLOPs", "01_compute_baseline", "It takes multiply-accumulates for FLOPs."),
    3: (
        "a headline that fits no table",
        "01_compute_baseline",
        "The headline does not belong to the tables.",
    ),
    4: ("500 KB for an ImageNet JPEG", "02_storage_check", "The walkthrough's 500 KB is not ImageNet's."),
    5: ("a missing figure read as zero", "02_storage_check", "A missing figure is not a zero"),
    6: ("storage checked once", "05_worker_fix", "checks the drive once, at the start, and forgets it"),
    7: ("sequential stages that overlap", "03_cpu_wall", "and then divides by the slowest of them"),
    8: ("a sweep that misses its crossing", "04_batch_sweep", "Every row is CPU-bound: the crossing lies"),
    9: ("overhead that is called compute", "04_batch_sweep", "of its step is overhead"),
    10: ("workers that scale for ever", "05_worker_fix", "Workers do not scale in a straight line"),
    11: ("DALI for free", "06_your_turn", "because its DALI is free"),
    12: ("an answer that cannot be run", "06_your_turn", "A number is not a plan"),
    13: ("no copy to the device", "02_storage_check", "leaves the copy out altogether"),
    14: ("utilisation that is not nvidia-smi's", "03_cpu_wall", "reports something weaker"),
    15: ("nonsense that is answered", "01_compute_baseline", "a good one does not answer nonsense"),
    16: ("a goal that is not taught", "05_worker_fix", "is among its goals"),
    17: ("other answers elsewhere", "05_worker_fix", "on another version of its package"),
}


@cache
def read(name: str) -> NotebookNode:
    return nbformat.read(WALKTHROUGH / f"{name}.ipynb", as_version=4)


def prose(name: str) -> str:
    """The markdown of a notebook on one line, without emphasis."""
    text = " ".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    return " ".join(text.replace("*", "").split())


def calls(name: str, function: str) -> list[tuple[int, ast.Call]]:
    """Every call of a function, with the position of its cell, that is given something to look at."""
    found = []
    for position, cell in enumerate(read(name).cells):
        if cell.cell_type == "code":
            nodes = (node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call))
            found += [(position, node) for node in nodes if getattr(node.func, "id", None) == function]
    return found


def given(call: ast.Call) -> dict[str, Any]:
    """The arguments of a call that are written out, the first under the name "key"."""
    written = {arg.arg: arg.value for arg in call.keywords} | dict(zip(["key"], call.args, strict=False))
    found = {}
    for name, value in written.items():
        try:
            found[name] = ast.literal_eval(value)
        except ValueError:
            continue
    return found


def questions(name: str) -> dict[str, tuple[int, dict[str, Any]]]:
    """The predictions a notebook asks for: where, and what is asked."""
    asked = ((position, given(call)) for position, call in calls(name, "predict"))
    return {one["key"]: (position, one) for position, one in asked if "question" in one}


# --- what each notebook holds ----------------------------------------------------------------------


def test_the_walkthrough_has_six_notebooks():
    assert NOTEBOOKS == [
        "01_compute_baseline",
        "02_storage_check",
        "03_cpu_wall",
        "04_batch_sweep",
        "05_worker_fix",
        "06_your_turn",
    ]


each_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


@each_notebook
def test_it_opens_with_its_number_and_says_how_long_it_takes(name):
    first = read(name).cells[0].source
    assert re.match(rf"# {int(name[:2])}\. \S", first)
    [minutes] = re.findall(r"about (\d+) minutes", first)
    assert 10 <= int(minutes) <= 20


@each_notebook
def test_it_asks_a_question(name):
    asked = questions(name)
    assert asked
    for _, question in asked.values():
        assert question["question"].endswith("?")


@each_notebook
def test_each_prediction_is_asked_for_before_its_reveal_and_revealed(name):
    asked = questions(name)
    revealed = {}
    for position, call in calls(name, "reveal"):
        revealed.setdefault(given(call)["key"], position)
    assert set(revealed) == set(asked)
    for key, (position, _) in asked.items():
        assert position < revealed[key]


@each_notebook
def test_an_explorer_opens_after_a_prediction_of_its_notebook(name):
    explorers = [given(call) for _, call in calls(name, "explore")]
    assert explorers
    assert {explorer.get("after") for explorer in explorers} <= set(questions(name))


@each_notebook
def test_an_explorer_stands_after_the_reveal(name):
    revealed = {given(call)["key"]: position for position, call in reversed(calls(name, "reveal"))}
    for position, call in calls(name, "explore"):
        assert position > revealed[given(call)["after"]]


@each_notebook
def test_every_exercise_but_the_self_check_has_a_hint(name):
    sections = re.split(r"^#{2,3} ", prose_with_lines(name), flags=re.MULTILINE)
    exercises = [section for section in sections if section.startswith("Exercise ")]
    assert len(exercises) >= 2
    read_by_a_person = [section for section in exercises if "read by a person" in section.splitlines()[0]]
    for exercise in (one for one in exercises if one not in read_by_a_person):
        assert "<details><summary>Hint" in exercise, exercise.splitlines()[0]


def prose_with_lines(name: str) -> str:
    return "\n\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")


@each_notebook
def test_details_are_closed_and_leave_room_for_markdown(name):
    for cell in read(name).cells:
        if cell.cell_type == "markdown":
            opened = re.findall(r"<details><summary>[^<]+</summary>\n\n", cell.source)
            assert len(opened) == cell.source.count("<details") == cell.source.count("\n\n</details>")


@each_notebook
def test_it_ends_with_what_to_take_away_and_what_comes_next(name):
    last = read(name).cells[-1].source
    assert last.startswith("## Take away\n")
    assert re.search(r"^\*\*(Next|What comes next)", last, flags=re.MULTILINE)


@each_notebook
def test_the_next_notebook_is_linked_and_exists(name):
    linked = re.findall(r"\]\((\w+)\.ipynb\)", read(name).cells[-1].source)
    assert linked == NOTEBOOKS[int(name[:2]) : int(name[:2]) + 1]


@each_notebook
def test_a_place_for_the_learners_own_words(name):
    written = [
        cell
        for cell in read(name).cells
        if cell.cell_type == "markdown"
        and (cell.metadata.get("nbgrader", {}).get("solution") or is_note(cell))
    ]
    assert written


def is_note(cell: NotebookNode) -> bool:
    return "own words" in cell.source


@each_notebook
def test_code_cells_are_short(name):
    for cell in read(name).cells:
        if cell.cell_type == "code" and "BEGIN HIDDEN TESTS" not in cell.source:
            assert len(cell.source.splitlines()) <= 12, cell.source


@each_notebook
def test_nothing_is_saved_but_what_was_written(name):
    for cell in read(name).cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert "widgets" not in read(name).metadata


# --- what the walkthrough gets wrong ---------------------------------------------------------------


def test_all_seventeen_mistakes_are_met():
    assert list(MISTAKES) == list(range(1, 18))


@pytest.mark.parametrize(("what", "name", "phrase"), MISTAKES.values(), ids=lambda text: text[:30])
def test_a_mistake_is_met_where_it_belongs(what, name, phrase):
    assert phrase in prose(name), f"nobody meets {what}"


# --- Run All ---------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The pictures of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.images: list[dict[str, str | None]] = []
        self.drawings: list[dict[str, str | None]] = []
        self.titles: list[str] = []
        self.figures = self.tables = 0
        self._in_title = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.images += [dict(attrs)] if tag == "img" else []
        self.drawings += [dict(attrs)] if tag == "svg" else []
        self.figures += tag == "figure"
        self.tables += tag == "table"
        self._in_title = tag == "title"

    def handle_data(self, data: str) -> None:
        self.titles += [data] if self._in_title else []

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False


class Run:
    """A notebook that was run to its end, and what it showed."""

    def __init__(self, name: str, folder: Path, *, predictions: bool) -> None:
        path = folder / f"{name}.ipynb"
        shutil.copy(WALKTHROUGH / path.name, path)
        if predictions:
            for key, (_, question) in questions(name).items():
                answer = question["choices"][0] if "choices" in question else 10
                predict(key, answer, folder=folder, **{k: question[k] for k in question if k != "key"})
        self.notebook = nbformat.read(path, as_version=4)
        for cell in self.notebook.cells:
            if cell.id == "without-widgets" and not predictions:
                # Here the instructor's answer locks every prediction, and that opens the explorers above it.
                cell.source = "def without_widgets():\n    return {}"
        client = NotebookClient(
            self.notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(folder)}}
        )
        client.execute()

    @property
    def code(self) -> list[NotebookNode]:
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    def cells_with(self, name: str, function: str) -> list[NotebookNode]:
        return [self.notebook.cells[position] for position, _ in calls(name, function)]

    @property
    def outputs(self) -> Iterator[NotebookNode]:
        return (output for cell in self.code for output in cell.outputs)

    @property
    def html(self) -> list[str]:
        """Every piece of HTML, in outputs and in widgets."""
        shown = [output.data["text/html"] for output in self.outputs if "text/html" in output.get("data", {})]
        return shown + self.in_widgets

    @property
    def in_widgets(self) -> list[str]:
        kept = self.notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
        return [one["state"].get("value", "") for one in kept.values() if one["model_name"] == "HTMLModel"]


def text_of(cell: NotebookNode) -> str:
    """What a cell shows where there is only text."""
    return "".join(
        output.text if output.output_type == "stream" else output.data["text/plain"]
        for output in cell.outputs
    )


@pytest.fixture(scope="module", params=NOTEBOOKS)
def runs(request, tmp_path_factory) -> tuple[str, Run, Run]:
    """One notebook, run with its predictions locked beforehand, and run without any."""
    name = request.param
    with_, without = (
        Run(name, tmp_path_factory.mktemp(f"{name}-{locked}"), predictions=locked) for locked in (True, False)
    )
    return name, with_, without


def test_it_runs_to_its_end_without_an_error(runs):
    _, *both = runs
    for run in both:
        assert [output for output in run.outputs if output.output_type == "error"] == []
        assert [output.text for output in run.outputs if output.get("name") == "stderr"] == []
        assert all(cell.execution_count for cell in run.code)


def test_with_predictions_every_truth_is_revealed(runs):
    name, run, _ = runs
    for cell in run.cells_with(name, "reveal"):
        assert LOCK_FIRST not in text_of(cell)
        assert "Problem" not in text_of(cell)
        # What follows the truth is shown as well; a later reveal of the same prediction shows that alone.
        assert len(cell.outputs) >= (2 if "The answer: " in text_of(cell) else 1)
    told = "".join(text_of(cell) for cell in run.cells_with(name, "reveal"))
    assert told.count("The answer: ") == len(questions(name))


def test_without_predictions_no_truth_is_revealed(runs):
    name, _, run = runs
    for cell in run.cells_with(name, "reveal"):
        assert text_of(cell) == f"Please note. {LOCK_FIRST}"


def test_explorers_draw_for_whoever_has_predicted_and_for_nobody_else(runs):
    name, with_, without = runs
    drawn = [html for html in with_.in_widgets if "<svg" in html]
    assert len(drawn) == len(calls(name, "explore"))
    assert not any("<svg" in html for html in without.in_widgets)
    waiting = [html for html in without.in_widgets if "This explorer opens when" in html]
    assert len(waiting) == len(calls(name, "explore"))


def test_there_is_a_figure_or_a_table_to_see(runs):
    _, run, _ = runs
    assert any(page.figures or page.tables for page in map(Page, run.html))


def test_every_figure_is_shown_with_its_words(runs):
    _, *both = runs
    for run in both:
        kinds = {kind for output in run.outputs for kind in output.get("data", {})}
        assert not any(kind.startswith("image/") for kind in kinds), "JupyterLab drops their alt text"
        for page in map(Page, run.html):
            assert len(page.images) == page.figures
            assert all((image.get("alt") or "").strip() for image in page.images)
            assert all(drawing.get("role") == "img" for drawing in page.drawings)
            assert len([title for title in page.titles if title.strip()]) == len(page.drawings)


def test_what_a_learner_reads_is_not_an_object(runs):
    _, run, _ = runs
    for output in run.outputs:
        shown = output.get("data", {}).get("text/plain", "") or output.get("text", "")
        assert not re.search(r"<[\w.]+ (object )?at 0x|<Quantity\(", shown), shown
