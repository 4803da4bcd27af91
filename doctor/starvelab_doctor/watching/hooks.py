"""PyTorch's iterators, timed while a program runs: it gets the same batches in the same order."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from threading import get_ident
from types import FrameType
from weakref import WeakKeyDictionary, finalize

import numpy as np

from starvelab.measure.batches import Batch
from starvelab.tables import count_of

from .. import torch_internals
from ..finding.job import JobFinding
from ..finding.lines import JobLines
from ..shares import INTERRUPTION
from ..spans import union
from ..torch_internals import TorchIterator, TorchLoader
from .job_lines import JobSamples
from .pickled import timing_pickles
from .places import own_frame
from .probe import Probe
from .ranks import RankLoop
from .recorder import Pass, Recorder


@dataclass
class Start:
    """The start of an iterator, or of a later pass of one whose workers persist."""

    seconds: float = 0.0
    pickled: list[float] = field(default_factory=list)  # seconds of each pickle for a worker
    token: int | None = None  # of the samples of its workers
    probe: Probe | None = None


class Doctor:
    """Records every loop of a program over a DataLoader, one for each place; a `probe` times its stages."""

    def __init__(self, *, probe: bool = False, lines: bool = True) -> None:
        # By the place, and by the kind of the data there: a script may make its loader anew for each pass.
        self.loops: dict[tuple[object, ...], Recorder] = {}
        self.passes: WeakKeyDictionary[TorchIterator, Pass] = WeakKeyDictionary()
        self.starts: WeakKeyDictionary[TorchIterator, Start] = WeakKeyDictionary()
        self.tokens: dict[Recorder, set[int]] = defaultdict(set)
        self.lines = JobSamples() if lines else None
        self.probe, self.home = probe, get_ident()

    @contextmanager
    def watching(self) -> Iterator[Doctor]:
        """Time PyTorch's iterators for as long as this lasts."""
        from torch.utils.data import dataloader

        def following(original: Callable[[TorchIterator], Batch]) -> Callable[[TorchIterator], Batch]:
            def timed(iterator: TorchIterator) -> Batch:
                record = self._pass_of(iterator, sys._getframe(1))
                return record.fetch(iterator, original)

            return timed

        with (
            torch_internals.replaced_iterators(dataloader, following, self._beginning, self._restarting),
            self.lines.watching() if self.lines is not None else nullcontext(),
        ):
            yield self

    def _beginning(self, original: Callable[[TorchIterator, TorchLoader], None]) -> Callable[..., None]:
        """Return what begins an iterator, with a probe if it is to have one, and times that."""

        def begin(iterator: TorchIterator, loader: TorchLoader) -> None:
            begun, start = time.perf_counter(), Start(probe=Probe() if self.probe else None)
            with ExitStack() as stack:
                stack.enter_context(timing_pickles(start.pickled))
                if self.lines is not None and loader.num_workers:
                    start.token = stack.enter_context(self.lines.folder.starting(loader))
                if start.probe is not None:
                    stack.enter_context(start.probe.starting(iterator, loader))
                original(iterator, loader)
            start.seconds = time.perf_counter() - begun
            self.starts[iterator] = start

        return begin

    def _restarting(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return what begins a later pass of an iterator whose workers persist, and times that."""

        def restart(iterator: TorchIterator, loader: TorchLoader, first_iter: bool = False) -> None:
            begun = time.perf_counter()
            original(iterator, loader, first_iter)
            if not first_iter:
                start = self.starts.get(iterator, Start())
                self.starts[iterator] = replace(start, seconds=time.perf_counter() - begun, pickled=[])

        return restart

    def _pass_of(self, iterator: TorchIterator, caller: FrameType) -> Pass:
        """Return the pass that an iterator is in, which its first batch begins."""
        record = self.passes.get(iterator)
        if record is not None and not torch_internals.is_at_start(iterator):
            return record
        if record is not None:
            record.end()  # that was left early
        kind, items, size, workers = torch_internals.description_of(iterator)
        frame = own_frame(caller)
        loop = f"{kind} at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}", items, size, workers
        if (recorder := self.loops.get(loop)) is None:
            recorder = self.loops[loop] = Recorder(batch_size=size, workers=workers, home=self.home)
        start = self.starts.get(iterator, Start())
        record = self.passes[iterator] = recorder.begin(probe=start.probe)
        record.start_up += start.seconds
        recorder.pickled += start.pickled
        if start.token is not None:
            self.tokens[recorder].add(start.token)
        finalize(iterator, record.end).atexit = False  # a loop that is left drops its iterator
        return record

    def results(self) -> list[tuple[str, JobFinding]]:
        """Return what was found of each loader, the one that took longest first."""
        return [(loop.name, loop.finding) for loop in self.rank_loops()]

    def rank_loops(self) -> list[RankLoop]:
        """Return the same with the waits and steps, for a report of several ranks."""
        names, loops = [name for name, *_ in self.loops], list[RankLoop]()
        for (name, items, *_), recorder in self.loops.items():
            which = f", {items} items, {count_of(recorder.workers or 0, 'worker')}"  # a line may have several
            unique = f"{name}{which}" if names.count(name) > 1 else str(name)
            finding = self._finding(recorder, place=str(name).rpartition(" at ")[2])
            loops.append(RankLoop(unique, finding, *recorder.pairs()[:2]))
        return sorted(loops, key=lambda loop: -float(np.sum(loop.waits) + np.sum(loop.steps)))

    def _finding(self, recorder: Recorder, place: str) -> JobFinding:
        # What follows the last batch of all loops, as where itertools.cycle has kept them.
        ends = {loop: loop.passes[-1].ended for loop in self.loops.values()}
        after = time.perf_counter() - ends[recorder] if ends[recorder] == max(ends.values()) else 0.0
        passed = float(sum(sum(column) for column in recorder.pairs()[:2]))
        finding = recorder.finding(after if after * len(recorder.numbers) > INTERRUPTION * passed else 0.0)
        of_all = _time_in(self.loops.values())
        return finding.replace(
            loop_share=_time_in([recorder]) / of_all if of_all else 1.0, lines=self._lines(recorder, place)
        )

    def _lines(self, recorder: Recorder, place: str) -> JobLines:
        """Return at which lines the time of a loop goes; none where nobody looked."""
        if self.lines is None:
            return JobLines()
        passes = recorder.passes
        sent = any(each.batches for each in passes)
        spans = [each.span for each in passes]
        if passes and not sent:
            spans[-1] = (spans[-1][0], time.perf_counter())
        firsts = [
            (begun, begun + each.first_wait)
            for each, (begun, _) in zip(passes[1:], spans[1:], strict=True)
            if each.first_wait is not None
        ]
        lines = self.lines.of(self.tokens[recorder], spans, firsts, self.gaps_before(recorder), sent=sent)
        # At the line of the loop itself its thread receives a batch, or another loader works.
        return replace(lines, loop=tuple(line for line in lines.loop if line.place != place))

    def gaps_before(self, recorder: Recorder) -> list[tuple[float, float]]:
        """Return the times from the end of a whole pass to the next one, with no loop under way."""
        pairs = pairwise(recorder.passes)
        begun = {after.span[0] for before, after in pairs if before.asked > before.received}
        spans = _spans_of(self.loops.values()).tolist()
        return [(end, begin) for (_, end), (begin, _) in pairwise(spans) if begin in begun]


def _spans_of(loops: Iterable[Recorder]) -> np.ndarray:
    """Return when one of these loops or several were under way."""
    return union(*np.array([each.span for loop in loops for each in loop.passes]).reshape(-1, 2).T)


def _time_in(loops: Iterable[Recorder]) -> float:
    """Return the seconds in which one of these loops or several were under way."""
    return float(np.sum(np.diff(_spans_of(loops))))
