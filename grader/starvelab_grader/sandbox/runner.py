"""The process that a runner is: it imports once, and forks for each notebook.

So no notebook finds what another left in memory. `process` starts it; it takes messages on its standard
input.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from .channel import Channel, ChannelError, Message
from .notebook_process import NotebookProcess


class _Modules(MetaPathFinder):
    """Finds modules in these files, and nothing else beside them."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self.files = files

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (arguments of Python's own)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Where a module stands."""
        file = self.files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


def main() -> None:
    """Import, and fork for each notebook, until the channel is closed."""
    channel = Channel(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDWR)
    for end in (0, 1, 2):
        os.dup2(null, end)
    start = channel.receive()
    gc.disable()
    for name in start["imports"]:
        with contextlib.suppress(ImportError):
            import_module(name)
    # What is imported stays: no notebook's collection need look at it, or copy the memory that it shares.
    gc.freeze()
    gc.enable()
    _set_limits(start["limits"])
    channel.send({"ready": sys.version})
    with contextlib.suppress(ChannelError):
        while True:
            message = channel.receive()
            if "folder" in message:
                channel.send({"ended": _run_notebook(channel, message)})
            elif message["do"] == "close":
                channel.send({"ended": 0})
            # Any other question was asked of a notebook that has ended, and that it has was the answer.


def _set_limits(limits: Mapping[str, int]) -> None:
    for name, limit in limits.items():
        resource.setrlimit(getattr(resource, name), (limit, limit))


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
