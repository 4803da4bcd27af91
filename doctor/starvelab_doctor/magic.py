"""The magic `%%watch` of a notebook: the loops of one cell are watched, and reported below it."""

from __future__ import annotations

from typing import Any

from starvelab.errors import InputError

from .judging.report import text_report
from .watching.hooks import watched_by_doctor


class CellError(Exception):
    """Ends a cell whose error was shown already, so that Run All stops there."""

    def _render_traceback_(self) -> list[str]:
        return []


def register_magic(shell: Any) -> None:  # Any: IPython brings no types
    """Give a shell of IPython the magic `%%watch`: `starvelab-doctor` for the loops of one cell."""

    def watch(line: str, cell: str) -> None:
        """Run the cell, and say how long each loop over a DataLoader waits; --probe times the stages too."""
        if line.strip() not in ("", "--probe"):
            raise InputError(f"%%watch takes --probe or nothing, got {line.strip():.80}. Take one of these.")
        # So that a line of the cell has its number; another magic must stand at the very beginning.
        lines = cell if cell.startswith("%%") else f"# %%watch\n{cell}"
        with watched_by_doctor(probe=bool(line.strip())) as doctor:
            result = shell.run_cell(lines)
        print(text_report(doctor.results()))
        if not result.success:
            raise CellError from result.error_in_exec

    shell.register_magic_function(watch, "cell")
