"""A control group for a sandbox: the kernel counts memory, processes and processor time of all that is in it.

Version 2 of control groups, where the caller may make them: as root, or below a group that systemd
delegated to the caller (`systemd-run --user --scope starvelab-grader grade ...`). Elsewhere `process` counts
by itself.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import psutil

PREFIX = "starvelab-"
CORE = "100000 100000"  # microseconds of processor time in so many: one core
END_TIMEOUT = 10.0  # seconds until all processes of a group are gone
# A shell moves itself into the group, and becomes the command there: nothing of it ever runs outside. What a
# shell adds to the environment does not stay.
ENTER = 'echo 0 > "$0/cgroup.procs" && exec /usr/bin/env -i "$@"'


@dataclass(frozen=True)
class ControlGroup:
    """A control group, by the folder in which the kernel shows it."""

    folder: Path

    @classmethod
    def make(cls, above: Path, *, memory: int, processes: int) -> Self:
        """Make one below another with limits, of memory also in files [B], or raise an OSError."""
        group = cls(Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=above)))
        try:
            group._set("memory.max", memory)
            group._set("pids.max", processes)
            # Not every kernel is built with these.
            for name, value in (("memory.swap.max", 0), ("memory.oom.group", 1), ("cpu.max", CORE)):
                with suppress(OSError):
                    group._set(name, value)
        except OSError:
            group.remove()
            raise
        return group

    def _set(self, name: str, value: int | str) -> None:
        # Not created where it is missing: then the kernel does not know this limit here.
        with open(os.open(self.folder / name, os.O_WRONLY), "w") as file:
            file.write(str(value))

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command in the group."""
        return ["/bin/sh", "-c", ENTER, str(self.folder), *command]

    def kill(self) -> None:
        """Kill all processes in it at once, so that none can start another meanwhile."""
        try:
            self._set("cgroup.kill", 1)
        except OSError:  # before Linux 5.14
            with suppress(OSError):
                for number in (self.folder / "cgroup.procs").read_text().split():
                    with suppress(ProcessLookupError):
                        os.kill(int(number), signal.SIGKILL)

    def remove(self, timeout: float = END_TIMEOUT) -> None:
        """Kill what runs in it, and remove it as soon as that is gone."""
        given_up = time.monotonic() + timeout
        while self.folder.exists() and time.monotonic() < given_up:
            self.kill()
            with suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.005)


@cache
def place() -> Path | None:
    """Return the group below which sandboxes get theirs; None where none can be made."""
    for folder in _above_this_process():
        if _works(folder):
            _remove_left_over(folder)
            return folder
    return None


def _above_this_process(proc: Path = Path("/proc/self")) -> Iterator[Path]:
    """The group of this process and those above it, as far as they are shown here."""
    with suppress(OSError):
        own = [line for line in (proc / "cgroup").read_text().splitlines() if line.startswith("0::/")]
        for mount in map(str.split, (proc / "mountinfo").read_text().splitlines()):
            if mount[mount.index("-") + 1] == "cgroup2" and own:
                top = Path(mount[4])
                folder = top / own[0].removeprefix("0::/")
                yield from [folder, *folder.parents][: len(folder.parts) - len(top.parts) + 1]


def _works(folder: Path) -> bool:
    with suppress(OSError, subprocess.TimeoutExpired), ExitStack() as stack:
        group = ControlGroup.make(folder, memory=100_000_000, processes=10)
        stack.callback(group.remove)
        command = group.command([shutil.which("true") or "true"])
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False, timeout=10).returncode == 0
    return False


def _remove_left_over(folder: Path) -> None:
    """Remove the empty groups of graders that were killed."""
    for path in folder.glob(f"{PREFIX}*-*"):
        owner = path.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            with suppress(OSError):  # the kernel keeps one in which something runs
                path.rmdir()
