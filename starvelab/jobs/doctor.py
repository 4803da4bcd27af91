"""`starvelab doctor train.py`: a training script as it is, and at its end how long it waited for its data.

PyTorch's iterators are timed while the script runs. It gets the same batches in the same order.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from types import FrameType
from weakref import WeakKeyDictionary, finalize

from ..errors import InputError, install_hint
from ..measure.batches import Batch
from ..measure.verdict import MIN_BATCHES, NOT_BOUND, SLIGHT
from ..tables import percent
from ..units import Q_, format_quantity
from . import torch_internals
from .advice import WorkerAdvice, advise
from .finding import JobFinding
from .probe import Probe
from .queues import HandedOn
from .recorder import Pass, Recorder, this_thread
from .torch_internals import TorchIterator, TorchLoader

INTERRUPTED = 130  # the status of a program that Ctrl+C ended


class Doctor:
    """Records every loop of a program over a DataLoader, one for each place that goes over it.

    With `probe` it times what the stages take as well, in a sample of the batches.
    """

    def __init__(self, *, probe: bool = False) -> None:
        # By the place, and by the kind of the data there: a script may make its loader anew for each pass.
        self.loops: dict[tuple[object, ...], Recorder] = {}
        self.passes: WeakKeyDictionary[TorchIterator, Pass] = WeakKeyDictionary()
        self.probes: WeakKeyDictionary[TorchIterator, Probe] | None = WeakKeyDictionary() if probe else None
        self.handed_on, self.home = HandedOn(), this_thread()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time PyTorch's iterators for as long as this lasts."""
        try:
            from torch.utils.data import dataloader
        except ImportError as error:
            raise InputError(
                "starvelab doctor watches the DataLoaders of PyTorch, which this Python does not have. Run "
                f"it with the Python of your training job. {install_hint('torch')}"
            ) from error

        def following(original: Callable[[TorchIterator], Batch]) -> Callable[[TorchIterator], Batch]:
            def timed(iterator: TorchIterator) -> Batch:
                record = self._pass_of(iterator, sys._getframe(1))
                batch = record.fetch(iterator, original)
                if record.thread != self.home:
                    self.handed_on.fetched(record.recorder)
                return batch

            return timed

        probed = self._probed if self.probes is not None else None
        with torch_internals.replaced_iterators(dataloader, following, probed), self.handed_on.watching():
            yield

    def _probed(self, original: Callable[[TorchIterator, TorchLoader], None]) -> Callable[..., None]:
        """Return what begins an iterator with a probe."""

        def begin(iterator: TorchIterator, loader: TorchLoader) -> None:
            probe = Probe()
            with probe.starting(loader):
                original(iterator, loader)
            probe.attach(iterator, loader.dataset)
            assert self.probes is not None
            self.probes[iterator] = probe

        return begin

    def _pass_of(self, iterator: TorchIterator, caller: FrameType) -> Pass:
        """Return the pass that an iterator is in, which its first batch begins."""
        record = self.passes.get(iterator)
        if record is not None and not torch_internals.is_at_start(iterator):
            return record
        if record is not None:
            record.end()  # that was left early
        kind, items, size, workers = torch_internals.description_of(iterator)
        name = f"{kind} at {Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
        recorder = self.loops.setdefault(
            (name, items, size, workers), Recorder(batch_size=size, workers=workers, home=self.home)
        )
        record = recorder.begin(probe=self.probes.get(iterator) if self.probes is not None else None)
        self.passes[iterator] = record
        finalize(iterator, record.end).atexit = False  # a loop that is left early drops its iterator
        return record

    def results(self) -> list[tuple[str, JobFinding]]:
        """Return what was found of each loader, the one that took longest first."""
        judged = self.handed_on.judged
        found = [(str(name), judged(recorder).finding()) for (name, *_), recorder in self.loops.items()]
        return sorted(found, key=lambda one: -_seconds(one[1]))


def _seconds(finding: JobFinding) -> float:
    rate = float(finding.batch_rate.m_as("1/s"))
    return finding.counted / rate if rate else 0.0


def advice_for(finding: JobFinding) -> WorkerAdvice | None:
    """Return what to do, where enough is known and something is to be done."""
    if finding.verdict == NOT_BOUND or finding.counted < MIN_BATCHES or finding.workers is None:
        return None
    if finding.elsewhere:
        return None
    return advise(finding)


def start_up_of(finding: JobFinding) -> str:
    """Return what the first batches of later passes cost beside the verdict; empty if that is little."""
    firsts = [wait.m_as("s") for wait in finding.first_waits[1:]]
    if not firsts or not finding.workers:
        return ""
    share = sum(firsts) / (sum(firsts) + _seconds(finding))
    if share < SLIGHT:
        return ""
    mean = format_quantity(Q_(1e3 * sum(firsts) / len(firsts), "ms"))
    return (
        f"Besides, the first batch of a later pass takes {mean} on average, {percent(share)} of the time in "
        "all: keep the workers with persistent_workers=True, or make each pass longer."
    )


def report(doctor: Doctor) -> str:
    """Return what was found, as text."""
    results = doctor.results()
    if not results:
        return (
            "starvelab doctor: the script used no DataLoader of PyTorch. Put watch(loader) around the loader "
            "of its loop instead."
        )
    lines = []
    for name, finding in results:
        lines.append(f"starvelab doctor: {name}, {finding.batches} batches")
        lines.append(f"  {finding.summary}")
        advice = advice_for(finding)
        if advice is not None:
            lines.append(f"  {advice.summary}")
            lines += [f"  Instead: {lever.summary}" for lever in advice.worthwhile]
        if start_up := start_up_of(finding):
            lines.append(f"  {start_up}")
    return "\n".join(lines)


def html_report(doctor: Doctor, script: str) -> str:
    """Return what was found, as a page."""
    parts = []
    for name, finding in doctor.results():
        advice = advice_for(finding)
        parts.append(f"<h2>{escape(name)}</h2>{finding._repr_html_()}")
        parts.append(advice._repr_html_() if advice is not None else "")
        parts.append(f"<p>{escape(start_up_of(finding))}</p>")
    body = "".join(parts) or f"<p>{escape(report(doctor))}</p>"
    title = f"starvelab doctor: {escape(script)}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        "<style>body{font-family:sans-serif;max-width:60em;margin:auto}td,th{padding:0.2em 0.6em}</style>"
        f"<h1>{title}</h1>{body}</html>\n"
    )


def run_script(script: Path, arguments: Sequence[str]) -> int:
    """Run a script as `python SCRIPT ARGUMENTS` would; its exit status."""
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [str(script), *arguments], str(script.resolve().parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        print("Interrupted. This is what is known so far.", file=sys.stderr)
        return INTERRUPTED
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[0] = before
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `starvelab doctor`. Returns the exit status of the script."""
    parser = argparse.ArgumentParser(
        prog="starvelab doctor",
        description="Run a training script unchanged, and say at its end how long it waited for its data.",
    )
    parser.add_argument(
        "--report", type=Path, metavar="PAGE", help="write what was found into an HTML page as well"
    )
    parser.add_argument(
        "--probe", action="store_true", help="time the stages of the loaders too, in at most 5 %% of the time"
    )
    parser.add_argument("script", type=Path, help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    asked = parser.parse_args(arguments)
    if not asked.script.is_file():
        parser.error(f"doctor runs a Python script, and there is none at {asked.script}. Check the path.")
    doctor = Doctor(probe=asked.probe)
    try:
        with doctor.watching():
            status = run_script(asked.script, asked.arguments)
    except InputError as error:
        parser.error(str(error))
    sys.stdout.flush()
    print(report(doctor))
    if asked.report is not None:
        asked.report.write_text(html_report(doctor, asked.script.name), encoding="utf-8")
    return status
