"""Seconds to run each solution notebook from its first cell to its last, with a kernel of its own.

Each runs in a copy of its folder: what it writes there, such as predictions, never reaches the repository.
The minutes that a notebook's first cell names hold these seconds, as they were recorded on a quiet machine:

    python -m benchmarks.notebooks --record && python solutions/build.py
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from .report import REPOSITORY, machine, number, options, spread, turns
from .results import save

RECORD = REPOSITORY / "solutions/run_seconds.json"


def seconds(notebook: Path) -> float:
    """Time to run a copy of a notebook, the start of its kernel included."""
    import nbformat
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(shutil.copytree(notebook.parent, Path(scratch) / notebook.parent.name))
        client = NotebookClient(
            nbformat.read(folder / notebook.name, as_version=4),
            timeout=300,
            resources={"metadata": {"path": str(folder)}},
        )
        start = time.perf_counter()
        client.execute(stderr=subprocess.DEVNULL)  # ipykernel warns of how it talks to us
        return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, rounds=(1, 1), first=(None, 1))
    parser.add_argument("--record", action="store_true", help=f"write them into {RECORD.name}")
    parser.add_argument("assignments", nargs="*", help="folders of solutions/ (default: all)")
    asked = parser.parse_args(arguments)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("MPLBACKEND", "agg")
    folders = sorted({path.parent for path in (REPOSITORY / "solutions").glob("*/*.ipynb")})
    folders = [folder for folder in folders if not asked.assignments or folder.name in asked.assignments]
    # The smallest case is the first notebook of the last folder, which neither measures nor trains.
    folders = folders[-1:] if asked.first else folders
    print(machine())
    print(turns(asked.rounds))
    for folder in folders:
        notebooks = sorted(folder.glob("*.ipynb"))[: asked.first]
        found = {notebook.stem: [seconds(notebook) for _ in range(asked.rounds)] for notebook in notebooks}
        for name, times in found.items():
            print(f"  {name:<28} {spread(times)} s")
        if asked.record:
            recorded = json.loads(RECORD.read_text(encoding="utf-8"))
            recorded |= {
                f"{folder.name}/{name}": ceil(statistics.median(times)) for name, times in found.items()
            }
            RECORD.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        totals = [sum(turn) for turn in zip(*found.values(), strict=True)]
        print(f"{folder.name}: {len(notebooks)} notebooks, {spread(totals)} s")
        save(
            f"notebooks-{folder.name}",
            f"the {len(notebooks)} notebooks of {folder.name}",
            f"{number(statistics.median(totals), 2)} s, of which the longest "
            f"{number(max(statistics.median(times) for times in found.values()), 2)} s",
        )


if __name__ == "__main__":
    main()
