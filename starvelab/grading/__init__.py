"""Grading a class: student code in a sandbox, checks outside it. For instructors; nothing else needs it."""

from .isolated import IsolatedExecute, NoSandboxError

__all__ = ["IsolatedExecute", "NoSandboxError"]
