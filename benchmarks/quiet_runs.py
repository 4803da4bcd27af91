"""Records a quiet run of the notebook that measures, for learners whose own measurement was disturbed.

It runs the notebook's own cells. Each measurement waits until nothing else runs on this machine, and is
repeated while something disturbed it; what they reveal is written only if nothing disturbed any of them:

    python -m benchmarks.quiet_runs --minutes 10
"""

from __future__ import annotations

import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import jupytext
import psutil

from starvelab import Pipeline
from starvelab.host import usable_cores
from starvelab.measure import Measurement
from starvelab.units import Quantity, unit_name

from .report import options

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOK = REPOSITORY / "solutions/find-the-bottleneck/01_measure_your_machine.py"
RECORD = REPOSITORY / "starvelab/lesson/quiet_runs.toml"
# Of all cores: above this somebody else is at work.
IDLE_PERCENT = 10
MEASURE = Pipeline.measure
HEAD = """# What a quiet machine measured in the notebooks, for learners whose own measurement was disturbed.
# Written by `python -m benchmarks.quiet_runs`; never edited by hand.
"""


class Patience:
    """Measures when nothing else runs, until nothing disturbed it or the time is over."""

    def __init__(self, minutes: float) -> None:
        self.end = time.monotonic() + 60 * minutes

    def measure(self, pipe: Pipeline, *, seconds: str, repeat: bool = False) -> Measurement:
        """Stands in the notebook for the method of this name, which repeats a run once."""
        while repeat:
            while psutil.cpu_percent(interval=0.5) > IDLE_PERCENT and time.monotonic() < self.end:
                pass
            seen = MEASURE(pipe, seconds=seconds, progress=False)
            if seen.quality.trustworthy or time.monotonic() > self.end:
                return seen
        return MEASURE(pipe, seconds=seconds, progress=False)


def measure(
    folder: Path, patience: Patience, count: int | None = None
) -> tuple[dict[str, tuple[float, str]], list[str]]:
    """What the notebook reveals of what may be disturbed: number and unit by key, and what disturbed it.

    Only of so many measurements, where a count is given.
    """
    found: dict[str, tuple[float, str]] = {}
    disturbed: list[str] = []

    def collect(key, truth=None, **options):
        if "disturbed" in options:
            is_quantity = isinstance(truth, Quantity)
            found[key] = (truth.magnitude, unit_name(truth.units)) if is_quantity else (truth, "")
            disturbed.extend(filter(None, [options["disturbed"]]))

    def skip(*_arguments, **_options):
        """Ask nothing, draw nothing."""

    names: dict[str, object] = {}
    os.chdir(folder)
    script = NOTEBOOK.read_text(encoding="utf-8")
    wanted = count or script.count("disturbed=")
    for cell in jupytext.reads(script, fmt="py:percent").cells:
        if cell.cell_type == "code":
            with patch.object(Pipeline, "measure", lambda pipe, **how: patience.measure(pipe, **how)):
                exec(compile(cell.source, NOTEBOOK.name, "exec"), names)
            names |= {
                "reveal": collect,
                "predict": skip,
                "explore": skip,
            }
        if len(found) == wanted:
            break
    return found, disturbed


def write(found: dict[str, tuple[float, str]]) -> None:
    """Write the record."""
    cores = usable_cores(physical=True)
    machine = f"{cores} physical core{'s' if cores > 1 else ''}, {platform.machine()}, {platform.system()}"
    date = datetime.now(UTC).date().isoformat()
    tables = [
        f'\n[{key}]\nvalue = {value:.4g}\nunit = "{unit}"\nmachine = "{machine}"\ndate = {date}\n'
        for key, (value, unit) in found.items()
    ]
    RECORD.write_text(HEAD + "".join(tables), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Measure until nothing is disturbed, and record that. Returns the exit status."""
    parser = options(__doc__, minutes=(10, 0), measurements=(None, 1))
    parser.add_argument("--minutes", type=float, help="how long to wait for a quiet machine")
    asked = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        found, disturbed = measure(Path(folder), Patience(asked.minutes), asked.measurements)
        os.chdir(REPOSITORY)
    if asked.measurements:
        print(f"Measured {found}, and recorded nothing.")
        return 0
    if disturbed:
        print(f"Nothing is recorded: {'; '.join(disturbed)}. Close what else runs here, and try again.")
        return 1
    write(found)
    print(f"Recorded {found} in {RECORD.relative_to(REPOSITORY)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
