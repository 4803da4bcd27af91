"""What a course's own package tells the grader, by entry points; without any, the grader grades all the same.

A package names a module in its ``pyproject.toml``, and imports nothing of the grader for it::

    [project.entry-points."starvelab_grader.plugins"]
    mycourse = "mycourse.grader_plugin"

Of that module these names count, and each may be missing:

- ``environment``: variables that tell a notebook that it is graded, by their names.
- ``folders``: functions that name a folder which student code may read, by the variables that tell it so.
- ``preload()``: imports and reads what most notebooks need, once for all of them.
- ``values``: types that a check can be given of a student, see `KINDS` in `sandbox.codec`, by their tags.
- ``error_texts``: functions that put an error into a sentence, by the name of its type.
- ``student_files``: files beside a notebook that the lab writes and checks read, by their names: the greatest
  size in bytes, and a function that says of the content what is wrong with it, or None.
- ``unread_files``: modules beside a notebook that the lab writes for its owner, by their names: they are left
  out without a warning.
- ``only_shown``: folders of the package with which no check computes, such as those of pictures.
- ``sections(members)``: parts of the report of a class, as dicts of the fields of a `Section` of
  `report.class_report`; a member has a ``name``, a ``folder`` and the ``notes`` of the checks, by notebook
  and cell.

A check says more than its points by an audit event, which nobody else hears: ``sys.audit(NOTE, name, value)``
with a number, numbers or a text. The grader itself reads the notes ``"mistake"``, and
``"part"``: what a part of a check has earned, and its most.
"""

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import GraderError

GROUP = "starvelab_grader.plugins"
NOTE = "starvelab_grader.note"


class PluginError(GraderError, ImportError):
    """A package that extends the grader cannot be imported."""


@cache
def plugins() -> tuple[ModuleType, ...]:
    """Import the module of each package that extends the grader, or raise PluginError."""
    found = {}
    for point in entry_points(group=GROUP):
        try:
            found[point.name] = point.load()
        except Exception as error:
            raise PluginError(
                f"{point.value} extends the grader and cannot be imported: {type(error).__name__}: {error}. "
                "Repair the package that it belongs to, or uninstall it."
            ) from error
    return tuple(found[name] for name in sorted(found))


def declared(name: str) -> dict[str, Any]:
    """Return what all plugins together have in the table of that name."""
    return {key: value for each in plugins() for key, value in getattr(each, name, {}).items()}


def functions(name: str) -> Iterator[Callable[..., Any]]:
    """Yield the functions of that name."""
    yield from (getattr(each, name) for each in plugins() if hasattr(each, name))


@cache
def packages() -> dict[str, tuple[Path, tuple[str, ...]]]:
    """Return the folder of each package that extends the grader, and what in it is only shown."""
    found = {}
    for each in plugins():
        name = each.__name__.partition(".")[0]
        folder = Path(str(importlib.import_module(name).__file__)).parent
        found[name] = folder, tuple(getattr(each, "only_shown", ()))
    return found
