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
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from weakref import WeakKeyDictionary, finalize

from ..errors import InputError, install_hint
from ..measure.batches import Batch
from . import torch_internals
from .finding import JobFinding
from .loop_work import LoopSampler, loop_of
from .probe import Probe
from .queues import HandedOn
from .recorder import Pass, Recorder
from .report import html_report, json_report, text_report
from .torch_internals import TorchIterator, TorchLoader
from .usage import this_thread

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
        self.handed_on, self.sampler, self.home = HandedOn(), LoopSampler(), this_thread()
        self.codes: dict[Recorder, tuple[CodeType, int]] = {}

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
                self.sampler.at(None)
                batch = record.fetch(iterator, original)
                if record.thread != self.home:
                    self.handed_on.fetched(record.recorder)
                else:
                    self.sampler.at(self.codes.get(record.recorder))
                return batch

            return timed

        probed = self._probed if self.probes is not None else None
        with (
            torch_internals.replaced_iterators(dataloader, following, probed),
            self.handed_on.watching(),
            self.sampler.watching(),
        ):
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
        self.codes[recorder] = loop_of(caller)
        finalize(iterator, record.end).atexit = False  # a loop that is left early drops its iterator
        return record

    def results(self) -> list[tuple[str, JobFinding]]:
        """Return what was found of each loader, the one that took longest first."""
        found = [(str(name), self._finding(recorder)) for (name, *_), recorder in self.loops.items()]
        return sorted(found, key=lambda one: -_seconds(one[1]))

    def _finding(self, recorder: Recorder) -> JobFinding:
        judged = self.handed_on.judged(recorder)
        found = judged.finding()
        if judged is not recorder:
            return found
        passed = float(sum(sum(column) for column in recorder.pairs()[:2]))
        return replace(found, loop_work=self.sampler.work(self.codes[recorder][0], passed))


def _seconds(finding: JobFinding) -> float:
    rate = float(finding.batch_rate.m_as("1/s"))
    return finding.counted / rate if rate else 0.0


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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found as JSON as well")
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
    results = doctor.results()
    sys.stdout.flush()
    # The script's own output stays what it is without doctor.
    print(text_report(results), file=sys.stderr)
    if asked.report is not None:
        asked.report.write_text(html_report(results, asked.script.name), encoding="utf-8")
    if asked.json is not None:
        asked.json.write_text(json_report(results), encoding="utf-8")
    return status
