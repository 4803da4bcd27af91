"""One run of `starvelab-doctor --try`, in a process of its own that ends itself after some batches.

The settings are given to each `DataLoader` that is made at one line of the script, and the pace of its loop
goes into a file. Then the process and its workers are killed: what the script does at its end is not done.

In its scratch folder stands a link to each entry of the folder in which the script starts. Before Python
writes to a file, a copy takes the place of the link, and of those to the folders above it. Elsewhere nothing
is written.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias
from unittest.mock import patch
from weakref import WeakKeyDictionary

from starvelab.host import whole_file
from starvelab.measure.batches import Batch

from .. import torch_internals
from ..one_buffer import packed, unpacked
from ..script import run_script
from ..shares import MIN_BATCHES
from ..torch_internals import TorchIterator, TorchLoader
from ..watching.datasets import is_stream
from ..watching.hooks import Doctor
from ..watching.ranks import write
from .ascent import PACKED, Pace, Setup

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
# Events of Python that change files, and which of their arguments are the paths.
EVENTS = {"open": (0,), "os.truncate": (0,), "sqlite3.connect": (0,), "shutil.rmtree": (0,)}
ENTRIES = {"os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,), "os.rename": (0, 1), "os.symlink": (1,)}
# Trackers of experiments that stay silent in a trial.
SILENT = {
    "WANDB_MODE": "disabled", "MLFLOW_TRACKING_URI": "file:mlruns", "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug", "CLEARML_OFFLINE_MODE": "1", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip


def link_entries(folder: Path, original: Path) -> None:
    """Make a folder with a link to each entry of another one."""
    folder.mkdir()
    for entry in original.iterdir():
        (folder / entry.name).symlink_to(entry.absolute())


def announced(save: Callable[..., None]) -> Callable[..., None]:
    """Return what saves as `torch.save` does, which writes without Python: Python's event comes before it."""

    @wraps(save)
    def saving(content: object, file: object, *how: Any, **more: Any) -> None:  # Any: as it has them
        if isinstance(file, str | os.PathLike):
            sys.audit("open", file, "wb", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        save(content, file, *how, **more)

    return saving


class Scratch:
    """Keeps what this process and its workers write in a folder, which stands for the `original` one."""

    def __init__(self, folder: Path, original: Path) -> None:
        self.folder, self.original = folder.resolve(), original.resolve()
        self.looking: set[int] = set()  # threads that are at it: what they write themselves is right

    def guard(self) -> None:
        """Look at whatever Python writes from now on, as long as this process lives."""
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:  # Any: of whatever event
        places = EVENTS.get(event) or ENTRIES.get(event)
        thread = threading.get_ident()
        if places is None or thread in self.looking or (event == "open" and not arguments[2] & WRITING):
            return
        if event not in ("open", "sqlite3.connect", "os.truncate") and arguments[-1] not in (-1, None):
            return  # within a folder that is open, which was looked at then
        self.looking.add(thread)
        try:
            content = event != "open" or not arguments[2] & os.O_TRUNC
            for path in (arguments[place] for place in places):
                if isinstance(path, str | bytes | os.PathLike) and path != ":memory:":
                    whole = Path(os.path.abspath(os.fsdecode(path)))
                    self._own(whole, entry=event in ENTRIES, content=content)
        finally:
            self.looking.discard(thread)

    def _own(self, path: Path, *, entry: bool, content: bool) -> None:
        """Let a path lie in no folder that is a link, nor be one itself; of an `entry` only the folder."""
        if path.is_relative_to(self.folder):
            above = [each for each in reversed(path.parents) if each.is_relative_to(self.folder)]
            for each in above if entry else [*above, path]:
                if not each.is_symlink():
                    continue
                target = each.resolve()
                each.unlink()
                if target.is_dir():
                    link_entries(each, target)
                elif target.exists() and content:
                    shutil.copy2(target, each)
        elif not self._may_change(path.resolve()):
            raise PermissionError(
                f"starvelab-doctor --try: the script would write to {path}, which lies outside of the folder "
                "where it starts, and a trial changes nothing there. Give it a path relative to that folder."
            )

    def _may_change(self, path: Path) -> bool:
        """True for the scratch folder, devices, and caches, which are hidden folders."""
        if path.is_relative_to(self.folder.parent) or path.parts[1:2] in (("dev",), ("proc",)):
            return True
        inside = path.relative_to(self.original) if path.is_relative_to(self.original) else path
        return any(part.startswith(".") or part == "__pycache__" for part in inside.parts)


# Of a pass: when the loop asked for each batch, and when it had it.
Times: TypeAlias = list[tuple[float, float]]
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


def place_of(frame: FrameType) -> str:
    """Return file and line of the script that made a loader, by way of whatever library."""
    caller: FrameType | None = frame
    while caller is not None and "site-packages" in caller.f_code.co_filename:
        caller = caller.f_back
    caller = caller or frame
    return f"{os.path.realpath(caller.f_code.co_filename)}:{caller.f_lineno}"


class Loop:
    """The passes over the loaders that one line of the script makes of one kind of data."""

    def __init__(self, loader: TorchLoader) -> None:
        self.passes = list[Times]()
        self.state, self.changes = _values(loader.dataset), False
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        self.setup = Setup(
            workers=loader.num_workers,
            prefetch=loader.prefetch_factor,
            persistent=loader.persistent_workers,
            pinned=loader.pin_memory or cuda is None or not cuda.is_available(),
            in_order=getattr(loader, "in_order", False),
            stream=is_stream(loader.dataset),
        )

    def begin(self, dataset: object) -> None:
        """Begin a pass; note whether the script itself changed the dataset since the one before."""
        self.passes.append([])
        self.changes = self.changes or (self.setup.workers > 0 and _values(dataset) != self.state)

    def pace(self, *, whole: bool) -> Pace | None:
        """Return its pace so far."""
        ahead = self.setup.workers * (self.setup.prefetch or 0)
        return pace_of(self.passes, self.setup.workers, ahead, whole=whole)


def _values(dataset: object) -> dict[str, object]:
    known = getattr(dataset, "__dict__", {}).items()
    return {name: value for name, value in known if isinstance(value, int | float | str)}


class Trial:
    """What this process changes of PyTorch, what it notes, and what it leaves when it has enough."""

    def __init__(self, plan: dict[str, Any], doctor: Doctor | None) -> None:  # Any: values of a JSON file
        self.plan, self.doctor, self.process, self.next_look = plan, doctor, os.getpid(), 0.0
        self.places: WeakKeyDictionary[TorchLoader, str] = WeakKeyDictionary()
        self.iterators: WeakKeyDictionary[TorchIterator, tuple[str, Loop, object]] = WeakKeyDictionary()
        self.loops: dict[str, Loop] = {}

    def making(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return what makes a loader, with other settings where it is the one."""
        signature = inspect.signature(original)

        @wraps(original)
        def make(loader: TorchLoader, *how: Any, **more: Any) -> None:
            given, place = signature.bind(loader, *how, **more), place_of(sys._getframe(1))
            into_one = False
            if self.plan["loop"].startswith(f"{place} "):
                settings = dict(self.plan["settings"])
                into_one = settings.pop(PACKED, False)
                given.arguments.update(settings)
                if settings.get("num_workers") == 0:
                    for name in OF_WORKERS:
                        given.arguments.pop(name, None)
            original(*given.args, **given.kwargs)
            if into_one:
                packed(loader)
            self.places[loader] = place

        return make

    def beginning(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return what begins an iterator, and knows its loop from then on."""

        def begin(iterator: TorchIterator, loader: TorchLoader) -> None:
            original(iterator, loader)
            kind, items, *_ = torch_internals.description_of(iterator)
            name = f"{self.places.get(loader, '')} {kind} {items}"
            self.iterators[iterator] = name, self.loops.setdefault(name, Loop(loader)), loader.dataset

        return begin

    def following(self, original: Callable[[TorchIterator], Batch]) -> Callable[[TorchIterator], Batch]:
        """Return what fetches a batch, notes when, and ends this process after enough of them."""

        def noted(iterator: TorchIterator) -> Batch:
            name, loop, dataset = self.iterators.get(iterator, ("", None, None))
            if loop is None or os.getpid() != self.process:
                return unpacked(original(iterator))
            if torch_internals.is_at_start(iterator):
                loop.begin(dataset)
            asked = time.perf_counter()
            batch = unpacked(original(iterator))
            now = time.perf_counter()
            loop.passes[-1].append((asked, now))
            if now >= self.next_look and self.plan["loop"] in ("", name):
                self.next_look = now + LOOK
                if self.has_enough(loop, now):
                    self.leave(name, loop)
            return batch

        return noted

    def has_enough(self, loop: Loop, now: float) -> bool:
        """True if enough batches of a loop count; the first run lasts as long as it may for whole passes."""
        pace, seconds = loop.pace(whole=self.whole(loop)), self.plan["seconds"]
        return pace is not None and (pace.seconds >= seconds or now - loop.passes[0][0][1] >= LONG * seconds)

    def whole(self, loop: Loop) -> bool:
        """True where whole passes are counted: the first run says whether they are short."""
        return len(loop.passes) >= MIN_PASSES if self.plan["whole"] is None else bool(self.plan["whole"])

    def leave(self, name: str, loop: Loop | None) -> None:
        """Write down what was found, and end this process with its workers, whatever they are at."""
        result: dict[str, object] = {"loop": name}
        if loop is not None:
            pace = loop.pace(whole=self.whole(loop))
            result |= {"setup": asdict(loop.setup), "pace": pace and asdict(pace), "changes": loop.changes}
            result |= {"whole": self.whole(loop), "batches": sum(map(len, loop.passes))}
        folder = Path(self.plan["folder"])
        if self.doctor is not None:
            write(folder, 0, self.doctor.rank_loops())
        with whole_file(folder / "result.json") as part:
            part.write_text(json.dumps(result), encoding="utf-8")
        sys.stdout.flush()
        sys.stderr.flush()
        os.killpg(0, signal.SIGKILL)


def main(arguments: Sequence[str]) -> int:
    """Run a script as a plan says: the file of the plan, the script, and its own arguments."""
    file, script, *own = arguments
    plan = json.loads(Path(file).read_text(encoding="utf-8"))
    import torch  # loaded here: nothing else of the trial needs it
    from torch.utils.data import dataloader

    doctor = Doctor(probe=True) if plan["whole"] is None else None
    trial = Trial(plan, doctor)
    os.chdir(Path(plan["folder"]) / "work")
    Scratch(Path.cwd(), Path(plan["original"])).guard()
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch, "save", announced(torch.save)))
        stack.enter_context(
            patch.object(dataloader.DataLoader, "__init__", trial.making(dataloader.DataLoader.__init__))
        )
        stack.enter_context(torch_internals.replaced_iterators(dataloader, trial.following, trial.beginning))
        if doctor is not None:
            stack.enter_context(doctor.watching())
        status = run_script(script, own, module=plan["module"])
    if not status:
        trial.leave(
            *max(trial.loops.items(), key=lambda one: sum(map(len, one[1].passes)), default=("", None))
        )
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
