"""Grading a class: student code in a sandbox, checks outside it. For instructors; nothing else needs it."""

from importlib import import_module
from typing import Any

# Where each name stands. A runner imports this package too, and needs nothing of nbgrader: that takes two
# seconds.
_FROM = {
    "IsolatedExecute": "autograde.execution",
    "NoSandboxError": "autograde.execution",
    "configure": "configuration",
}
__all__ = ["IsolatedExecute", "NoSandboxError", "configure"]


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(import_module(f".{_FROM[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Run `starvelab` on the command line."""
    try:
        from .commands.app import StarvelabApp
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"`starvelab` needs {error.name}, which is not installed: pip install 'starvelab[grade]'"
        ) from None
    StarvelabApp.launch_instance()
