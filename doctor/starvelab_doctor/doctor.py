"""`starvelab-doctor train.py`: a training script as it is, and at its end how long it waited for its data."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# Whatever loads NumPy is imported when the script has run: see `on_import`.
from .script import INTERRUPTED, run_script, terminable
from .watching.on_import import LateDoctor

OPTIONS = (
    ("--probe", "probe", "time the stages of the loaders too, in at most 5 %% of the time"),
    ("--no-lines", "no_lines", "do not note which lines take the time"),
    ("-m", "module", "the script is a module, as for python -m"),
    ("--try", "tries", "the ladder, then what the doctor says first, and other settings of the loader"),
    ("--ladder", "ladder", "measure how much faster the job is without its loader: no cure brings more"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `starvelab-doctor`, or its `compare`. Returns the exit status, also that of the script."""
    words = sys.argv[1:] if arguments is None else [*arguments]
    if words[:1] == ["compare"]:
        from .compare import main as compare  # loaded here: it loads NumPy, which a script has to load itself

        return compare(words[1:])
    parser = argparse.ArgumentParser(
        prog="starvelab-doctor",
        description="Run a training script unchanged, and say at its end how long it waited for its data.",
    )
    for option, name, meaning in OPTIONS:
        parser.add_argument(option, dest=name, action="store_true", help=meaning)
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('starvelab-doctor')}")
    meaning = "write what was found as JSON as well"  # the script may go to another folder meanwhile
    parser.add_argument("--json", type=lambda file: Path(file).absolute(), metavar="FILE", help=meaning)
    parser.add_argument("script", help="the training script")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    rest.required = False  # argparse names it as missing beside the script
    asked = parser.parse_args(words)
    if not asked.module and not Path(asked.script).is_file():
        parser.error(f"doctor runs a Python script, and there is none at {asked.script}. Check the path.")
    if find_spec("torch") is None:
        parser.error(
            "starvelab-doctor has to be installed into the Python that runs your training, which has "
            f"PyTorch. It is installed into {sys.executable}, which has none. Run that other Python with -m "
            "pip install starvelab-doctor, or in a checkout of starvelab with -m pip install . ./doctor."
        )
    if asked.tries or asked.ladder:
        from .trials.command import main as run_trials

        return run_trials(asked)
    late, process = LateDoctor(), os.getpid()
    with late.watching(probe=asked.probe, lines=not asked.no_lines), terminable():
        status = run_script(asked.script, asked.arguments, module=asked.module)
    return _report(asked, late, status) if os.getpid() == process else status  # a fork makes no report


def _report(asked: argparse.Namespace, late: LateDoctor, status: int) -> int:
    """Say what was found, where this process is the one that reports; return the exit status."""
    from .judging.report import json_report, text_report
    from .watching.ranks import local_ranks, merge, read, write

    sys.stdout.flush()
    loops = late.doctor.rank_loops() if late.doctor is not None else []
    own = late.doctor.lines.without_loader() if late.doctor is not None and late.doctor.lines else ()
    if (beside := local_ranks()) is not None:
        shared, rank, local, count = beside
        write(shared, rank, loops)
        if local:
            return status
        results = merge(read(shared, count))
        shutil.rmtree(shared, ignore_errors=True)
    else:
        results = [*merge(late.ranks), *((loop.name, loop.finding) for loop in loops)]
    said = text_report(results, own)
    # Workers that send nothing are the cause themselves where it is known at which line they are.
    told = any(loop.waits.batches or loop.loader.lines.stuck for _, loop in results)
    if not told and status not in (0, INTERRUPTED):
        said = (
            f"starvelab-doctor: the script ended with status {status} before a loop got a batch. "
            "Correct that first."
        )
    # The script's own output stays what it is without doctor.
    print(said, file=sys.stderr)
    if asked.json is not None:
        asked.json.write_text(json_report(results), encoding="utf-8")
    return status
