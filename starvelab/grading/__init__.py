"""Grading a class: student code in a sandbox, checks outside it. For instructors; nothing else needs it."""

from typing import Any

__all__ = ["IsolatedExecute", "NoSandboxError"]


def __getattr__(name: str) -> Any:
    # A runner imports this package too, and needs nothing of nbgrader, which takes two seconds.
    if name in __all__:
        from . import isolated

        return getattr(isolated, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Run `starvelab` on the command line."""
    try:
        from .app import StarvelabApp
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"`starvelab` needs {error.name}, which is not installed: pip install 'starvelab[grade]'"
        ) from None
    StarvelabApp.launch_instance()
