"""PyTorch's iterators, timed while a program runs: it gets the same batches in the same order."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from weakref import WeakKeyDictionary, finalize

import numpy as np

from starvelab.errors import InputError, install_hint
from starvelab.measure.batches import Batch

from .. import torch_internals
from ..finding.job import JobFinding
from ..finding.lines import JobLines, LineShare
from ..host import this_thread
from ..shares import INTERRUPTION
from ..spans import union
from ..torch_internals import TorchIterator, TorchLoader
from .job_lines import JobSamples
from .pickled import Pickled
from .probe import Probe
from .ranks import RankLoop
from .recorder import Pass, Recorder

CELL = re.compile(r"<ipython-input|ipykernel_\d")


class Doctor:
    """Records every loop of a program over a DataLoader, one for each place; a `probe` times its stages."""

    def __init__(self, *, probe: bool = False, lines: bool = True) -> None:
        # By the place, and by the kind of the data there: a script may make its loader anew for each pass.
        self.loops: dict[tuple[object, ...], Recorder] = {}
        self.passes: WeakKeyDictionary[TorchIterator, Pass] = WeakKeyDictionary()
        self.probes: WeakKeyDictionary[TorchIterator, Probe] | None = WeakKeyDictionary() if probe else None
        self.lines = JobSamples() if lines else None
        self.home = this_thread()
        self.tokens: dict[Recorder, set[int]] = defaultdict(set)  # of its iterators, in `lines`
        self.started: WeakKeyDictionary[TorchIterator, tuple[float, Pickled]] = WeakKeyDictionary()  # seconds

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time PyTorch's iterators for as long as this lasts."""
        try:
            from torch.utils.data import dataloader
        except ImportError as error:
            raise without_torch() from error

        def following(original: Callable[[TorchIterator], Batch]) -> Callable[[TorchIterator], Batch]:
            def timed(iterator: TorchIterator) -> Batch:
                record = self._pass_of(iterator, sys._getframe(1))
                return record.fetch(iterator, original)

            return timed

        with (
            torch_internals.replaced_iterators(dataloader, following, self._beginning, self._restarting),
            self.lines.watching() if self.lines is not None else nullcontext(),
        ):
            yield

    def _beginning(self, original: Callable[[TorchIterator, TorchLoader], None]) -> Callable[..., None]:
        """Return what begins an iterator, with a probe if it is to have one, and times that."""

        def begin(iterator: TorchIterator, loader: TorchLoader) -> None:
            begun, pickled = time.perf_counter(), Pickled()
            with ExitStack() as stack:
                stack.enter_context(pickled.counting())
                if self.lines is not None:
                    stack.enter_context(self.lines.starting(iterator, loader))
                if self.probes is None:
                    original(iterator, loader)
                else:
                    probe = Probe()
                    with probe.starting(loader):
                        original(iterator, loader)
                    probe.attach(iterator, loader.dataset)
                    self.probes[iterator] = probe
            self.started[iterator] = (time.perf_counter() - begun, pickled)

        return begin

    def _restarting(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return what begins a later pass of an iterator whose workers persist, and times that."""

        def restart(iterator: TorchIterator, loader: TorchLoader, first_iter: bool = False) -> None:
            begun = time.perf_counter()
            original(iterator, loader, first_iter)
            if not first_iter:
                self.started[iterator] = (time.perf_counter() - begun, Pickled())

        return restart

    def _pass_of(self, iterator: TorchIterator, caller: FrameType) -> Pass:
        """Return the pass that an iterator is in, which its first batch begins."""
        record = self.passes.get(iterator)
        if record is not None and not torch_internals.is_at_start(iterator):
            return record
        if record is not None:
            record.end()  # that was left early
        kind, items, size, workers = torch_internals.description_of(iterator)
        line, file = caller.f_lineno, caller.f_code.co_filename
        # IPython compiles a cell under a name that says nothing to whoever wrote it.
        place = f"line {line} of a cell" if CELL.search(file) else f"{Path(file).name}:{line}"
        name, number = f"{kind} at {place}", 1
        while (recorder := self.loops.get((name, items, size, workers))) and self._beside(recorder, iterator):
            number += 1
            name = f"{kind} at {place}, loader {number}"
        if recorder is None:
            recorder = Recorder(batch_size=size, workers=workers, home=self.home)
            self.loops[name, items, size, workers] = recorder
        record = recorder.begin(probe=self.probes.get(iterator) if self.probes is not None else None)
        taken, pickled = self.started.pop(iterator, (0.0, Pickled()))
        record.start_up += taken
        recorder.pickled.add(pickled)
        self.passes[iterator] = record
        if self.lines is not None and iterator in self.lines.tokens:
            self.tokens[recorder].add(self.lines.tokens[iterator])
        finalize(iterator, record.end).atexit = False  # a loop that is left drops its iterator
        return record

    def _beside(self, recorder: Recorder, iterator: TorchIterator) -> bool:
        """True if a pass over other data is under way there, as where one line goes over two loaders."""
        return any(
            record.recorder is recorder and record in record.under_way
            for other, record in self.passes.items()
            if torch_internals.dataset_of(other) is not torch_internals.dataset_of(iterator)
        )

    def results(self) -> list[tuple[str, JobFinding]]:
        """Return what was found of each loader, the one that took longest first."""
        return [(loop.name, loop.finding) for loop in self.rank_loops()]

    def own_lines(self) -> tuple[LineShare, ...]:
        """Return what the thread of a loop without a DataLoader does beside training."""
        return self.lines.without_loader() if self.lines is not None else ()

    def rank_loops(self) -> list[RankLoop]:
        """Return the same with the waits and steps, for a report of several ranks."""
        names, found = [name for name, *_ in self.loops], list[RankLoop]()
        for (name, items, *_), each in self.loops.items():
            own = str(name) if names.count(name) == 1 else f"{name}, {items} items"  # of a shared function
            found.append(RankLoop(own, self._finding(each), *each.pairs()[:2]))
        return sorted(found, key=lambda one: -float(np.sum(one.waits) + np.sum(one.steps)))

    def _finding(self, recorder: Recorder) -> JobFinding:
        # What follows the last batch of all loops, as where itertools.cycle has kept them.
        ends = {one: max(one.passes[-1].asked, one.passes[-1].received) for one in self.loops.values()}
        after = time.perf_counter() - ends[recorder] if ends[recorder] == max(ends.values()) else 0.0
        passed = float(sum(sum(column) for column in recorder.pairs()[:2]))
        found = recorder.finding(after if after * len(recorder.numbers) > INTERRUPTION * passed else 0.0)
        own, of_all = _time_in([recorder]), _time_in(self.loops.values())
        found = found.replace(loop_share=own / of_all if of_all else 1.0)
        return found.replace(lines=self._lines(recorder))

    def _lines(self, recorder: Recorder) -> JobLines | None:
        """Return at which lines the time of a loop goes; None where nobody looked."""
        if self.lines is None:
            return None
        spans = [(one.begun - one.start_up, max(one.asked, one.received)) for one in recorder.passes]
        if recorder.passes and not any(one.batches for one in recorder.passes):
            spans[-1] = (spans[-1][0], time.perf_counter())
        firsts = [
            (begun, begun + one.first_wait)
            for one, (begun, _) in zip(recorder.passes[1:], spans[1:], strict=True)
            if one.first_wait is not None
        ]
        sent = any(one.batches for one in recorder.passes)
        return self.lines.of(self.tokens[recorder], spans, firsts, sent=sent)


def _time_in(loops: Iterable[Recorder]) -> float:
    """Return the seconds in which one of these loops or several were under way."""
    spans = [(each.begun, max(each.asked, each.received)) for loop in loops for each in loop.passes]
    return float(np.sum(np.diff(union(*np.array(spans).reshape(-1, 2).T))))


@contextmanager
def watched_by_doctor(*, probe: bool, lines: bool = True) -> Iterator[Doctor]:
    """Watch a process with a doctor of its own."""
    doctor = Doctor(probe=probe, lines=lines)
    with doctor.watching():
        yield doctor


def without_torch() -> InputError:
    """Return the error of a Python that has no PyTorch, which names the one to install the doctor into."""
    here = (
        "starvelab-doctor has to be installed into the Python that runs your training, which has PyTorch. It "
        f"is installed into {sys.executable}, which has none"
    )
    python = next(filter(_has_torch, filter(None, map(shutil.which, ("python", "python3")))), None)
    if python is None:
        return InputError(f"{here}. {install_hint('torch')}")
    return InputError(f"{here}; {python} has it: {python} -m pip install starvelab-doctor")


def _has_torch(python: str) -> bool:
    look = "import sys; from importlib.util import find_spec; sys.exit(find_spec('torch') is None)"
    return subprocess.run([python, "-c", look], capture_output=True, check=False).returncode == 0
