"""Watching that begins when a program imports PyTorch, and that loads nothing before.

A program may set the threads of its libraries at its top, by variables such as `OMP_NUM_THREADS`. They count
only if none of these libraries was loaded before. So `starvelab-doctor` lets the program load NumPy
and PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .hooks import Doctor
    from .ranks import RankLoop

TORCH = "torch"  # which brings its DataLoader


class _Waiting(MetaPathFinder):
    """Calls `begin` once, as soon as a module is there."""

    def __init__(self, name: str, begin: Callable[[], object]) -> None:
        self.name, self.begin = name, begin

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Return where a module is, as Python would without this."""
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader, run = spec.loader, spec.loader.exec_module

        def run_and_begin(module: ModuleType) -> None:
            del loader.exec_module  # of this loader alone; its class has the other one
            run(module)
            self.begin()

        loader.exec_module = run_and_begin  # type: ignore[method-assign]
        return spec


@contextmanager
def on_import(begin: Callable[[], object], name: str = TORCH) -> Iterator[None]:
    """Call `begin` when a module is imported meanwhile, or now if it is already there."""
    waiting = _Waiting(name, begin)
    if name in sys.modules:
        begin()
    else:
        sys.meta_path.insert(0, waiting)
    try:
        yield
    finally:
        if waiting in sys.meta_path:
            sys.meta_path.remove(waiting)


class LateDoctor:
    """A doctor for a program that has not imported PyTorch yet; `doctor` is None until it has."""

    def __init__(self) -> None:
        self.doctor: Doctor | None = None
        self.ranks: Mapping[int, Sequence[RankLoop]] = {}  # that the program spawned

    @contextmanager
    def watching(self, *, probe: bool, lines: bool) -> Iterator[None]:
        """Watch from the import of PyTorch until this ends."""
        with ExitStack() as stack:

            def begin() -> None:
                from .hooks import Doctor  # loaded here: these load NumPy
                from .ranks import read, spawned

                make = partial(Doctor, probe=probe, lines=lines)
                self.doctor = stack.enter_context(make().watching())
                folder = stack.enter_context(spawned(make))
                stack.callback(lambda: setattr(self, "ranks", read(folder)))

            with on_import(begin):
                yield
