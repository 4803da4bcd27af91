"""What the grade of a notebook depends on, by kind and as fingerprints; and which of it has changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from ..fingerprints import fingerprint
from ..plugins import packages

# Why a notebook is graded again, by the kind of what changed. Of several the first is named.
REASONS = {
    "submission": "the submission has changed",
    "assignment": "the assignment has changed",
    "packages": "the grader, or a package that extends it, has changed",
    "settings": "the settings of the course have changed",
}
PACKAGE = Path(__file__).parents[1]
# Grading a submission depends on these and on what they import, but not on what collects, reports or exports.
GRADING = ("autograde/task.py", "sandbox/runner.py", "sandbox/preload.py")


def changed(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The notebooks that have to be graded, each with the reason.

    Parameters
    ----------
    before, now : mapping of str to mapping of str to str
        By notebook, the fingerprints of the kinds that `REASONS` has.

    Returns
    -------
    dict of str to str
        Keys of `REASONS` by notebook.

    Examples
    --------
    >>> changed({"one": {"submission": "a"}, "two": {"submission": "b"}}, {"one": {"submission": "c"}})
    {'one': 'submission'}
    """
    if not before:
        # A record of a version that did not write down its inputs by notebook.
        return dict.fromkeys(now, "packages")
    reasons = {}
    for notebook, parts in now.items():
        if notebook not in before:
            reasons[notebook] = "assignment"
        elif differing := [kind for kind in REASONS if before[notebook].get(kind) != parts.get(kind)]:
            reasons[notebook] = differing[0]
    return reasons


@cache
def package_fingerprint(package: Path = PACKAGE) -> str:
    """The fingerprint of what a grade is computed with: sandbox and scoring, and the packages of the course.

    The version is not enough: in a checkout that is being worked on, facts change and it does not.
    """
    files = {path.relative_to(package).as_posix(): path for path in _of_grader(package)}
    for name, (folder, only_shown) in packages().items():
        inner = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
        files |= {
            f"{name}/{path}": folder / path
            for path in inner
            if path.endswith((".py", ".toml", ".txt")) and not path.startswith(tuple(only_shown))
        }
    return fingerprint({name: path.read_bytes() for name, path in files.items()})


def _of_grader(package: Path) -> Iterator[Path]:
    seen: set[Path] = set()
    pending = [package / name for name in GRADING]
    while pending:
        path = pending.pop()
        if path not in seen and path.is_file() and package in path.parents:
            seen.add(path)
            pending += _imported(path)
    yield from seen


def _imported(path: Path) -> Iterator[Path]:
    """Where the modules would stand that a module imports by relative names."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            yield from (folder.with_suffix(".py"), folder / "__init__.py")
            yield from (folder / f"{each.name}.py" for each in node.names)
