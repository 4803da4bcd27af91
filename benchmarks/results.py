"""The committed results of the benchmarks: `make bench` writes them, and docs/build.py makes a table of them.

A row that a run did not measure, such as one whose other side is not installed, keeps its earlier figures and
the machine and the date that belong to them.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import TypedDict

from .report import REPOSITORY, machine

FILE = REPOSITORY / "benchmarks" / "results.json"
SAVE = "STARVELAB_BENCH_SAVE"  # the environment variable that `make bench` sets


class Row(TypedDict):
    """One line of the table; `other` and `ratio` are empty where there is nothing to compare with."""

    what: str
    starvelab: str
    other: str
    ratio: str
    machine: str
    date: str


def read(path: Path = FILE) -> dict[str, Row]:
    """The rows by their key, in the order of the table."""
    return json.loads(path.read_text(encoding="utf-8"))


def save(key: str, what: str, starvelab: str, other: str = "", ratio: str = "", *, path: Path = FILE) -> None:
    """Write one row, if this run is one whose results are kept."""
    if not os.environ.get(SAVE):
        return
    rows = read(path) if path.exists() else {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows[key] = Row(what=what, starvelab=starvelab, other=other, ratio=ratio, machine=machine(), date=today)
    path.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
