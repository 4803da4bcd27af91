"""Where the documents stand, and their scripts as modules: docs/ is no part of the package."""

import importlib.util
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from starvelab.errors import install_hint
from tests.assignments import REPOSITORY

DOCS = REPOSITORY / "docs"
# docs/learners/ holds what a build has copied from labs/.
PAGES = sorted(DOCS.glob("*.md"))
# What a line that installs the lab may name: a release, a checkout, or the repository itself.
OURS = r"(?:starvelab|starvelab-doctor|starvelab-grader|\.|\./doctor|\./grader|git\+https://[\w./-]+)(?:\[\w+\])?"
FRONT = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
DOCUMENTS = [*FRONT, *PAGES]


@cache
def load(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of(path: Path) -> str:
    """The text of a document, with the text of what it includes."""

    def included(match: re.Match[str]) -> str:
        return (path.parent / match[1]).read_text(encoding="utf-8")

    return re.sub(r"```{include} (\S+)\n.*?```", included, path.read_text(encoding="utf-8"), flags=re.DOTALL)


def without_code(text: str) -> str:
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#{1,6} (.+)$", without_code(text_of(path)), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def sources() -> list[Path]:
    """The modules of the distributions."""
    packages = ("starvelab", "doctor/starvelab_doctor", "grader/starvelab_grader")
    return sorted(path for package in packages for path in (REPOSITORY / package).rglob("*.py"))


def published() -> dict[str, list[str]]:
    """The folder of each distribution that is published, with its extras."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["tool"]["starvelab"]["published"]


def install_lines() -> Iterator[tuple[str, str]]:
    """Where each line that installs the lab stands, and what it names: `starvelab[grade]`, `.[lab]`."""
    paths = [*DOCUMENTS, REPOSITORY / "solutions" / "build.py", *sources()]
    texts = {path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    texts["install_hint"] = "\n".join(install_hint(extra) for extra in published()["."])
    for where, text in texts.items():
        for command in re.findall(r"(?:pip install|uvx|uv tool install) [^`\n]*", text):
            for named in re.findall(rf"(?<![^\s'\"])({OURS})(?![^\s'\"])", command):
                yield where, named
