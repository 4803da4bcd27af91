"""The examples in docstrings: each prints what it says.

Pytest's own collection of doctests would import every module of the package in each process of a run.
"""

import doctest
from importlib import import_module

import pytest

from tests.assignments import REPOSITORY
from tests.documents import sources

MODULES = [
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    .removeprefix("doctor.")
    .removeprefix("grader.")
    .removesuffix(".__init__")
    for path in sources()
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize(
    "module", [pytest.param(module, marks=pytest.mark.needs(module.partition(".")[0])) for module in MODULES]
)
def test_the_examples_of_a_module_print_what_they_say(module, capsys):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(import_module(module), optionflags=flags)
    assert result.attempted
    assert not result.failed, capsys.readouterr().out
