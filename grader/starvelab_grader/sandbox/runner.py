"""The process that a runner is: it imports once, and forks for each notebook.

So no notebook finds what another left in memory. `process` starts it; it takes messages on its standard
input.
"""

from __future__ import annotations

import base64
import gc
import os
import resource
import signal
import sys
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

from IPython.core.ultratb import VerboseTB

from ..plugins import functions
from .channel import Channel, ChannelError, Message
from .notebook_process import NotebookProcess


def main() -> None:
    """Import, and fork for each notebook, until the channel is closed."""
    channel = Channel(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDWR)
    for end in (0, 1, 2):
        os.dup2(null, end)
    start = channel.receive()
    gc.disable()
    for name in start["imports"]:
        with suppress(ImportError):
            import_module(name)
    _preload()
    # What is imported stays: no notebook's collection need look at it, or copy the memory that it shares.
    gc.freeze()
    gc.enable()
    for name, limit in start["limits"].items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    channel.send({"ready": sys.version})
    with suppress(ChannelError):
        while True:
            message = channel.receive()
            if "folder" in message:
                channel.send({"ended": _run_notebook(channel, message)})
            elif message["do"] == "close":
                channel.send({"ended": 0})
            # Any other question was asked of a notebook that has ended, and that it has was the answer.


def _preload() -> None:
    """Read what packages of the course need, and show an error, once for all notebooks."""
    with suppress(ImportError):
        for preload in functions("preload"):
            preload()
    # If a library has changed, notebooks become slower, and nothing else happens.
    with suppress(Exception):
        try:
            raise RuntimeError("an error to show")
        except RuntimeError:
            VerboseTB().structured_traceback(*sys.exc_info())


def _run_notebook(channel: Channel, opened: Message) -> int:
    """Fork for a notebook, and wait until it is over: with which status."""
    child = os.fork()
    if child == 0:
        _serve_notebook(channel, opened)
    _, status = os.waitpid(child, os.WUNTRACED)
    while os.WIFSTOPPED(status):
        # It makes room for another one, in which no cell of it has run.
        channel.send({"paused": True})
        channel.send({"ended": _run_notebook(channel, channel.receive())})
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, os.WUNTRACED)
    return status


def _serve_notebook(channel: Channel, opened: Message) -> None:
    try:
        os.chdir(opened["folder"])
        for name, content in opened["files"].items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(content))
        if modules := opened["modules"]:
            sys.meta_path.insert(0, _Modules({name: Path.cwd() / path for name, path in modules.items()}))
        process = NotebookProcess(channel, runs_apart=opened.get("checks", False))
        channel.send({"open": True})
        process.serve()
    finally:
        os._exit(0)


class _Modules(dict[str, Path]):
    """Finds modules in these files, and nothing else beside them."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return spec_from_file_location(name, self[name]) if name in self else None
