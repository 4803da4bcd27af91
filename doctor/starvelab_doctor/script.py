"""A script that runs in this process, and what ends it."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

INTERRUPTED = 130  # the status of a program that Ctrl+C ended


def run_script(script: str | Path, arguments: Sequence[str], *, module: bool = False) -> int:
    """Run a script as `python SCRIPT ARGUMENTS` would, or a module as `python -m` would; its exit status."""
    before = sys.argv, sys.path[0]
    folder = Path.cwd() if module else Path(script).resolve().parent
    sys.argv, sys.path[0] = [str(script), *arguments], str(folder)
    try:
        if module:
            runpy.run_module(str(script), run_name="__main__", alter_sys=True)
        else:
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


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM, which a scheduler sends, end the script as Ctrl+C does, for as long as this lasts."""
    own = os.getpid()

    def end(number: int, _: object) -> None:
        if os.getpid() == own:
            # A scheduler ends the workers, too, for each of which PyTorch would raise an error now.
            if hasattr(signal, "SIGCHLD"):  # not on Windows
                signal.signal(signal.SIGCHLD, lambda *_: None)
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)  # a worker that was forked ends as it would
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
