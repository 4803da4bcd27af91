"""What `starvelab-doctor` says of each job in `doctor/zoo`, and what its first remedy and the cure bring.

In each turn a job runs as it is, with `--fixed`, under the doctor, and with what the doctor says first where
that is a setting of the loader. Each turn stays in a file, so that a run that was ended goes on.

    python -m benchmarks.zoo                      turns that are missing; `--jobs NAME` of these only
    python -m benchmarks.zoo --again              turns with the committed doctor; it goes on, too
    python -m benchmarks.zoo --planted            the jobs whose work is known to the millisecond
    python -m benchmarks.zoo --mode try           what `--try` keeps; `ladder` bounds the gains by a ladder
    python -m benchmarks.zoo --loops 2            so many loops compute beside
    python -m benchmarks.zoo --write              the table in docs/zoo.md
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from starvelab.tables import count_of

from .report import REPOSITORY, Record, days, listed, machine, options

ZOO = REPOSITORY / "doctor" / "zoo"
RESULTS = ZOO / "measured.json"
PAGE = REPOSITORY / "docs" / "zoo.md"
JOBS = Path(__file__).with_name("jobs")
LIMIT = 90  # seconds that a run of a job may take; a ladder or trials take TRIALS times as many
TRIALS = 10
MISSED = 0.10  # what may be missing between a gain that is said and the one that is measured
FED, UNTOLD, NOTHING = "not input-bound", "cannot tell", "none"
SETTINGS = {"workers": "num_workers", "prefetch": "prefetch_factor", "persistent": "persistent_workers"}
HEADERS = [
    "job", "fault", "the cure brings", "the doctor names first", "right", "gain said", "measured",
    "in the loader, by PyTorch's profiler",
]  # fmt: skip
RATE = re.compile(r"([\d.]+) batches/s")
WAITED = re.compile(r"enumerate\(DataLoader\)\S+ (\d+ ?%)")
FIELD = re.compile(r"^(Symptom|Asked|Cause|Right|Stage|Also): (.+?)(?=\n[A-Z]\w+: |\Z)", re.M | re.S)
Values = dict[str, Any]  # of a JSON file


def words(text: str, by: str = ",") -> tuple[str, ...]:
    """Return the parts of a text."""
    return tuple(part.strip() for part in text.split(by) if part.strip())


@dataclass(frozen=True)
class Fault:
    """A file of the zoo, and what its head says."""

    name: str
    title: str
    symptom: str
    asked: str
    cause: str
    right: tuple[str, ...]  # names of first remedies that are right
    stage: tuple[str, ...] = ()  # stages, remedies or verdicts that name the cause of planted work
    also: tuple[str, ...] = ()  # arguments with which it is another job of the same fault

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
    lists = {name: words(fields.pop(name, "")) for name in ("right", "stage")}
    also = words(fields.pop("also", ""), ";")
    return Fault(path.stem, head.strip().splitlines()[0], also=also, **lists, **fields)


def faults() -> dict[str, Fault]:
    """Return all of them."""
    return {path.stem: fault_of(path) for path in sorted(ZOO.glob("*.py"))}


def jobs() -> dict[str, Fault]:
    """Return the fault of each job: a file, and the file with each of its other arguments."""
    return {f"{name} {more}".strip(): fault for name, fault in faults().items() for more in ("", *fault.also)}


def command(job: str) -> list[object]:
    """Return the script of a job and its arguments."""
    name, *arguments = job.split()
    return [ZOO / f"{name}.py", *arguments]


def run(*parts: object, limit: int = LIMIT) -> tuple[str, str]:
    """Return what a program of Python writes into its output and its errors; or that it took too long."""
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, *map(str, parts)], capture_output=True, text=True, timeout=limit, check=False
        )
        return done.stdout, done.stderr
    return "", f"more than {limit} s"


def rate(*parts: object) -> float:
    """Return the batches a second that a job reaches; 0 where it ends without."""
    found = RATE.findall(run(*parts)[1])
    return float(found[-1]) if found else 0.0


def under_doctor(job: str, mode: str = "plain") -> Values:
    """Return what the doctor says of the loop that took longest."""
    how = [f"--{mode}"] if mode != "plain" else ["--probe"] if jobs()[job].stage else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "doctor.json"
        parts = ("-m", "starvelab_doctor", *how, "--json", file, *command(job))
        _, error = run(*parts, limit=LIMIT if mode == "plain" else TRIALS * LIMIT)
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"loops": []}
    if not known["loops"]:
        said = error.rpartition("starvelab-doctor: ")[2].strip()
        return {"first": "own batches" if "reads, copies or prepares" in said else "", "said": said}
    loop = known["loops"][0]
    first = (loop["remedies"] or [{"name": NOTHING, "text": loop["state"]}])[0]
    named = [loop["verdict"], loop["largest_stage"], *(one["name"] for one in loop["remedies"])]
    seen = {"first": first["name"], "said": first["text"], "named": named}
    seen |= {name: first.get(name) for name in ("gain", "value")}
    if "try" in known:
        seen |= {"kept": known["try"]["settings"], "gain": known["try"]["gain"]}
    return seen


def brings(job: str, seen: Values) -> float | None:
    """Return what the first remedy brings, or what trials kept; None where the job has no such change."""
    name, value = SETTINGS.get(seen["first"]), seen.get("value")
    settings = seen.get("kept") or ({name: True if value is None else value} if name else {})
    if settings and settings.keys() <= {*SETTINGS.values()}:
        after = rate(JOBS / "with_settings.py", json.dumps(settings), *command(job))
    else:
        after = seen["after"] if seen["first"] in jobs()[job].right else 0.0
    return after / seen["before"] if after and seen["before"] else None


@contextmanager
def others(count: int) -> Iterator[None]:
    """Let so many loops compute beside."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure(job: str, mode: str = "plain", loops: int = 0) -> Values:
    """Return one turn of a job: its rates as it is and cured, what is said, and what that brings."""
    load = os.getloadavg()[0]
    with others(loops):
        before, after = rate(*command(job)), rate(*command(job), "--fixed")
        seen = {"before": before, "after": after} | under_doctor(job, mode)
        return seen | {"brings": brings(job, seen), "load": round(load, 1)}


def profiled(job: str) -> str:
    """Return what takes most of a job's time, as PyTorch's profiler names it; nothing of a job that hangs."""
    return run(JOBS / "profiled.py", *command(job))[0].strip()


def judge(job: str, seen: Values) -> dict[str, bool | None]:
    """Return what is right of one turn; None where there is nothing to judge."""
    fault, gain, measured = jobs()[job], seen.get("gain"), seen.get("brings")
    causes = fault.stage or fault.right
    return {
        "cause": bool({seen["first"], *seen.get("named", ())} & {*causes}),
        "first": seen["first"] in fault.right,
        "wrong": not gain[0] - MISSED <= measured <= gain[2] + MISSED if gain and measured else None,
        "over": gain[2] > measured + MISSED if gain and measured else None,
    }


def gain_of(seen: Values) -> str:
    """Return the gain that is said, with its range."""
    return "{1:.2g} ({0:.2g} to {2:.2g})".format(*seen["gain"]) if seen.get("gain") else ""


def row(job: str, turns: Sequence[Values], profiler: str = "") -> list[str]:
    """Return a row of the table: medians, and in how many turns the first remedy is right."""
    fault, (seen, *_) = jobs()[job], sorted(turns, key=lambda turn: judge(job, turn)["first"] is True)
    ratios = [turn["after"] / turn["before"] for turn in turns if turn["before"]]
    measured = [turn["brings"] for turn in turns if turn.get("brings")]
    first = "nothing" if seen["first"] == NOTHING else seen["first"]
    first += f": {seen['value']}" if seen["first"] in SETTINGS and seen.get("value") else ""
    right = sum(judge(job, turn)["first"] is True for turn in turns)
    cure = f"{median(ratios):.2g}" if ratios else "it hangs"
    return [
        f"`{job}`", fault.title.partition(" --fixed")[0], cure if "--fixed" in fault.title else "",
        first, f"{right} of {len(turns)}", gain_of(seen),
        f"{median(measured):.2g}" if measured else "",
        in_loader[1] if (in_loader := WAITED.search(profiler)) else "",
    ]  # fmt: skip


def summary(known: dict[str, list[Values]], whose: str) -> str:
    """Return what some jobs come to, over all turns."""
    counts, turns = Counter[str](), 0
    for job, seen in known.items():
        for turn in seen:
            turns += 1
            counts.update(name for name, right in judge(job, turn).items() if right)
    return (
        f"{whose}: {len(known)} jobs, {turns} turns. The cause is named in {counts['cause']}, the "
        f"first remedy is right in {counts['first']}; confident and wrong {counts['wrong']}; the upper end "
        f"of a gain is above what was measured in {counts['over']}."
    )


def table(results: Values) -> str:
    """Return a table for each machine and way in which the doctor was asked, and what it comes to."""
    profiler, parts = results.get("profiler", {}), []
    for kind, found in results.items():
        known = {job: found[job] for job in jobs() if kind != "profiler" and job in found}
        if not known:
            continue
        of = {planted: {job: seen for job, seen in known.items() if bool(jobs()[job].stage) is planted}
              for planted in (False, True)}  # fmt: skip
        every = [turn for turns in known.values() for turn in turns]
        loads = [turn["load"] for turn in every if turn["load"] is not None]
        load = f", load {min(loads):g} to {max(loads):g}" if loads else ""
        when = f"{days(every)}, two cores{load}"
        names = {False: "As a user meets them", True: "Planted to the millisecond, with a probe"}
        text = " ".join(summary(of[planted], names[planted]) for planted in of if of[planted])
        # Of further ways in which the doctor was asked, the jobs that it got wrong are enough.
        known = {job: turns for job, turns in known.items()
                 if not parts or not all(judge(job, turn)["first"] for turn in turns)}  # fmt: skip
        rows = (row(job, turns, profiler.get(job, "")) for job, turns in known.items())
        whose = "" if not parts else " Listed are those that it got wrong."
        parts.append(f"{kind.capitalize()}: {when}. {text}{whose}\n\n{listed(HEADERS, rows)}")
    return "\n".join(parts)


def version() -> str:
    """Return a name of the doctor's code as it is committed."""
    tree = ["git", "rev-parse", "--short", "HEAD:doctor/starvelab_doctor"]
    return subprocess.run(tree, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or write the table."""
    known = jobs()
    parser = options(__doc__, rounds=(3, 1), jobs=([*known], ["tiny_items"]))
    parser.add_argument("--jobs", nargs="+", choices=[*known], metavar="JOB")
    parser.add_argument("--planted", action="store_true", help="only jobs whose head names a stage")
    parser.add_argument("--mode", choices=("plain", "ladder", "try"), default="plain")
    parser.add_argument("--loops", type=int, default=0, help="that compute beside (default 0)")
    parser.add_argument("--again", action="store_true", help="turns of the doctor as it is committed")
    parser.add_argument(
        "--write", action="store_true", help="write the table into the documents, and run nothing"
    )
    asked = parser.parse_args(arguments)
    record = Record(RESULTS, PAGE, "the zoo")
    if asked.write:
        record.write(table(record.known))
        return
    print(machine())
    now, kind = version(), f"{asked.mode}, {count_of(asked.loops, 'loop')} beside"
    found, profiler = (record.known.setdefault(name, {}) for name in (kind, "profiler"))
    chosen = [job for job in asked.jobs if known[job].stage or not asked.planted]
    for number in range(asked.rounds):
        for job in chosen:
            turns = [turn for turn in found.get(job, []) if not asked.again or turn["doctor"] == now]
            if len(turns) > number and asked.saved:
                continue
            day = f"{datetime.now(UTC):%Y-%m-%d}"
            turn = measure(job, asked.mode, asked.loops) | {"doctor": now, "date": day}
            print(f"turn {number + 1}, {job}: {line_of(job, turn)}", flush=True)
            if asked.saved:
                found[job] = [*turns, turn]
                profiler[job] = profiler.get(job) or profiled(job)
                record.save()


def line_of(job: str, turn: Values) -> str:
    """Return a turn as a line."""
    right = ", ".join(f"{name} {value}" for name, value in judge(job, turn).items())
    measured = f"{turn['brings']:.2g}" if turn.get("brings") else "not measured"
    cure = f"{turn['after'] / turn['before']:.2g}" if turn["before"] else "endless"
    return f"{turn['first']}; {right}; cure {cure}, said {gain_of(turn) or 'no gain'}, brings {measured}"


if __name__ == "__main__":
    main()
