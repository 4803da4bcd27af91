"""Second names of modules: the short ones of notebooks, and those of version 0.1 for one more release."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TypeVar

SHORT = {
    "starvelab.checks": "starvelab.lesson.checks",
    "starvelab.show": "starvelab.lesson.show",
    "starvelab.widgets": "starvelab.lesson.widgets",
}
DEPRECATED = {
    "starvelab.analysis": "starvelab.model.analysis",
    "starvelab.assumptions": "starvelab.model.assumptions",
    "starvelab.catalogue": "starvelab.model.catalogue",
    "starvelab.grading.exports": "starvelab.grading.lms.exports",
    "starvelab.levers": "starvelab.model.levers",
    "starvelab.pipeline": "starvelab.model.pipeline",
    "starvelab.show.looks": "starvelab.lesson.show.style",
    "starvelab.show.picture": "starvelab.lesson.show.figure",
    "starvelab.stages": "starvelab.model.stages",
}


class AliasFinder(MetaPathFinder, Loader):
    """Finds a module, and what stands in it, by its second name. It is the same object as by the first."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (the import system passes it)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """A specification for a second name, and None for every other."""
        for table in (DEPRECATED, SHORT):  # an old module may stand in one that has a short name
            for alias, module in table.items():
                if fullname == alias or fullname.startswith(f"{alias}."):
                    return ModuleSpec(fullname, self, origin=module + fullname.removeprefix(alias))
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module by its first name."""
        assert spec.origin is not None
        if spec.name in DEPRECATED:
            warnings.warn(
                f"{spec.name} is now {spec.origin}. Import it from there.", DeprecationWarning, stacklevel=2
            )
        module = import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own specification, which the import system has replaced."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for a module whose old names, the keys, warn and give what the new ones name."""

    def find(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        warnings.warn(
            f"{module}.{name} is now {module}.{new}. Use that name.", DeprecationWarning, stacklevel=2
        )
        return getattr(sys.modules[module], new)

    return find


_T = TypeVar("_T")


def deprecated(value: _T, old: str, new: str) -> _T:
    """A value that was asked for by its name of version 0.1, with a warning that says the new one."""
    warnings.warn(f"{old} is now called {new}. Use that name.", DeprecationWarning, stacklevel=3)
    return value


def install() -> None:
    """Let `import` find modules by their second names."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())
