"""Grades the notebooks of an nbgrader course: student code in a sandbox, checks outside it.

Rooms, imports point downward only (a contract in pyproject.toml fails the build otherwise)::

    commands               `starvelab-grader release`, `collect`, `grade`, `mark`, `feedback`, `return`
    marking                what a person marks
    report | lms           statistics, equal answers, feedback pages | Canvas and Moodle
    batch | configuration  a class: worker pool, records, gradebook | nbgrader, set up for all this
    autograde              nbgrader's steps: restoring, execution, scoring
    sandbox | submissions  student code run apart from everything else | what was submitted
    files | text           written whole, and their fingerprints | what others wrote, made safe
    plugins                what a course's own package tells the grader
    errors                 the rule, what came, what to do

No module imports starvelab: what is a lab's own is declared by it, see `plugins`.
"""

from importlib import import_module

# Where each name stands. A runner imports this package too, and must not load nbgrader: that takes two
# seconds.
_MODULES = {
    "IsolatedExecute": "autograde.execution", "NoSandboxError": "autograde.execution",
    "configure": "configuration",
}  # fmt: skip
__all__ = ["IsolatedExecute", "NoSandboxError", "configure"]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
