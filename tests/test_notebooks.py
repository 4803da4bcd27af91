"""The notebooks of every assignment: what each must hold, which mistakes they meet, and what Run All shows.

What an author has to know, beside what the tests below say of each notebook:

- The answer cell "without-widgets" of the last notebook locks the predictions of whoever works without
  widgets; where nobody has predicted, it is run as if it were not answered.
- A notebook may measure for up to a minute. It reaches no network, shows nothing on stderr, and keeps what it
  generates in the folder that STARVELAB_CACHE names, which all tests of a run share.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from nbformat import NotebookNode

from starvelab.lesson.widgets._reveal import LOCK_FIRST, SHOWN_TOO
from starvelab.model.rates import measured_rates
from starvelab.prediction_file import read_file
from tests.assignments import EXPECTED, NOTEBOOKS, Notebook, given, notebooks_of, read
from tests.notebook_runs import Run, run_alone
from tests.notebooks.ledger import ledger

# Each notebook is run twice, and that counts for the first test that asks for it.
pytestmark = [pytest.mark.long, pytest.mark.programs, pytest.mark.timeout(600)]

WALKTHROUGH = {notebook.name: notebook for notebook in notebooks_of("starving-the-gpu")}


# --- what each notebook holds ----------------------------------------------------------------------


# What these return shows itself only where it ends a cell.
RETURNED = {"scorecard", "report", "progress", "pack", "play", "explore", "beside_lab", "beside_published"}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_what_shows_itself_ends_its_cell(notebook):
    """The score card was never seen above a report."""
    for cell in read(notebook.released).cells:
        if cell.cell_type == "code":
            for line in ast.parse(cell.source).body[:-1]:
                call = getattr(line, "value", None)
                name = getattr(getattr(call, "func", None), "id", "") if isinstance(line, ast.Expr) else ""
                assert name not in RETURNED, f"{name} does not end the cell {cell.id}"


each_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)


@each_notebook
def test_it_says_how_long_it_takes_asks_for_own_words_and_ends_with_what_to_take_away(notebook):
    first, last = notebook.cells[0].source, notebook.cells[-1].source
    number = int(notebook.name[:2])
    assert re.match(rf"# {number}\. \S", first), f"it begins with {first.splitlines()[0]!r}"
    minutes = re.findall(r"about (\d+) minutes", first)
    assert len(minutes) == 1, "its first cell says once 'about N minutes'"
    # The build computes it; tests/test_build.py says how.
    # A loader to write or to repair takes up to half an hour each.
    assert 10 <= int(minutes[0]) <= (150 if notebook.assignment == "master-the-loader" else 45)
    text = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    assert any(
        cell.metadata.get("nbgrader", {}).get("solution") or "own words" in cell.source for cell in text
    ), "it needs a cell with role essay, or one that asks for the learner's own words"
    for source in (cell.source for cell in text):
        # Details are closed, and leave room for Markdown.
        opened = re.findall(r"<details><summary>[^<]+</summary>\n\n", source)
        assert len(opened) == source.count("<details") == source.count("\n\n</details>")
    sections = re.split(r"^#{2,3} ", notebook.markdown, flags=re.MULTILINE)
    exercises = [section for section in sections if section.startswith("Exercise ")]
    assert exercises, f"a notebook has an exercise, headed ## Exercise N.M; {notebook} has none"
    for exercise in exercises:
        heading = exercise.splitlines()[0]
        assert "<details><summary>Hint" in exercise or "read by a person" in heading, heading
    assert last.startswith("## Take away\n")
    assert re.search(r"^\*\*(Next|What comes next)", last, flags=re.MULTILINE)
    assert re.findall(r"\]\((\w+)\.ipynb\)", last) == EXPECTED[notebook.assignment][number : number + 1]


@each_notebook
def test_it_asks_questions_each_is_revealed_below_and_an_explorer_opens_after_one(notebook):
    asked = notebook.questions()
    assert asked, "it needs a call of predict(...) with a question"
    revealed = reveals(notebook)
    assert set(revealed) == set(asked)
    for key, (position, question) in asked.items():
        assert question["question"].endswith("?")
        assert position < revealed[key]
        # What a change brings is judged by what it brings.
        factor = re.search(r"How many times|By how many percent|delivers 100 %", question["question"])
        assert ("unchanged" in question) == bool(factor), key
    explorers = notebook.calls("explore")
    assert explorers, "it needs a call of explore(..., after=KEY)"
    for position, call in explorers:
        assert position > revealed[given(call)["after"]]


def reveals(notebook: Notebook) -> dict[str, int]:
    """The position of the first reveal of each prediction."""
    return {given(call)["key"]: position for position, call in reversed(notebook.calls("reveal"))}


@each_notebook
def test_every_truth_is_revealed_with_what_it_means_and_with_likely_mistakes(notebook):
    for key in reveals(notebook):
        call = next(call for _, call in notebook.calls("reveal") if given(call)["key"] == key)
        (why,) = (ast.unparse(word.value) for word in call.keywords if word.arg == "why")
        # A setup cell is folded, and what stands in it is not read before the question.
        setup = next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("locked"))
        name = why.partition("(")[0]
        (made,) = (one for one in ast.parse(setup.source).body if getattr(one, "name", "") == name)
        returned = made.body[-1].value
        assert [ast.literal_eval(one) for one in returned.keys] == ["meaning", "mistakes"], key


# Which say no more than that probabilities add up, or that predictions are locked.
FORMAL = ("verdicts-test", "predictions-test")


@each_notebook
def test_a_check_says_what_it_means_that_all_is_right(notebook):
    for cell in read(notebook.released).cells:
        grader = cell.metadata.get("nbgrader", {})
        asks = "check(" in cell.source or "credit." in cell.source
        if grader.get("grade") and asks and not grader.grade_id.endswith(FORMAL):
            assert len(re.findall(r'(?:means=|credit\.total\()"So [^"]{20,}"', cell.source)) == 1


@each_notebook
def test_no_code_is_wider_than_a_page_one_cell_sets_up_and_installs_the_lab_in_colab(notebook, monkeypatch):
    released = [cell.source for cell in read(notebook.released).cells if cell.cell_type == "code"]
    for source in released:
        assert [line for line in source.splitlines() if len(line) > 88] == []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert next(n for n, cell in enumerate(code) if "nbgrader" not in cell.metadata) <= 1
    install = ast.unparse(ast.parse(released[0]).body[:2])
    commands: list[str] = []
    names = {"get_ipython": lambda: SimpleNamespace(system=commands.append)}
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    exec(install, dict(names))
    assert commands == []
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
    exec(install, dict(names))
    repository = "git+https://github.com/starvelab/starvelab"
    doctor = [f"pip install -q 'starvelab-doctor @ {repository}#subdirectory=doctor'"]
    needed = doctor * ("starvelab_doctor" in released[0])
    assert commands == [f"pip install -q 'starvelab[notebooks] @ {repository}'", *needed]


@each_notebook
def test_a_test_cell_uses_only_what_locked_cells_and_answers_define(notebook):
    """A check runs apart from the student's code: of a plain cell's names it would see none."""
    reference = pytest.importorskip("starvelab_grader.submissions.reference")
    known: set[str] = set()
    told = ((cell.metadata.get("nbgrader", {}), cell.source) for cell in notebook.cells)
    of_setups = reference.defined([text for role, text in told if role.get("locked") and not role["grade"]])
    for cell in notebook.cells:
        told = cell.metadata.get("nbgrader")
        if cell.cell_type != "code" or told is None:
            continue
        if told.grade:
            unknown = reference.loaded(cell.source) - known
            assert not unknown, f"{told.grade_id} uses {sorted(unknown)}, which a plain cell defines"
            again = reference.defined([cell.source]) & of_setups
            assert not again, f"{told.grade_id} changes {sorted(again)}, which a later check may need"
        known |= reference.defined([cell.source])


# --- words, pictures and questions that are explained where they are met ----------------------------


@pytest.mark.parametrize("assignment", sorted(EXPECTED))
def test_what_binds_means_is_said_where_the_word_first_appears(assignment):
    text = "\n".join(notebook.markdown for notebook in notebooks_of(assignment))
    first = re.search(r"\bbind(s|ing)?\b", text)
    assert text[first.start() - 2 : first.end() + 2] == "**binds**"
    assert "pace of all" in text[first.start() - 100 : first.end() + 60].replace("\n", " ")


def test_the_whole_pipeline_is_seen_before_anything_is_asked():
    first = WALKTHROUGH["01_compute_baseline"]
    ((drawn, _),) = first.calls("play")
    assert drawn < min(position for position, _ in first.questions().values())


def test_no_published_forward_pass_is_called_training(run_notebook):
    (cell,) = run_notebook(WALKTHROUGH["01_compute_baseline"], predictions=True).cells_with("reveal")
    shown = "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
    rows = re.findall(r"<tr\b.*?</tr>", shown, re.DOTALL)
    for rate in measured_rates():
        if (rate.hardware, rate.model, rate.precision) == ("Cloud.A100", "ResNet50", "fp16"):
            (row,) = [row for row in rows if f"{rate.fact.value.m_as('img/s'):.4g} img/s" in row]
            assert ("training" if rate.phase == "training" else "a forward pass") in row


# --- Run All ---------------------------------------------------------------------------------------


def shown_in(html: str) -> dict[str, list[str]]:
    """The figures, tables, pictures, drawings and titles of drawings in a page, by the name of their tag."""
    found = {tag: re.findall(rf"<{tag}\b[^>]*>", html) for tag in ("figure", "table", "img", "svg")}
    return found | {"title": [title for title in re.findall("<title>([^<]*)</title>", html) if title.strip()]}


def text_of(cell: NotebookNode) -> str:
    """What a cell shows where there is only text."""
    return "".join(
        output.text if output.output_type == "stream" else output.data["text/plain"]
        for output in cell.outputs
    )


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=str)
def runs(request, run_notebook) -> tuple[Run, Run]:
    """One notebook, run with its predictions locked beforehand, and run without any."""
    return run_notebook(request.param, predictions=True), run_notebook(request.param, predictions=False)


def test_it_runs_to_its_end_without_an_error(runs):
    for run in runs:
        assert [output for output in run.outputs if output.output_type == "error"] == []
        assert [output.text for output in run.outputs if output.get("name") == "stderr"] == []
        assert all(cell.execution_count for cell in run.code)


@pytest.mark.parametrize("assignment", sorted(EXPECTED))
def test_after_a_restart_what_runs_before_the_set_up_says_in_a_sentence_which_cells_to_run(
    assignment, run_notebook, tmp_path
):
    source = notebooks_of(assignment)[-1]
    code = [cell for cell in read(source.released).cells if cell.cell_type == "code"]
    checks = [cell.source for cell in code if cell.metadata.get("nbgrader", {}).get("grade")]
    endings = [cell.source for cell in code if cell.source.startswith("from starvelab.widgets import")]
    assert checks
    assert endings
    ran = run_alone(checks + endings, tmp_path, run_notebook.keywords["kernel"])
    assert [cell.source for cell in ran for output in cell.outputs if output.output_type == "error"] == []
    asks = ("has no value: the cell that gives it one has not run", "Save this notebook, run its first cell")
    told = [cell for cell in ran if any(text in text_of(cell) for text in asks)]
    # A score card and a report need no other cell.
    assert [cell.source for cell in ran if cell not in told] == [
        cell for cell in endings if cell.endswith(("scorecard()", "report()"))
    ]


# How a verdict begins, after a miss with its likeliest reason; how far off a number was may begin alike.
ANSWER = re.compile(r"(?:Hit|Miss)\..*? The answer is ")


def test_with_predictions_every_truth_is_revealed(runs):
    run, _ = runs
    for cell in run.cells_with("reveal"):
        assert not any(waits in text_of(cell) for waits in (LOCK_FIRST, SHOWN_TOO))
        assert "Problem" not in text_of(cell)
        # What follows the truth is shown as well; a later reveal of the same prediction shows that alone.
        assert len(cell.outputs) >= (2 if ANSWER.search(text_of(cell)) else 1)
    told = "".join(text_of(cell) for cell in run.cells_with("reveal"))
    assert len(ANSWER.findall(told)) == len(run.source.questions())


# Their truth is measured, so that it is another number each time: nothing may be shown between the two.
MEASURED = {"decode-bytes", "past-cores", "gil", "rewrite", "my-repair"}
# Numbers that stand before a reveal and are something else, by the key of the prediction.
SOMETHING_ELSE: dict[str, set[float]] = {
    "typical-error": {8.2},  # the GFLOP that a version of the walkthrough's package counts
    "next-wait": {20.0},  # milliseconds of a step; the truth is a percentage
}


def numbers_in(text: str) -> set[float]:
    """Every number of a text but those in names, of exercises and of minutes; of "1,234.5" one."""
    text = re.sub(r"\b(?:Exercise|[Nn]otebook) \d+(?:\.\d+)?|about \d+ minutes", "", text)
    found = re.findall(r"(?<![\w.-])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)", text)
    return {float(number.replace(",", "")) for number in found}


def ways_to_write(truth: float, unit: str | None) -> set[float]:
    """A number as prose rounds it, to two digits or more; a percentage as a share, too."""
    scales = (1, 100) if unit == "%" else (1,)
    rounded = {float(f"{truth / scale:.{digits}g}") for scale in scales for digits in (2, 3, 4, 5)}
    return {number for number in rounded if len(f"{number:g}".replace(".", "").lstrip("0")) > 1}


def prose_of_code(source: str) -> list[str]:
    """The comments of a code cell, and its texts; a formatted one without what is put in."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(source)):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        constants = [part.value for part in parts if isinstance(part, ast.Constant)]
        found.append(" ".join(value for value in constants if isinstance(value, str)))
    return list(filter(None, found))


def sentences_of(cells: list[NotebookNode], choices: list[str]) -> Iterator[str]:
    """What could tell a choice: the sentences of Markdown, and the prose of code.

    The texts of a code cell are one sentence together, since it may list all choices; a comment, and a text
    that is longer than a name, is one by itself. Exercises, which are graded, speak of themselves.
    """
    for cell in cells:
        if cell.cell_type == "markdown":
            yield from re.split(r"(?<=[.?!:])\s+|\n\n", cell.source)
        elif "nbgrader" not in cell.metadata:
            prose = prose_of_code(cell.source)
            longer = (text for text in prose if text.startswith("#") or len(text.split()) > 5)
            yield from (text for text in longer if text not in choices)
            yield " ".join(prose)


def is_told(truth: str, choices: list[str], text: str) -> bool:
    """Whether a text has the words that only the right choice has, and those of no other choice."""
    words = {choice: set(re.findall(r"\w+", choice.lower())) for choice in choices}
    own = {one: words[one].difference(*(words[two] for two in choices if two != one)) for one in choices}
    return [one for one in choices if own[one] <= set(re.findall(r"\w+", text.lower()))] == [truth]


def test_a_truth_stands_in_no_cell_before_its_reveal(runs):
    run, without = runs
    cells, revealed = run.notebook.cells, reveals(run.source)
    # An explorer opens for whoever has locked a prediction, so its picture is that of the other run.
    drawn = [without.pictures(cell) if cell.cell_type == "code" else "" for cell in without.notebook.cells]
    assert any(run.pictures(cell) for cell in run.code), "the words of its pictures are not found"
    locked = read_file(run.path.with_suffix("")).predictions
    for key, (asked, question) in run.source.questions().items():
        truth, until = locked[key].truth, revealed[key]
        between = cells[asked + 1 : until]
        shown = "\n".join(text_of(cell) for cell in between if cell.cell_type == "code")
        shown += "\n".join(["", *drawn[asked:until]])
        if key in MEASURED:
            assert not numbers_in(shown), f"numbers stand between the question of {key} and its answer"
            continue
        earlier = "\n".join(
            [
                # What this machine measured may be any number, and tells nothing.
                *(
                    text_of(cell)
                    for cell in cells[:asked]
                    if cell.cell_type == "code" and "beside_real(" not in cell.source
                ),
                *drawn[:asked],
            ]
        )
        before = notebooks_of(run.source.assignment)
        before = before[: before.index(run.source)]
        written = "\n".join(cell.source for cell in cells[:until])
        written_before = "\n".join(cell.source for notebook in before for cell in notebook.cells)
        if isinstance(truth, str):
            choices = question["choices"]
            hints = re.findall(r"<summary>Hint.*?</details>", written, flags=re.DOTALL)
            bold_words = re.findall(r"\*\*(.+?)\*\*", written, flags=re.DOTALL)
            for text in ("\n".join([*hints, *bold_words, shown]), question["question"]):
                named = [choice for choice in choices if choice.lower() in text.lower()]
                assert named != [truth], f"{truth!r} is given away before {key}"
            for text in sentences_of(cells[asked + 1 : until + 1], choices):
                assert not is_told(truth, choices, text), f"{text!r} gives {truth!r} of {key} away"
            continue
        written += "\n".join(prose_of_code(cells[until].source))
        given_away = ways_to_write(truth, locked[key].unit) & numbers_in(
            "\n".join((written, shown, earlier, written_before))
        )
        assert given_away <= SOMETHING_ELSE.get(key, set()), f"{given_away} stand before {key} is revealed"


def outputs_in_words(run: Run) -> str:
    """What all cells of a notebook show as text, but for its checks, whose answers the instructor wrote."""
    cells = (cell for cell in run.code if not cell.metadata.get("nbgrader", {}).get("grade"))
    return "\n".join(map(text_of, cells))


def test_run_all_without_predictions_shows_no_answer_below_a_reveal_either(runs):
    with_, without = runs
    locked = read_file(with_.path.with_suffix("")).predictions
    everything, held_back = outputs_in_words(with_), outputs_in_words(without)
    # A question says which choices there are.
    for _, question in without.source.questions().values():
        held_back = held_back.replace(question["question"], "")
    for key, (_, question) in without.source.questions().items():
        if "choices" in question:
            shown = ledger(without.source)["reveals"][key]
            assert re.search(shown, everything), f"no reveal of {key} shows that: change `reveals`"
            assert not re.search(shown, held_back), f"without a prediction {key} is given away"
        # In the other assignments much is measured, and may agree by chance.
        elif without.source in WALKTHROUGH.values():
            shown = ways_to_write(locked[key].truth, locked[key].unit) & numbers_in(held_back)
            assert not shown, f"{shown} are shown, and {key} is not locked"


def test_without_predictions_no_truth_is_revealed_and_explorers_draw_only_for_whoever_has_predicted(runs):
    with_, without = runs
    asks = f"Please note. {LOCK_FIRST} The question is: "
    waits = [text_of(cell) for cell in without.cells_with("reveal")]
    once = [text.partition("\n")[0] for text in waits if text.startswith(asks)]
    assert len(once) == len({*once}), "said once of each prediction"
    assert all(text.startswith((asks, SHOWN_TOO)) for text in waits)
    drawn = [html for html in with_.in_widgets if "<svg" in html]
    problems = [re.sub("<[^>]*>", "", html) for html in with_.in_widgets if "Problem" in html]
    assert len(drawn) == len(with_.source.calls("explore")), f"an explorer shows no drawing: {problems}"
    assert not any("<svg" in html for html in without.in_widgets)
    assert not any("-----" in html for html in with_.in_widgets), "a sentence of an explorer holds a table"
    waiting = [html for html in without.in_widgets if "This explorer opens when" in html]
    assert len(waiting) == len(with_.source.calls("explore"))


@pytest.mark.parametrize("notebook", WALKTHROUGH.values(), ids=str)
def test_what_an_explorer_draws_has_round_numbers_and_measured_ones(notebook):
    drawn = {getattr(call.args[0], "id", None) for _, call in notebook.calls("explore")}
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    for node in ast.parse(code).body:
        # A pipeline brings its switch itself.
        if isinstance(node, ast.FunctionDef) and node.name in drawn:
            assert "assumptions" in [one.arg for one in node.args.args]


def test_where_all_is_answered_nothing_is_left_and_no_cell_shows_an_object(runs):
    run, _ = runs
    (cell,) = run.cells_with("progress")
    assert cell == run.code[-1]
    alone = run.source.calls("finish")
    left = "Every exercise is done. If you learn alone" if alone else "Nothing is left to do in this"
    assert text_of(cell).splitlines()[-1].startswith(left)
    for output in run.outputs:
        shown = output.get("data", {}).get("text/plain", "") or output.get("text", "")
        assert not re.search(r"<[\w.]+ (object )?at 0x|<Quantity\(", shown), shown


def test_there_is_a_figure_or_a_table_to_see_and_every_figure_is_shown_with_its_words(runs):
    assert any(page["figure"] or page["table"] for page in map(shown_in, runs[0].html))
    for run in runs:
        kinds = {kind for output in run.outputs for kind in output.get("data", {})}
        assert not any(kind.startswith("image/") for kind in kinds), "JupyterLab drops their alt text"
        for page in map(shown_in, run.html):
            assert len(page["img"]) + len(page["svg"]) >= len(page["figure"])
            assert all(re.search(r'\balt="[^"]*\w', image) for image in page["img"])
            assert all('role="img"' in drawing for drawing in page["svg"])
            assert len(page["title"]) == len(page["svg"])
