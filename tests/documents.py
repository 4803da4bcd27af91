"""Where the documents stand, and their scripts as modules: docs/ is no part of the package."""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType

from tests.assignments import REPOSITORY

DOCS = REPOSITORY / "docs"


@cache
def load(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
