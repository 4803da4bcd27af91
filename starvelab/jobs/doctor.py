"""`starvelab doctor train.py`: a training script as it is, and at its end how long it waited for its data.

PyTorch's iterators are timed while the script runs. It gets the same batches in the same order.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from operator import length_hint
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from ..errors import InputError, install_hint
from ..measure.datasets import TorchLoader
from ..measure.protocols import Batch
from ..measure.verdict import MIN_BATCHES, NOT_BOUND, SLIGHT
from ..tables import percent
from ..units import Q_, format_quantity
from .advice import WorkerAdvice, advise
from .finding import JobFinding
from .hooks import HookedLoop
from .probe import Probe
from .times import ready_batches

# Any: an iterator of PyTorch, of which private parts are read.
TorchIterator: TypeAlias = Any

INTERRUPTED = 130  # the status of a program that Ctrl+C ended
LOOK = 0.5  # seconds between two questions for the CPU time of the workers


class Doctor:
    """Times every DataLoader of a program.

    Parameters
    ----------
    probe : bool
        Time what its stages take as well, in a sample of the batches.

    Attributes
    ----------
    loops : mapping to LoaderLoop
        One for each place of the script that goes over a loader, in the order in which they began.
    iterators : mapping to LoaderLoop
        Which loop each iterator belongs to.
    """

    def __init__(self, *, probe: bool = False) -> None:
        self.probes: WeakKeyDictionary[TorchIterator, Probe] | None = WeakKeyDictionary() if probe else None
        self.loops: dict[tuple[object, ...], LoaderLoop] = {}
        self.iterators: WeakKeyDictionary[TorchIterator, LoaderLoop] = WeakKeyDictionary()
        self.under_way: list[LoaderLoop] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time PyTorch's iterators for as long as this lasts.

        Raises
        ------
        InputError
            If PyTorch is not installed.
        """
        try:
            from torch.utils.data import dataloader
        except ImportError as error:
            raise InputError(
                "starvelab doctor watches the DataLoaders of PyTorch, which this Python does not have. Run "
                f"it with the Python of your training job. {install_hint('torch')}"
            ) from error
        kind = dataloader._BaseDataLoaderIter
        original = kind.__next__
        doctor = self

        def timed(iterator: TorchIterator) -> Batch:
            return doctor.next_of(iterator, original, sys._getframe(1))

        kind.__next__ = timed  # type: ignore[method-assign, assignment]
        try:
            with self._probing(dataloader):
                yield
        finally:
            kind.__next__ = original  # type: ignore[method-assign]

    @contextmanager
    def _probing(self, dataloader: ModuleType) -> Iterator[None]:
        """Each iterator that begins meanwhile has a probe."""
        probes = self.probes
        if probes is None:
            yield
            return
        kinds = (dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter)
        originals = [kind.__init__ for kind in kinds]

        def probed(original: Callable[[TorchIterator, TorchLoader], None]) -> Callable[..., None]:
            def begin(iterator: TorchIterator, loader: TorchLoader) -> None:
                probe = Probe()
                with probe.starting(loader):
                    original(iterator, loader)
                probe.attach(iterator, loader.dataset)
                probes[iterator] = probe

            return begin

        for kind, original in zip(kinds, originals, strict=True):
            kind.__init__ = probed(original)
        try:
            yield
        finally:
            for kind, original in zip(kinds, originals, strict=True):
                kind.__init__ = original

    def next_of(
        self, iterator: TorchIterator, original: Callable[[TorchIterator], Batch], caller: FrameType
    ) -> Batch:
        """The next batch of an iterator, and what it took."""
        loop = self.iterators.get(iterator)
        if loop is None or iterator._num_yielded == 0:
            loop = self.iterators[iterator] = self._loop(iterator, caller)
            loop.begins(self.under_way)
            if self.probes is not None:
                loop.takes(self.probes.get(iterator))
        else:
            loop.hooked.step_ends()
        if (ready := ready_batches(iterator)) is not None:
            loop.hooked.times.ready.add(ready)
        probe = self.probes.get(iterator) if self.probes is not None else None
        if probe is not None:
            probe.asks()
        spent = time.thread_time()
        try:
            batch = original(iterator)
        except StopIteration:
            loop.ends(self.under_way)
            raise
        except BaseException:
            loop.hooked.something_else()
            raise
        loop.received(iterator, time.thread_time() - spent)
        if probe is not None:
            probe.received(batch)
        return batch

    def _loop(self, iterator: TorchIterator, caller: FrameType) -> LoaderLoop:
        # A script may make its loader anew for each pass: place and kind of data tell the loops apart.
        size = getattr(iterator._index_sampler, "batch_size", None)
        dataset, place = iterator._dataset, f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
        name = f"{type(dataset).__name__} at {place}"
        key = (name, length_hint(dataset), size, iterator._num_workers)
        return self.loops.setdefault(key, LoaderLoop(name, size, iterator._num_workers))

    def results(self) -> list[tuple[str, JobFinding]]:
        """What was found of each loader, the one that took longest first."""
        found = [(loop.name, loop.hooked.result) for loop in self.loops.values()]
        return sorted(found, key=lambda one: -_seconds(one[1]))


class LoaderLoop:
    """The loop over one loader."""

    def __init__(self, name: str, batch_size: int | None, workers: int) -> None:
        self.name = name
        self.hooked = HookedLoop(progress=False)
        self.hooked.times.batch_size, self.hooked.times.workers = batch_size, workers
        self.outer: LoaderLoop | None = None
        self.looked = 0.0

    def begins(self, under_way: list[LoaderLoop]) -> None:
        """A pass begins, perhaps within a step of another loop."""
        if self in under_way:  # the pass before was left early
            under_way.remove(self)
        self.outer = under_way[-1] if under_way else None
        self.outer_batches = self.outer.hooked.times.waits.batches if self.outer else 0
        self.begun = time.perf_counter()
        under_way.append(self)
        self.hooked.pass_begins()

    def takes(self, probe: Probe | None) -> None:
        """The probe of this pass goes on where that of the pass before ended."""
        before = self.hooked.times.probe
        if probe is not None:
            probe.samples = before.samples if before is not None else probe.samples
            self.hooked.times.probe = probe

    def received(self, iterator: TorchIterator, spent: float) -> None:
        """The loop has its batch, for which its thread used the CPU so long."""
        hooked = self.hooked
        hooked.step_begins()
        if hooked.times.workers == 0 and hooked.wait is not None:
            hooked.times.cpu.add(spent, hooked.wait)
        if hooked.received - self.looked > LOOK:
            hooked.times.cpu.look(iterator)
            self.looked = hooked.received

    def ends(self, under_way: list[LoaderLoop]) -> None:
        """The pass is over: its time was no part of the step of a loop around it."""
        self.hooked.wait = None
        if self in under_way:
            under_way.remove(self)
        outer = self.outer
        if outer is not None and outer.hooked.times.waits.batches == self.outer_batches:
            outer.hooked.elsewhere += time.perf_counter() - self.begun


def _seconds(finding: JobFinding) -> float:
    rate = float(finding.batch_rate.m_as("1/s"))
    return finding.counted / rate if rate else 0.0


def advice_for(finding: JobFinding) -> WorkerAdvice | None:
    """What to do, where enough is known and something is to be done."""
    if finding.verdict == NOT_BOUND or finding.counted < MIN_BATCHES or finding.workers is None:
        return None
    return advise(finding)


def start_up_of(finding: JobFinding) -> str:
    """What the first batches of later passes cost, which the verdict leaves out; empty if that is little."""
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
    """What was found, as text."""
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
    """What was found, as a page."""
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
