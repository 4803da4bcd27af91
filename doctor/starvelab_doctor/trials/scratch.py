"""The scratch folder of a trial: what the script changes there, it changes in copies.

A link to each entry of the folder in which the script starts stands there, and to what is beside that. Before
Python writes to a file, a copy takes the place of the link, and of those to the folders above it. Elsewhere
nothing is written.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

ABOVE = 2  # folders above the one in which the script starts, as in ../../data
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
# Events of Python that change files, and which of their arguments are the paths.
EVENTS = {"open": (0,), "os.truncate": (0,), "sqlite3.connect": (0,), "shutil.rmtree": (0,)}
ENTRIES = {"os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,), "os.rename": (0, 1), "os.symlink": (1,)}
# Trackers of experiments that stay silent in a trial.
SILENT = {
    "WANDB_MODE": "disabled", "MLFLOW_TRACKING_URI": "file:mlruns", "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug", "CLEARML_OFFLINE_MODE": "1", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip


def link_entries(folder: Path, original: Path, without: str = "") -> None:
    """Make a folder with a link to each entry of another one, but one of that name."""
    folder.mkdir()
    with suppress(PermissionError):
        for entry in original.iterdir():
            if entry.name != without:
                (folder / entry.name).symlink_to(entry.absolute())


def stand_in(folder: Path, original: Path) -> Path:
    """Make a folder that stands for one above another one; return the one in it that stands for that."""
    for outer, inner in pairwise([*reversed(original.parents[:ABOVE]), original]):
        link_entries(folder, outer, without=inner.name)
        folder /= inner.name
    link_entries(folder, original)
    return folder


def save(original: Callable[..., None], obj: object, f: object, *how: Any, **more: Any) -> None:
    """Save as `torch.save` does, which writes without Python, after Python's own event of it."""
    if isinstance(f, str | os.PathLike):
        sys.audit("open", f, "wb", WRITING)
    original(obj, f, *how, **more)


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
