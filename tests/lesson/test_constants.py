"""A constant that belongs to a check is found in an answer, and one that belongs to a formula is not."""

import ast

import pytest

from starvelab.lesson.widgets.cells import answers_of, constants_in_question
from tests.assignments import ASSIGNMENTS
from tests.notebooks.exercises import exercises

CHECK = """check(step(400, Q_("20 ms")), Q_("31.297 ms"), within=2e-4,
    mistakes={"a": Q_("18.156 ms"), "b": 7})
credit.part(3, "60 ms", lambda: check(step(400, Q_("20 ms")), 5))"""


def functions(source: str, check: str) -> dict[str, str]:
    """The functions of an answer that its check calls."""
    called = {node.id for node in ast.walk(ast.parse(check)) if isinstance(node, ast.Name)}
    found = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    return {node.name: ast.unparse(node) for node in found if node.name in called}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return batch * time", []),
        (
            'return Q_("31.297 ms")',
            [
                "step uses none of its arguments: with other values it would be wrong.",
                "31.297 ms stands in step and in this check: "
                "with other values step may be wrong.",
            ],
        ),
        ("return 400 * time", [
            "step does not use batch: with other values it may be wrong.",
            "400 stands in step and in this check: with other values step may be wrong.",
        ]),
        ("return 2 * time", ["step does not use batch: with other values it may be wrong."]),
        ('return batch * Q_("20ms") + Q_("0 ms")', [
            "step does not use time: with other values it may be wrong.",
            "20ms stands in step and in this check: with other values step may be wrong."
        ]),
        # Of a mistake, a tolerance, points and titles, and what many formulas hold.
        ('return batch * time * 7 * 2e-4 + Q_("60 ms") * 3 + 1000 + Q_("18.156 ms")', []),
    ],
)  # fmt: skip
def test_what_belongs_to_the_check_is_named(body, said):
    assert constants_in_question(CHECK, {"step": f"def step(batch, time):\n    {body}"}) == said


def test_each_argument_that_is_not_used_is_named():
    def of(answer: str) -> list[str]:
        return constants_in_question("check(rate(3, 4, 5), 3)", {"rate": answer})

    assert of("def rate(a, b, c):\n    return min(a, b, c)") == []
    may_be = "with other values it may be wrong."
    assert of("def rate(a, b, c):\n    return b") == [f"rate does not use a and c: {may_be}"]
    assert of("def rate(a, /, *, c):\n    return c") == [f"rate does not use a: {may_be}"]


def test_no_right_answer_is_suspected():
    """Nor one that leaves out what the model answer leaves out: `idle_share` has arguments to choose from."""
    for assignment in ASSIGNMENTS:
        for exercise in exercises(assignment):
            for source in (exercise.solution, *(one.source for one in exercise.right)):
                said = constants_in_question(exercise.visible, functions(source, exercise.visible))
                assert said == [], (exercise.name, source)


def draw():
    """A function of the notebook, or a name that a check uses for something else."""


@pytest.mark.parametrize(("check", "found"), [
    ("check(draw(), 3)", ["draw"]),
    ("draw = [3]\ncheck(draw[0], 3)", []),
    ("def draw():\n    return 3\ncheck(draw(), 3)", []),
    ("check(3, 3)", []),
])  # fmt: skip
def test_a_name_that_the_check_itself_defines_is_no_answer(monkeypatch, check, found):
    monkeypatch.setattr(draw, "__module__", "__main__")
    assert list(answers_of(check, {"draw": draw})) == found
