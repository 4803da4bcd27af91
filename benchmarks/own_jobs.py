"""What `starvelab-doctor` says of three realistic training jobs with four planted faults each.

A job runs under doctor, unchanged, with one fault; then it runs repaired. Where the fault is the number
of workers, the repair is the number that doctor advised. It takes the starvelab of the environment named:

    python -m benchmarks.own_jobs --environment /path/to/environment --jobs photos text arrays

With `--record` it writes what the notebook about a job of one's own shows to those who have no PyTorch.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from starvelab_doctor.example import RECORD, SCRIPT
from starvelab_doctor.script import run_script
from starvelab_doctor.watching.hooks import Doctor
from starvelab_doctor.watching.recorder import Recorder

from .report import line, machine, options

JOBS = Path(__file__).with_name("jobs")
JOB_NAMES = ("photos", "text", "arrays")
WORKERS, ROUNDS = (0, 1, 2, 3), 3  # of the runs that are recorded


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    job: str
    name: str
    says: str  # what doctor has to say for its advice to be right
    lever: str  # the change of which doctor predicts what it brings: by its name, or "workers"
    verdict: str = "highly input-bound"  # of doctor


FED = "not input-bound"
DATASET, COLLATING = "The largest stage is the dataset", "The largest stage is collating"
FAULTS = (
    Fault("photos", "no workers", "instead of 0", "workers"),
    Fault("photos", "heavy transform", DATASET, "a cache in memory"),
    Fault("photos", "slow reads", "more requests at once", "workers"),
    Fault("photos", "slow collate", COLLATING, "compiled or vectorized stages"),
    Fault("text", "no workers", "instead of 0", "workers"),
    Fault("text", "heavy tokenizer", DATASET, "a cache in memory"),
    Fault("text", "slow collate", COLLATING, "compiled or vectorized stages"),
    Fault("text", "tiny prefetch", "a deeper queue", "a deeper queue", "moderately input-bound"),
    Fault("arrays", "no workers", "instead of 0", "workers"),
    Fault("arrays", "whole file", DATASET, "a cache in memory"),
    Fault("arrays", "slow step", "look at the training step", "a training step 2 times as fast", FED),
    Fault("arrays", "new workers for each short pass", "persistent_workers", "persistent_workers=True", FED),
)


def run(command: list[str | Path], folder: Path) -> tuple[str, float]:
    """What doctor said, and the samples a second that the job says at its end."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stderr, float(re.search(r"samples/s ([\d.]+)", done.stdout)[1])


def try_out(fault: Fault, environment: Path, folder: Path, batches: int | None) -> list[str]:
    """One row of the table."""
    job = [JOBS / f"{fault.job}.py", *(["--batches", str(batches)] if batches else [])]
    bin_folder = environment / "bin"
    doctor = [bin_folder / "starvelab", "doctor", "--probe"]
    said, before = run([*doctor, *job, "--fault", fault.name], folder)
    told = said.partition("starvelab-doctor:")[2]
    verdict = (re.search(r"This job is ([a-z -]+)", told) or ["", "cannot tell"])[1]
    advised = re.search(r"(\d+) workers? instead of \d+: ([\d.]+) ", told)
    lever = re.search(rf"{re.escape(fault.lever)}: ([\d.]+) ", told)
    repair: list[str | Path] = []
    predicted, how = "none", "the fault removed"
    if fault.lever == "workers" and advised:
        repair, how = ["--workers", advised[1]], f"{advised[1]} workers"
        repair += ["--fault", fault.name] if fault.name != "no workers" else []
        predicted = f"{float(advised[2]) / before:.2f}, {how}"
    elif lever:
        predicted = f"{float(lever[1]) / before:.2f}, {fault.lever}"
    _, after = run([bin_folder / "python", *job, *repair], folder)
    right = "yes" if verdict == fault.verdict and fault.says in told else "no"
    print(told, f"before {before:.1f}, after {after:.1f} samples/s", file=sys.stderr, flush=True)
    return [fault.job, fault.name, verdict, right, predicted, f"{after / before:.2f}, {how}"]


def _recorded(workers: int) -> Recorder:
    """The times of one run under doctor."""
    doctor = Doctor()
    with doctor.watching():
        run_script(SCRIPT, [str(workers)])
    (recorder,) = doctor.loops.values()
    return recorder


def record() -> None:
    """Run the job of the notebook under doctor, and keep the times of its batches."""
    runs = {}
    for workers in WORKERS:
        # Other programs only make a job slower: the quickest run is the one that was disturbed least.
        times = min(
            (_recorded(workers) for _ in range(ROUNDS)), key=lambda one: sum(one.waits) + sum(one.steps)
        )
        waits, steps, _ = times.pairs()
        runs[str(workers)] = {
            "batch_size": times.batch_size,
            "first_wait": round(1e3 * (times.passes[0].first_wait or 0.0), 2),
            "prepare_cpu": times.use.share and round(times.use.share, 3),
            "queue_depth": round(times.ready / times.asked, 3) if times.asked else None,
            "waits": [round(1e3 * float(wait), 2) for wait in waits],
            "steps": [round(1e3 * float(step), 2) for step in steps],
        }
        print(workers, times.finding().summary)
    found = {
        "machine": "a machine with two cores and no GPU",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "runs": runs,
    }
    # A line for each run: neither one long line nor one for each number.
    text = json.dumps(found | {"runs": {}}, indent=1)
    lines = ",\n".join(f'  "{workers}": {json.dumps(one)}' for workers, one in runs.items())
    RECORD.write_text(text.replace("{}", "{\n" + lines + "\n }") + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(
        __doc__, jobs=([*JOB_NAMES], ["text"]), faults=(None, ["tiny prefetch"]), batches=(None, 20)
    )
    parser.add_argument(
        "--environment", type=Path, default=Path(sys.prefix), help="where starvelab is installed"
    )
    parser.add_argument("--jobs", nargs="+", choices=JOB_NAMES)
    parser.add_argument("--faults", nargs="+", help="only these")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.record:
        record()
        return
    print(machine())
    print("| job | fault | verdict | right, with the right advice | predicted gain | measured gain |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="starvelab-own-jobs-") as folder:
        for fault in FAULTS:
            if fault.job in asked.jobs and (not asked.faults or fault.name in asked.faults):
                print(line(try_out(fault, asked.environment, Path(folder), asked.batches)), flush=True)


if __name__ == "__main__":
    main()
