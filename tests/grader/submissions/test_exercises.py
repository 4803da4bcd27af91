"""The instructor's own answers to essays: read from their notebooks, and not in what learners get."""

from __future__ import annotations

import re

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from starvelab_grader.submissions.reference import ModelAnswer, model_answers
from tests.assignments import NOTEBOOKS, REPOSITORY

ESSAY = "The CPU.\n\n### BEGIN MARK SCHEME\n- 2 points: the *CPU*.\n### END MARK SCHEME"


def graded(cell, name, **flags):
    cell.metadata["nbgrader"] = {"grade_id": name, "grade": True, "solution": True} | flags
    return cell


def test_the_answer_and_what_earns_points_are_told_apart():
    answer = ModelAnswer.of(ESSAY)
    assert (answer.text, answer.scheme, answer.markdown) == ("The CPU.", "- 2 points: the *CPU*.", "The CPU.")


def test_an_answer_in_code_is_shown_as_code_without_the_lines_of_nbgrader():
    answer = ModelAnswer.of("### BEGIN SOLUTION\nprint(1)\n### END SOLUTION", "code")
    assert answer.markdown == "```python\nprint(1)\n```"


def test_only_essays_have_model_answers():
    cells = [
        new_markdown_cell("text"),
        graded(new_markdown_cell(ESSAY), "why"),
        graded(new_markdown_cell("### BEGIN MARK SCHEME\n- 1 point\n### END MARK SCHEME"), "empty"),
        graded(new_code_cell("def f(): pass"), "f", grade=False),
        graded(new_code_cell("check(f())"), "f-test", solution=False),
    ]
    content = nbformat.writes(new_notebook(cells=cells)).encode()
    assert model_answers(content) == {"why": ModelAnswer("The CPU.", "- 2 points: the *CPU*.")}


def test_no_sentence_of_a_model_answer_stands_in_what_learners_get():
    given = [path for path in (REPOSITORY / "labs").rglob("*") if path.is_file()]
    texts = " ".join(
        " ".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        if path.suffix == ".ipynb"
        else path.read_text(encoding="utf-8")
        for path in given
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
