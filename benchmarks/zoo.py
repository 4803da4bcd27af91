"""What `starvelab-doctor` says of each job in `doctor/zoo`, beside PyTorch's profiler, and the cure's gain.

Each file runs by turns as it is and with `--fixed`, and then under the doctor and under the profiler. What is
known stays in a file.

    python -m benchmarks.zoo                       all that are not known; `--again --jobs NAME` runs one anew
    python -m benchmarks.zoo --write               the table in docs/zoo.md
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from .report import REPOSITORY, Record, days, listed, options

ZOO = REPOSITORY / "doctor" / "zoo"
RESULTS = ZOO / "measured.json"
PAGE = REPOSITORY / "docs" / "zoo.md"
PROFILED = Path(__file__).with_name("jobs") / "profiled.py"
LIMIT = 90  # seconds
SAID = 240  # characters of a remedy in the table
HEADERS = ["file", "fault", "gain of the cure", "the doctor says first", "right", "PyTorch's profiler"]
RATE = re.compile(r"([\d.]+) batches/s")
FIELD = re.compile(r"^(Symptom|Asked|Cause|Right): (.+?)(?=\n[A-Z]\w+: |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Fault:
    """A file of the zoo, and what its head says."""

    name: str
    title: str
    symptom: str
    asked: str
    cause: str
    right: tuple[str, ...]  # names of first remedies that are right

    @property
    def path(self) -> Path:
        """Return where it is."""
        return ZOO / f"{self.name}.py"


def fault_of(path: Path) -> Fault:
    """Return the fault of a file; raise a ValueError where its head lacks a field."""
    head = path.read_text(encoding="utf-8").split('"""')[1]
    fields = {name.lower(): " ".join(text.split()) for name, text in FIELD.findall(head)}
    if missing := {"symptom", "asked", "cause", "right"} - fields.keys():
        raise ValueError(
            f"The head of a fault has Symptom, Asked, Cause and Right; {path.name} lacks {missing}."
        )
    right = tuple(part.strip() for part in fields.pop("right").split(","))
    return Fault(path.stem, head.strip().splitlines()[0], right=right, **fields)


def faults() -> dict[str, Fault]:
    """Return all of them."""
    return {path.stem: fault_of(path) for path in sorted(ZOO.glob("*.py"))}


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a program of Python."""
    return subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=LIMIT, check=False
    )


def rate(fault: Fault, *flags: str) -> float:
    """Return the batches a second that it reaches; 0 where it ends without."""
    found = RATE.findall(run(fault.path, *flags).stderr)
    return float(found[-1]) if found else 0.0


def under_doctor(fault: Fault) -> tuple[str, str]:
    """Return the name and the text of the doctor's first remedy, for the loop that took longest."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "doctor.json"
        done = run("-m", "starvelab_doctor", "--json", file, fault.path)
        loops = json.loads(file.read_text(encoding="utf-8"))["loops"]
    if not loops:
        said = done.stderr.rpartition("starvelab-doctor: ")[2]
        return ("own batches" if "reads, copies or prepares" in said else ""), said.strip()
    remedies = loops[0]["remedies"]
    return (remedies[0]["name"], remedies[0]["text"]) if remedies else ("", loops[0]["state"])


def profiled(fault: Fault) -> str:
    """Return what takes most of a job's time, as PyTorch's profiler names it."""
    try:
        return run(PROFILED, fault.path).stdout.strip()
    except subprocess.TimeoutExpired:
        return f"it takes more than {LIMIT} s"


def measure(name: str, asked: argparse.Namespace) -> dict[str, Any]:  # Any: values of a JSON file
    """Return what a fault reaches as it is and cured, and what is said of it."""
    fault = faults()[name]
    pairs = [(rate(fault), rate(fault, "--fixed")) for _ in range(asked.rounds)]
    before, after = (median(column) for column in zip(*pairs, strict=True))
    first, said = under_doctor(fault)
    return {"before": before, "after": after, "first": first, "said": said, "profiler": profiled(fault)}


def row(name: str, seen: dict[str, Any]) -> list[str]:
    """Return a row of the table."""
    fault = faults()[name]
    gain = f"{seen['after'] / seen['before']:.2g}" if seen["before"] else "it hangs"
    said = seen["said"] if len(seen["said"]) <= SAID else f"{seen['said'][:SAID].rpartition(' ')[0]} ..."
    right = "yes" if seen["first"] in fault.right else "no"
    return [f"`{name}.py`", fault.title.partition(" --fixed")[0], gain, said, right, seen["profiler"]]


def table(known: dict[str, Any]) -> str:
    """Return the table of all that was measured, and what it comes to."""
    shown = {name: seen for name, seen in sorted(known.items()) if name in faults()}
    right = sum(seen["first"] in faults()[name].right for name, seen in shown.items())
    rows = listed(HEADERS, (row(name, seen) for name, seen in shown.items()))
    when = days(shown.values())
    return f"The doctor's first remedy is right in {right} of {len(shown)} ({when}, two cores).\n\n{rows}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or write the table."""
    parser = options(__doc__, rounds=(3, 1), jobs=([*faults()], ["no_workers"]))
    Record(RESULTS, PAGE, "the zoo").run(parser, arguments, faults(), measure=measure, row=row, table=table)


if __name__ == "__main__":
    main()
