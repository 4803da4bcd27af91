"""What the tests know of a notebook: one file of TOML for each, tests/notebooks/ASSIGNMENT/NN_name.toml.

points
    The points that all its cells give together.
reveals
    How the output of a reveal says which choice is right, by the key of a prediction: a pattern.
imports, names
    What the expressions below may use beside the package and trials.py: statements, and an expression for
    each name.
numbers
    Where each number of its prose comes from (tests/test_prose.py).
causes
    How each sentence that explains was tried (tests/test_causes.py).

Every other key is the id of an answer cell, with ``wrong`` and ``right`` answers (exercises.py). What several
notebooks of an assignment say or use stands in its shared.toml.
"""

import re
import tomllib
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import starvelab
from starvelab.lesson.widgets._explore import ROUND, SWITCH
from tests.assignments import EXPECTED, NOTEBOOKS, REPOSITORY, Notebook, notebooks_of
from tests.notebooks import trials

Kind = Literal["numbers", "causes"]
KEYS = {"points", "reveals", "imports", "names", "numbers", "causes"}

# What looks like a number and is none: code, formulas, where links lead, tags, numbering and points.
NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|(?<=\])\([^)]*\)|<[^>]*>"
    r"|\(\d+(?:\.\d+)? points?\b[^)]*\)|- \d+ points?\b"
    r"|\b(?:[Hh]int|[Nn]otebook|[Ee]xercise|Case) \d+(?:\.\d+)?"
    r"|^#* ?\d+\. ",
    re.DOTALL | re.MULTILINE,
)
QUESTION = re.compile(r'predict\((?:[^()]|\([^()]*\))*question=((?:"[^"]*"\s*)+)')


@cache
def prose(notebook: Notebook) -> str:
    """The markdown of a notebook and what its predictions ask, without what is no prose, on one line."""
    import jupytext  # which nobody has who runs the tests of a learner

    cells = jupytext.read(notebook.script, fmt="py:percent").cells
    read = [cell.source for cell in cells if cell.cell_type == "markdown"]
    asked = [
        "".join(re.findall(r'"([^"]*)"', text))
        for cell in cells
        if cell.cell_type == "code"
        for text in QUESTION.findall(cell.source)
    ]
    text = "\n\n".join([*read, *asked])
    return " ".join(NO_PROSE.sub(" ", text).replace("*", "").split())


def shared(notebook: Notebook) -> Notebook:
    """What stands in the place of a notebook for all of its assignment."""
    return Notebook(notebook.assignment, "shared")


ALL = [*NOTEBOOKS, *dict.fromkeys(map(shared, NOTEBOOKS))]


def path_of(notebook: Notebook) -> Path:
    """Where the tests' knowledge of a notebook is written, from the repository's root."""
    return Path("tests/notebooks", notebook.assignment, f"{notebook.name}.toml")


@cache
def ledger(notebook: Notebook) -> dict[str, Any]:
    """The file of a notebook; empty where nobody has written it."""
    path = REPOSITORY / path_of(notebook)
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def answers(notebook: Notebook) -> dict[str, Any]:
    """The wrong and right answers of a notebook, by the id of the answer cell."""
    return {key: value for key, value in ledger(notebook).items() if key not in KEYS}


def accounts(kind: Kind) -> list[tuple[Notebook, dict[str, Any]]]:
    """Every account of a kind, with its notebook."""
    return [(notebook, account) for notebook in ALL for account in ledger(notebook).get(kind, [])]


def accounts_of(kind: Kind, notebook: Notebook) -> list[dict[str, Any]]:
    """The accounts that a notebook may count on."""
    return list(chain(*(ledger(place).get(kind, []) for place in (notebook, shared(notebook)))))


@cache
def names(notebook: Notebook, numbers: str = ROUND) -> dict[str, Any]:
    """What an expression may use: the package, trials.py, and what the ledgers import and name.

    Another set of numbers, by the name that the switch of explorers has, takes the place of round ones.
    """
    known = {name: getattr(starvelab, name) for name in starvelab.__all__}
    if (assumed := SWITCH[numbers]) != starvelab.TUTORIAL:
        pipeline = partial(starvelab.Pipeline, assumptions=assumed)
        known |= {"TUTORIAL": assumed, "Pipeline": pipeline}
        known["SingleNodeModel"] = lambda own=assumed: starvelab.SingleNodeModel(own)
    known |= {name: getattr(trials, name) for name in trials.__all__}
    for written in map(ledger, dict.fromkeys([shared(notebook), notebook])):
        exec(written.get("imports", ""), known)
        for name, expression in written.get("names", {}).items():
            known[name] = eval(expression, known)
    return known


def places(notebook: Notebook) -> list[Notebook]:
    """The notebooks that an account is about: its own, or all of the assignment."""
    return notebooks_of(notebook.assignment) if notebook.name == "shared" else [notebook]


# The most that can be earned in an assignment.
TOTAL = {
    assignment: sum(ledger(Notebook(assignment, name)).get("points", 0) for name in listed)
    for assignment, listed in EXPECTED.items()
}
