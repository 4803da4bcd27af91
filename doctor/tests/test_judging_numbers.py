"""Each number by which the doctor judges has a name, and a comment that says where it comes from.

`python -m doctor.tests.test_judging_numbers` counts them.
"""

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import starvelab_doctor.judging as judging

FOLDER = Path(judging.__file__).parent
ORIGIN = re.compile(r"by definition|benchmarks\.(\w+)")
# Numbers of formulas: counts, halves and squares; the units of time; the floors of divisors.
MAX_CONSTANTS = 10
FORMULA = {0, 1, 2, 1e3, 1e-3, 1e-9}


def numbers_of(node: ast.AST) -> list[ast.Constant]:
    """Return the numbers below a node, without those of formats, the lengths of tuples, and functions."""
    left_out = set[ast.AST]()
    for part in ast.walk(node):
        if isinstance(part, ast.Lambda) and part is not node:
            left_out |= {*ast.walk(part)}
        if isinstance(part, ast.FormattedValue) and part.format_spec is not None:
            left_out |= {*ast.walk(part.format_spec)}
        if isinstance(part, ast.BinOp) and isinstance(part.left, ast.Tuple):
            left_out.add(part.right)
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and type(part.value) in (int, float) and part not in left_out
    ]


def named_numbers(text: str) -> dict[str, tuple[int, str]]:
    """Return the constants of a module: how many numbers each has, and the comment beside or above it."""
    lines, named = text.splitlines(), dict[str, tuple[int, str]]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and (numbers := numbers_of(node.value)):
            above = node.lineno - 1
            while above and lines[above - 1].startswith("#"):
                above -= 1
            over = [line.removeprefix("# ") for line in lines[above : node.lineno - 1]]
            beside = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]
            named[ast.unparse(node.targets[0])] = len(numbers), " ".join(filter(None, [*over, beside]))
    return named


MODULES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
NAMED = [
    (file, name, told) for file, text in MODULES.items() for name, (_, told) in named_numbers(text).items()
]


@pytest.mark.parametrize(("file", "name", "comment"), NAMED)
def test_a_comment_says_where_a_number_comes_from(file, name, comment):
    assert ORIGIN.search(comment), f"{file}: {name} is so by definition, or measured by benchmarks.NAME."
    for benchmark in filter(None, ORIGIN.findall(comment)):
        assert import_module(f"benchmarks.{benchmark}").main


@pytest.mark.parametrize("file", MODULES)
def test_no_function_has_a_number_without_a_name(file):
    tree = ast.parse(MODULES[file])
    functions = [node for node in tree.body if not isinstance(node, ast.Assign)]
    functions += [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    numbers = [number for node in functions for number in numbers_of(node) if number.value not in FORMULA]
    assert [f"{file}:{number.lineno}: {number.value}" for number in numbers] == []


def test_the_doctor_judges_by_few_numbers():
    assert len(NAMED) <= MAX_CONSTANTS


def count() -> None:
    """Print how many numbers there are, by where they come from."""
    origins = Counter[str]()
    for text in MODULES.values():
        for number, comment in named_numbers(text).values():
            origin = ORIGIN.search(comment)
            origins[origin[0] if origin else "not said"] += number
    print(f"{origins.total()} numbers of {len(NAMED)} constants: {dict(origins)}")
    held = sorted(name for _, name, comment in NAMED if "benchmarks." in comment)
    print(f"held against runs: {', '.join(held)}")


if __name__ == "__main__":
    count()
