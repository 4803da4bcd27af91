"""`%%watch` in a notebook: `starvelab doctor` for the loops of one cell."""

from __future__ import annotations

from typing import Any

from .errors import InputError
from .jobs.doctor import watched_by_doctor
from .jobs.report import text_report


class CellError(Exception):
    """Ends a cell whose error was shown already, so that Run All stops there."""

    def _render_traceback_(self) -> list[str]:
        return []


def register_magic(shell: Any) -> None:  # Any: IPython brings no types
    """Give a shell of IPython the magic `%%watch`."""

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
