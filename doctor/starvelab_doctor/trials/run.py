"""What one run of `starvelab-doctor --try` changes of PyTorch, and notes, until it has enough batches.

The settings are given to each `DataLoader` that is made at one line of the script, and the pace of its loop
goes into a file. Then the process and its workers are killed: what the script does at its end is not done.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial, wraps
from operator import length_hint
from pathlib import Path
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from starvelab.host import whole_file
from starvelab.measure.batches import Batch
from starvelab.measure.devices import cuda_in_use

from .. import torch_internals
from ..judging.report import own_batches
from ..shares import MIN_BATCHES
from ..torch_internals import TorchIterator, TorchLoader
from ..watching.hooks import Doctor
from ..watching.places import own_frame
from ..watching.ranks import write
from .ascent import Pace, Setup
from .replay import PREPARED, KeptBatches, ReplayedPass, Times, prepare, prepare_worker
from .scratch import save

MIN_PASSES = 4  # that are counted whole: the first may fill a cache, and the last is under way
LONG = 3.0  # times as long as planned a run may last, where its batches come slowly
LOOK = 0.1  # seconds between two looks whether it has enough
# A loader without workers takes none of these arguments.
OF_WORKERS = ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context")


def pace_of(passes: Sequence[Times], workers: int, ahead: int, *, whole: bool) -> Pace | None:
    """Return the pace of a loop; None where too few batches count.

    `whole` passes are counted with the start of their workers. Else it is the longest pass, without the
    batches `ahead` that were prepared while its workers started.
    """
    if whole:
        counted = [each for one in passes[1:-1] for each in one]
        if len(passes) < MIN_PASSES or len(counted) < MIN_BATCHES:
            return None
        begun, ended = passes[1][0][0], passes[-1][0][0]
    else:
        times = max(passes, key=len, default=[])[ahead + workers :]
        # Workers deliver in bursts, of which whole ones count.
        counted = times[1 : 1 + (len(times) - 1) // max(workers, 1) * max(workers, 1)]
        if len(counted) < MIN_BATCHES:
            return None
        begun, ended = times[0][1], counted[-1][1]
    waited, seconds = sum(received - asked for asked, received in counted), ended - begun
    return Pace(len(counted) / seconds, waited / seconds, seconds)


class Loop:
    """The passes over the loaders that one line of the script makes of one kind of data."""

    def __init__(self, loader: TorchLoader, rung: str = "") -> None:
        self.passes = list[Times]()
        import torch  # the script has loaded it

        on_gpu = torch.cuda.is_available()  # without one a loader pins nothing, whatever it is asked
        pinned = loader.pin_memory and on_gpu
        self.kept = KeptBatches(rung, pinned=pinned) if rung not in ("", PREPARED) else None
        self.setup = Setup(
            workers=loader.num_workers,
            prefetch=loader.prefetch_factor,
            persistent=loader.persistent_workers,
            pinned=loader.pin_memory or not on_gpu,
            stream=torch_internals.is_iterable(loader.dataset),
        )

    def pace(self, *, whole: bool) -> Pace | None:
        """Return its pace so far; nobody prepares the batches that are kept."""
        workers = self.setup.workers if self.kept is None else 0
        return pace_of(self.passes, workers, workers * (self.setup.prefetch or 0), whole=whole)


class Trial:
    """What this process changes of PyTorch, what it notes, and what it leaves when it has enough."""

    def __init__(self, plan: dict[str, Any], doctor: Doctor | None) -> None:  # Any: values of a JSON file
        self.plan, self.doctor, self.process, self.next_look = plan, doctor, os.getpid(), 0.0
        self.places: WeakKeyDictionary[TorchLoader, str] = WeakKeyDictionary()
        self.names: WeakKeyDictionary[TorchIterator, str] = WeakKeyDictionary()
        # Passes that began and did not end, the outermost first: evaluations are within one of a training.
        self.under_way: WeakKeyDictionary[TorchIterator, None] = WeakKeyDictionary()
        self.loops: dict[str, Loop] = {}

    def making(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return what makes a loader, with other settings where it is the one."""
        signature = inspect.signature(original)

        @wraps(original)
        def make(loader: TorchLoader, *how: Any, **more: Any) -> None:
            given, caller = signature.bind(loader, *how, **more), own_frame(sys._getframe(1))
            place = f"{os.path.realpath(caller.f_code.co_filename)}:{caller.f_lineno}"
            if self.plan["loop"].startswith(f"{place} "):
                settings = dict(self.plan["settings"])
                given.arguments.update(settings)
                if settings.get("num_workers") == 0:
                    for name in OF_WORKERS:
                        given.arguments.pop(name, None)
            original(*given.args, **given.kwargs)
            self.places[loader] = place

        return make

    def name_of(self, loader: TorchLoader) -> str:
        """Return the name of the loop over a loader: its place, and the kind and number of its items."""
        dataset = loader.dataset
        return f"{self.places.get(loader, '')} {type(dataset).__name__} {length_hint(dataset)}"

    def beginning(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return what begins an iterator, and knows its loop from then on."""

        def begin(iterator: TorchIterator, loader: TorchLoader) -> None:
            name = self.name_of(loader)
            rung = self.plan["rung"] if name == self.plan["loop"] else ""
            prepared = torch_internals.workers_begin_with(loader, prepare_worker)
            with prepared if rung == PREPARED else nullcontext():
                original(iterator, loader)
            if rung == PREPARED and not loader.num_workers:
                prepare(torch_internals.fetcher_of(iterator))
            if name not in self.loops:
                self.loops[name] = Loop(loader, rung)
            self.names[iterator] = name

        return begin

    def iterating(self, original: Callable[[TorchLoader], Any]) -> Callable[[TorchLoader], object]:
        """Return what begins a pass, of the batches that are kept once there are enough."""

        def iterate(loader: TorchLoader) -> object:
            name = self.name_of(loader)
            loop = self.loops.get(name)
            full = loop is not None and loop.kept is not None and loop.kept.full
            source = iter(()) if full else original(loader)
            loop = self.loops.get(name)  # the first pass has brought it
            if loop is None or loop.kept is None or os.getpid() != self.process:
                return source
            loop.passes.append([])
            length, look = torch_internals.length_of(loader), partial(self.look, name, loop)
            return ReplayedPass(loop.kept, source, length, loop.passes[-1], look)

        return iterate

    def following(self, original: Callable[[TorchIterator], Batch]) -> Callable[[TorchIterator], Batch]:
        """Return what fetches a batch, notes when, and ends this process after enough of them."""

        def noted(iterator: TorchIterator) -> Batch:
            loop = self.loops.get(self.names.get(iterator, ""))
            if loop is None or loop.kept is not None or os.getpid() != self.process:
                return original(iterator)
            if torch_internals.is_at_start(iterator):
                loop.passes.append([])
                self.under_way.pop(iterator, None)
                self.under_way[iterator] = None
            asked = time.perf_counter()
            try:
                batch = original(iterator)
            except StopIteration:
                self.under_way.pop(iterator, None)
                raise
            loop.passes[-1].append((asked, time.perf_counter()))
            if next(iter(self.under_way), None) is iterator:
                self.look(self.names[iterator], loop)
            return batch

        return noted

    def look(self, name: str, loop: Loop) -> None:
        """End this process if enough batches of a loop count."""
        now = time.perf_counter()
        if now < self.next_look or self.plan["loop"] not in ("", name):
            return
        self.next_look = now + LOOK
        pace, seconds = loop.pace(whole=self.whole(loop)), self.plan["seconds"]
        begun = next((times[0][1] for times in loop.passes if times), now)
        if pace is not None and (pace.seconds >= seconds or now - begun >= LONG * seconds):
            self.leave(name, loop)

    def updated(self, *_: object) -> None:
        """End this process where a loop without a DataLoader has trained for long enough."""
        if self.doctor is None or self.doctor.lines is None or self.loops or os.getpid() != self.process:
            return
        moments = self.doctor.lines.updates
        if moments[-1] - moments[0] >= self.plan["seconds"]:
            self.leave("", None)

    def whole(self, loop: Loop) -> bool:
        """True where whole passes are counted: the first run says whether they are short."""
        return len(loop.passes) >= MIN_PASSES if self.plan["whole"] is None else bool(self.plan["whole"])

    def leave(self, name: str, loop: Loop | None) -> None:
        """Write down what was found, and end this process with its workers, whatever they are at."""
        result: dict[str, object] = {"loop": name}
        if loop is not None:
            pace = loop.pace(whole=self.whole(loop))
            result |= {"setup": asdict(loop.setup), "pace": pace and asdict(pace)}
            result |= {"whole": self.whole(loop), "batches": sum(map(len, loop.passes))}
            result |= {"on_gpu": cuda_in_use() is not None}
        folder = Path(self.plan["folder"])
        if self.doctor is not None:
            write(folder, 0, self.doctor.rank_loops())
            lines = self.doctor.lines.without_loader() if self.doctor.lines is not None else ()
            result |= {"own": own_batches(lines) if lines else ""}
        with whole_file(folder / "result.json") as part:
            part.write_text(json.dumps(result), encoding="utf-8")
        sys.stdout.flush()
        sys.stderr.flush()
        os.killpg(0, signal.SIGKILL)

    def end(self) -> None:
        """Write down what was found where the script ended by itself."""
        most = max(self.loops.items(), key=lambda one: sum(map(len, one[1].passes)), default=("", None))
        self.leave(*most)


@contextmanager
def trial_of(plan: dict[str, Any]) -> Iterator[Trial]:  # Any: values of a JSON file
    """Change PyTorch for as long as this lasts, as a plan says."""
    import torch  # loaded here: nothing else of the trial needs it
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.utils.data import dataloader

    doctor = Doctor(probe=True) if plan["whole"] is None else None
    trial = Trial(plan, doctor)
    loader = dataloader.DataLoader
    with (
        patch.object(torch, "save", partial(save, torch.save)),
        patch.object(loader, "__init__", trial.making(loader.__init__)),
        patch.object(loader, "__iter__", trial.iterating(loader.__iter__)),
        torch_internals.replaced_iterators(dataloader, trial.following, trial.beginning),
        doctor.watching() if doctor is not None else nullcontext(),
        register_optimizer_step_post_hook(trial.updated),  # after the doctor's own, which notes the moment
    ):
        yield trial
