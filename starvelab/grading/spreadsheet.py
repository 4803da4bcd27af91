"""What a spreadsheet must not make of a table."""

from __future__ import annotations

from typing import Any


def no_formula(value: Any) -> Any:
    """A value that a spreadsheet will not take for a formula, whatever a student wrote."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value
