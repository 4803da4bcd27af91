"""Starting a runner, asking it, and ending it whatever it does."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from ..measure.images import cache_folder
from ..runtime import GRADING
from . import bubblewrap
from .channel import Channel, ChannelError
from .clock import SandboxClock, slow_down

MODULE = ["-m", "starvelab.grading.runner"]
# What a runner imports before it forks: what most cells import, so that it is done once.
IMPORTS = (
    "numpy",
    "IPython",
    "ipywidgets",
    "starvelab.checks",
    "starvelab.show",
    "starvelab.show.plots",
    "starvelab.simulate",
    "starvelab.widgets",
    "starvelab.grading.rehearsal",
)
MEMORY = 2_500_000_000  # bytes of all processes of a sandbox together
MAX_PROCESSES = 64  # of a sandbox
WATCH = 0.2  # seconds between two looks at them
LAST = 10.0  # seconds until killed processes are gone
START = 60.0  # seconds until a runner must be there
LIMITS = {
    "RLIMIT_AS": 4_000_000_000,
    "RLIMIT_CPU": 600,
    "RLIMIT_FSIZE": 64_000_000,
    "RLIMIT_NOFILE": 256,
    "RLIMIT_NPROC": MAX_PROCESSES,
    "RLIMIT_CORE": 0,
}
ENVIRONMENT = {
    **GRADING.environment(),
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MPLCONFIGDIR": "/tmp/starvelab-matplotlib",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# Processes are counted by user: each sandbox is one of its own.
_users = itertools.count(os.getpid() % 1000 * 30)
FIRST_USER = 1_000_000


class Runner:
    """A process that runs cells, and the channel to it.

    Parameters
    ----------
    sandboxed : bool
    trusted : bool
        Whether what runs in it is the instructor's own, and needs no limits.
    imports : sequence of str
    readable : sequence of str
        Folders of the host that a sandbox may read.
    """

    def __init__(
        self,
        *,
        sandboxed: bool,
        trusted: bool = False,
        imports: Sequence[str] = IMPORTS,
        readable: Sequence[str] = (),
    ) -> None:
        self.sandboxed = sandboxed
        argv, environment = [sys.executable, *MODULE], os.environ | ENVIRONMENT
        if sandboxed:
            user = FIRST_USER + next(_users) % 30_000
            cache = cache_folder()
            within, environment = ENVIRONMENT | {"STARVELAB_CACHE": str(cache)}, {}
            # What bubblewrap's own environment holds can be read inside, so it gets none.
            folders = [*readable, *([str(cache)] if os.path.isdir(cache) else [])]
            argv = bubblewrap.command(MODULE, user=user, environment=within, readable=folders)
        self.process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # Without Python's buffers: a message is read to its end and no further.
        ends = os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno())
        self.clock = SandboxClock()
        self.channel = Channel(*ends) if trusted else Channel(*ends, clock=self.clock)
        self.process.stdin.close()
        self.process.stdout.close()
        if not trusted:
            name = f"starvelab-watch-{self.process.pid}"
            threading.Thread(target=self._watch, name=name, daemon=True).start()
        # Without a sandbox processes would be counted together with all others of this user.
        limits = {} if trusted else LIMITS if sandboxed else {"RLIMIT_AS": LIMITS["RLIMIT_AS"]}
        self.ask({"imports": list(imports), "limits": limits}, START)

    def _watch(self) -> None:
        """Count their time, and end all processes once they are too many, or take too much memory together.

        A limit counts each by itself, or those of one user in all sandboxes together.
        """
        while self.alive:
            processes = _tree(self.process.pid)
            self.clock.look(processes)
            slow_down(processes, self.clock.busy)
            if len(processes) > MAX_PROCESSES or _memory(self.process.pid) > MEMORY:
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            time.sleep(WATCH)

    def ask(self, message: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a message, and wait for what comes back.

        Raises
        ------
        ChannelError
            The runner is ended then: what it would say later belongs to no question.
        """
        try:
            self.channel.send(dict(message), seconds)
            return self.channel.receive(seconds)
        except ChannelError:
            self.end()
            raise

    @contextmanager
    def notebook(self, folder: str, files: Mapping[str, str]) -> Iterator[None]:
        """Fork for a notebook that finds these files, in base64, and end that process afterwards."""
        self.ask({"folder": folder, "files": dict(files)}, START)
        try:
            yield
        finally:
            if self.alive:
                with suppress(ChannelError):
                    self.ask({"do": "close"}, START)

    def end(self) -> None:
        """Kill it and all that it started, and wait until they are gone."""
        below = []
        with suppress(psutil.Error):
            below = psutil.Process(self.process.pid).children(recursive=True)
        with suppress(ProcessLookupError):
            # Of bubblewrap's process namespace this ends everything, if not at once.
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for process in below:
            with suppress(psutil.Error):
                process.kill()
        given_up = time.monotonic() + LAST
        while any(map(_runs, below)) and time.monotonic() < given_up:
            time.sleep(0.002)
        with suppress(OSError):
            self.channel.close()

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self.process.poll() is None


def _tree(root: int) -> list[int]:
    """A process and all below it."""
    with suppress(psutil.Error):
        return [root, *(one.pid for one in psutil.Process(root).children(recursive=True))]
    return []


def _runs(process: psutil.Process) -> bool:
    """Whether a process is more than an entry that nobody has read yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _memory(root: int) -> int:
    """Bytes that a process and all below it have for themselves."""
    with suppress(psutil.Error):
        tree = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
        shared = own = 0
        for process in tree:
            with suppress(psutil.Error):
                shared += process.memory_info().rss
        if shared <= MEMORY:
            return shared
        # Forked processes share most of that, and to find out takes longer.
        for process in tree:
            with suppress(psutil.Error):
                own += process.memory_full_info().uss
        return own
    return 0


@contextmanager
def scratch(sandboxed: bool) -> Iterator[str]:
    """The folder that a notebook runs in: that of the sandbox, or a temporary one of this machine."""
    if sandboxed:
        yield bubblewrap.SCRATCH
    else:
        with tempfile.TemporaryDirectory(prefix="starvelab-grading-") as folder:
            yield folder
