"""What `starvelab-doctor` says of each job in `doctor/zoo`, beside PyTorch's profiler, and the cure's gain.

Each file runs by turns as it is and with `--fixed`, and then under the doctor and under the profiler. What is
known stays in a file.

    python -m benchmarks.zoo                       all of them; a name or more runs these again
    python -m benchmarks.zoo --write               the table in docs/zoo.md
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from .report import REPOSITORY, options

ZOO = REPOSITORY / "doctor" / "zoo"
RESULTS = ZOO / "measured.json"
PAGE = REPOSITORY / "docs" / "zoo.md"
PROFILED = Path(__file__).with_name("jobs") / "profiled.py"
LIMIT = 90  # seconds
RATE = re.compile(r"([\d.]+) batches/s")
FIELD = re.compile(r"^(Symptom|Asked|Cause|Right): (.+?)(?=\n[A-Z]\w+: |\Z)", re.MULTILINE | re.DOTALL)
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


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


@dataclass(frozen=True)
class Row:
    """What was measured of a fault."""

    name: str
    rates: tuple[float, float]  # batches a second as it is, and cured
    first: str  # the name of the doctor's first remedy
    said: str  # its text
    profiler: str


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


def measure(fault: Fault, turns: int) -> Row:
    """Return what a fault reaches, and what is said of it."""
    pairs = [(rate(fault), rate(fault, "--fixed")) for _ in range(turns)]
    before, after = (median(column) for column in zip(*pairs, strict=True))
    return Row(fault.name, (before, after), *under_doctor(fault), run(PROFILED, fault.path).stdout.strip())


def read() -> dict[str, Row]:
    """Return what was measured before."""
    if not RESULTS.exists():
        return {}
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {row["name"]: Row(**row | {"rates": tuple(row["rates"])}) for row in rows}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is named, and print it."""
    parser = options(__doc__, turns=(3, 1))
    parser.add_argument("--turns", type=int, help="of each side (default %(default)s)")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="write docs/zoo.md, and measure nothing")
    asked = parser.parse_args(arguments)
    known = read()
    names = [] if asked.write else asked.names or (["no_workers"] if asked.smallest else [*faults()])
    for name in names:
        row = known[name] = measure(faults()[name], asked.turns)
        before, after = row.rates
        print(f"{name}: {before:.1f} to {after:.1f} batches/s; {row.first}: {row.said:.100} | {row.profiler}")
        sys.stdout.flush()
        if not asked.smallest:
            rows = [asdict(known[one]) for one in sorted(known)]
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
