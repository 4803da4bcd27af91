"""How tests read the prose of a notebook: its sentences, and what accounts for them in a file of TOML."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jupytext

import starvelab
from tests.assignments import ASSIGNMENTS, REPOSITORY, Notebook, notebooks_of

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


def ledger(folder: str, assignment: str) -> dict[str, Any]:
    """The accounts of an assignment below tests/; none where nobody has written any."""
    path = REPOSITORY / "tests" / folder / f"{assignment}.toml"
    written = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {"imports": "", "names": {}, "accounts": {}} | written


@cache
def accounts(folder: str) -> list[tuple[Notebook, dict[str, Any]]]:
    """Every account below a folder of tests/, with its notebook; "any" is all of an assignment."""
    return [
        (Notebook(assignment, where), account)
        for assignment in ASSIGNMENTS
        for where, listed in ledger(folder, assignment)["accounts"].items()
        for account in listed
    ]


def accounts_of(folder: str, notebook: Notebook) -> list[dict[str, Any]]:
    """The accounts that a notebook may count on."""
    own = (notebook, Notebook(notebook.assignment, "any"))
    return [account for where, account in accounts(folder) if where in own]


def names(folder: str, assignment: str, **more: Any) -> dict[str, Any]:
    """What an expression may use: the package, what is given, and what the ledger imports and names."""
    written = ledger(folder, assignment)
    known = {name: getattr(starvelab, name) for name in starvelab.__all__} | more
    exec(written["imports"], known)
    for name, expression in written["names"].items():
        known[name] = eval(expression, known)
    return known


def texts(where: Notebook) -> list[str]:
    """The prose an account is about: that of its notebook, or that of all of the assignment."""
    return [prose(one) for one in (notebooks_of(where.assignment) if where.name == "any" else [where])]


def path_of(folder: str, assignment: str) -> Path:
    """Where the accounts of an assignment are written."""
    return Path("tests") / folder / f"{assignment}.toml"
