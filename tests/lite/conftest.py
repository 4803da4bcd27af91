"""The modules of lite/, which is no package."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def module_of_lite(repository: Path) -> Callable[[str], ModuleType]:
    """Import one of them by its name."""

    def imported(name: str) -> ModuleType:
        sys.path.insert(0, str(repository / "lite"))
        try:
            return import_module(name)
        finally:
            sys.path.pop(0)

    return imported
