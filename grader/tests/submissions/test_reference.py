"""The names that cells define and use, and model answers, which learners do not get."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from starvelab_grader.submissions.reference import ModelAnswer, defined, loaded, model_answers
from tests.assignments import NOTEBOOKS, REPOSITORY

ESSAY = "The CPU.\n\n### BEGIN MARK SCHEME\n- 2 points: the *CPU*.\n### END MARK SCHEME"


@pytest.mark.parametrize(("source", "names"), [
    ("import x.y as z, a.b", "z a"),
    ("from m import q as r", "r"),
    ("for i, (j, *k) in []: last = 1", "i j k last"),
    ("with a as w, b as (v, u): pass", "w v u"),
    ("print(y := 3)", "y"),
    ("[k := n for n in range(3)]", "k"),
    ("[n for n in range(3)]\n{m for m in 'ab'}\n{o: o for o in 'ab'}\nlambda x: 1", ""),
    ("def f(a):\n    local = 1\n    global g\n    g = 1", "f g"),
    ("def f():\n    def inner():\n        global g\n        import g", "f g"),
    ("class C:\n    inner = 1\n    global g\n    g = 1", "C g"),
    ("del d", "d"),
    ("match q:\n    case {'a': a, **b}: pass\n    case str() as e: pass", "a b e"),
    ("match q:\n    case [c, *d] | (c, d): pass", "c d"),
    ("try: pass\nexcept E as error: pass", "error"),
    ("async def co(): pass\nasync with a as b: pass\nawait co()", "co b"),
    ("an: int = 3", "an"),
    ("more += 1", "more"),
    ("if False:\n    rare = 1", "rare"),
    ("a.b = 1\nc[0] = 2", ""),
    ("%matplotlib inline\nimport np", "np"),
    ("files = !ls\n!cd", "files"),
    ("%%time\n%%capture out\nv = 1", "v"),
    ("print(x", ""),
    ("x = '\0'", ""),
    ("(" * 5000, ""),
])  # fmt: skip
def test_what_a_cell_defines(source, names):
    assert defined([source]) == set(names.split())


def test_what_is_only_imported_can_be_left_out():
    assert defined(["import a\nfrom b import c\nd = 1\nimport e\ne = 2"], imports=False) == {"d", "e"}


@pytest.mark.parametrize(("source", "names"), [
    ("total = sum(double(n) for n in values)", "double values"),
    ("def test():\n    local = 1\n    return double(local) + other\ntest()", "double other"),
    ("class C(Base):\n    at = start", "Base start"),
    ("__builtins__, __name__, print, ValueError", ""),
    ("%%time\ncheck(answer, 42)", "check answer"),
    ("print(x", ""),
])  # fmt: skip
def test_what_a_cell_uses(source, names):
    assert loaded(source) == set(names.split())


def graded(cell, name, **flags):
    cell.metadata["nbgrader"] = {"grade_id": name, "grade": True, "solution": True} | flags
    return cell


def test_only_essays_have_model_answers_and_what_earns_points_is_told_apart():
    cells = [
        new_markdown_cell("text"),
        graded(new_markdown_cell(ESSAY), "why"),
        graded(new_markdown_cell("### BEGIN MARK SCHEME\n- 1 point\n### END MARK SCHEME"), "empty"),
        graded(new_code_cell("### BEGIN SOLUTION\nprint(1)\n### END SOLUTION"), "draw"),
        graded(new_code_cell("def f(): pass"), "f", grade=False),
        graded(new_code_cell("check(f())"), "f-test", solution=False),
    ]
    answers = model_answers(nbformat.writes(new_notebook(cells=cells)).encode())
    assert answers == {
        "why": ModelAnswer("The CPU.", "- 2 points: the *CPU*."),
        "draw": ModelAnswer("print(1)", "", in_code=True),
    }
    assert [one.markdown for one in answers.values()] == ["The CPU.", "```python\nprint(1)\n```"]


@pytest.mark.parametrize("line", ["=== {} ===", "{}", "# {}", "<!-- {} -->", "  // {}"])
def test_the_lines_around_a_scheme_may_have_any_signs_as_for_nbgrader_itself(line):
    begin, end, solution, over = (
        line.format(words)
        for words in ("BEGIN MARK SCHEME", "END MARK SCHEME", "BEGIN MY SOLUTION", "END MY SOLUTION")
    )
    source = f"{solution}\nThe CPU.\nBEGIN again, and END there.\n{over}\n\n{begin}\n- 1 point: why.\n{end}"
    assert ModelAnswer.of(source) == ModelAnswer("The CPU.\nBEGIN again, and END there.", "- 1 point: why.")


def test_no_sentence_of_a_model_answer_stands_in_what_learners_get():
    texts = " ".join(
        " ".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        if path.suffix == ".ipynb"
        else path.read_text(encoding="utf-8")
        for path in (REPOSITORY / "labs").rglob("*")
        if path.is_file()
    )
    released = " ".join(texts.split())
    answers = [one for each in NOTEBOOKS for one in model_answers(each.solution.read_bytes()).values()]
    sentences = [
        sentence
        for answer in answers
        for text in (answer.text, answer.scheme)
        for sentence in re.split(r"(?<=[.:;?])\s", " ".join(text.split()))
        if len(sentence) > 20
    ]
    assert len(sentences) > 8 * len(answers) > 0
    assert [sentence for sentence in sentences if sentence in released] == []
