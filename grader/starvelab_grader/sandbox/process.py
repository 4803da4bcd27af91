"""Runners as the grader sees them: started, asked, watched, and ended whatever they do."""

import base64
import itertools
import mmap
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import Any, Self, TypeAlias

import psutil
from dask.system import CPU_COUNT

from .. import plugins
from . import bubblewrap, cgroup
from .channel import Channel, ChannelError, Message, MessageTooLongError
from .clock import UNKNOWN, SandboxClock, slow_down, threads, used

# Where dask is installed pint imports it, a fifth of a second, for arrays that no notebook has.
PROGRAM = """\
import gc, sys; gc.disable(); sys.modules["dask"] = None
from starvelab_grader.sandbox.runner import main
main()"""
# Without -P, Python would look for modules in the current folder first.
PYTHON = ["-P", "-c", PROGRAM]
# What a runner imports before it forks: what most cells import, so that it is done once.
IMPORTS = ("numpy", "IPython", "ipywidgets", "matplotlib.figure", "matplotlib.patches")
MAX_MEMORY = 2_500_000_000  # bytes of all processes of a sandbox together
INODE_SIZE = 1_500  # bytes that the kernel may need for a file, beside its content
SOCKET_SIZE = 500_000  # bytes that it may need for a socket
MAX_PROCESSES = 64  # of a sandbox
WATCH_INTERVAL = 0.2  # seconds between two looks at them
START_TIMEOUT = 60.0  # seconds until a runner must be there
MAX_SAID = 2_000  # characters of what one says that does not start
CLOSE_TIMEOUT = 10.0  # seconds until a notebook must be over
LIMITS = {
    "RLIMIT_AS": 4_000_000_000, "RLIMIT_CPU": 600, "RLIMIT_FSIZE": 64_000_000, "RLIMIT_NOFILE": 256,
    "RLIMIT_NPROC": MAX_PROCESSES, "RLIMIT_CORE": 0,
}  # fmt: skip
ENVIRONMENT = {
    "NBGRADER_EXECUTION": "autograde", **plugins.declared("environment"),
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
}  # fmt: skip
# Processes are counted by user: each sandbox is one of its own.
_users = itertools.count(os.getpid() % 1000 * 30)
FIRST_USER = 1_000_000
Process: TypeAlias = Popen[bytes]


@dataclass(frozen=True)
class Place:
    """Where a side of a notebook runs, and what it finds there: files, and modules among them, by name."""

    folder: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)


class Runner:
    """A process that runs cells, and the channel to it; a trusted one has all rights but more memory."""

    def __init__(
        self, *, sandboxed: bool, trusted: bool = False,
        imports: Sequence[str] = IMPORTS, readable: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.sandboxed, self.trusted, self.readable = sandboxed, trusted, readable
        self.max_memory, self.max_processes, self.interval = MAX_MEMORY, MAX_PROCESSES, WATCH_INTERVAL
        self.group = _group() if sandboxed else None
        self.over = threading.Event()
        # In a control group each sandbox has one core.
        self.clock = SandboxClock(cores=1 if self.group is not None else CPU_COUNT)
        # What bubblewrap and Python say until it listens; later it says nothing.
        self.errors = TemporaryFile()  # noqa: SIM115  # open as long as the process
        if trusted:
            self.process = self._start()
        else:
            started: Future[Process] = Future()
            threading.Thread(target=self._start_and_watch, args=[started], daemon=True).start()
            self.process = started.result()
        # Without Python's buffers: a message is read to its end and no further.
        pipes = [pipe for pipe in (self.process.stdout, self.process.stdin) if pipe is not None]
        source, sink = (os.dup(pipe.fileno()) for pipe in pipes)
        self.channel = Channel(source, sink, time.monotonic if trusted else self.clock)
        for pipe in pipes:
            pipe.close()
        # Without a sandbox processes would be counted together with all others of this user. An answer may be
        # such that a check needs all memory there is.
        limits = LIMITS if sandboxed else {"RLIMIT_AS": LIMITS["RLIMIT_AS"]}
        with self.errors:
            try:
                self.ask({"imports": list(imports), "limits": limits}, START_TIMEOUT)
            except ChannelError as error:
                self.errors.seek(0)
                said = self.errors.read().decode(errors="replace").strip()[-MAX_SAID:] or "It said nothing."
                status = self.process.returncode
                text = f"A process that runs notebooks did not start (status {status}): {error} {said}"
                raise ChannelError(text) from error

    def _start(self) -> Process:
        if not self.sandboxed:
            return _started([sys.executable, *PYTHON], stderr=self.errors, env=os.environ | ENVIRONMENT)
        folders = {name: str(find()) for name, find in plugins.declared("folders").items()}
        # In the host's own /tmp another user might have left a configuration of that name. What the runner of
        # the checks imports it compiles for all sandboxes.
        own = {"MPLCONFIGDIR": "/tmp/starvelab-matplotlib", "PYTHONDONTWRITEBYTECODE": "1"}
        with bubblewrap.command(
            PYTHON,
            user=FIRST_USER + next(_users) % 30_000,
            environment=ENVIRONMENT | own | folders,
            readable=[*self.readable, *filter(os.path.isdir, folders.values())],
        ) as (argv, inherited):
            # What bubblewrap's own environment holds can be read inside, so it gets none.
            argv = argv if self.group is None else self.group.command(argv)
            return _started(argv, stderr=self.errors, env={}, pass_fds=inherited)

    def _start_and_watch(self, started: Future[Process]) -> None:
        """Start it, count its time, and end all its processes once they take too much."""
        # In a thread of its own: a keyring belongs to a thread, and bubblewrap ends with its starter.
        try:
            if self.sandboxed:
                bubblewrap.leave_keys()
            process = self._start()
        except BaseException as error:
            started.set_exception(error)
            return
        threading.current_thread().name = f"starvelab-watch-{process.pid}"
        started.set_result(process)
        while process.poll() is None and not self.over.wait(self.interval):
            processes = _tree(process.pid)
            self.clock.look(processes)
            slow_down(processes, self.clock.busy)
            # A limit of the system counts each by itself, or those of one user in all sandboxes together.
            is_many = len(processes) > self.max_processes
            if is_many or (self.group is None and self._takes_too_much(processes)):
                _kill(process.pid)

    def _takes_too_much(self, processes: Sequence[int]) -> bool:
        # Programs that start others are in memory twice for a moment.
        return self._fill_memory(processes) and self._fill_memory(_tree(processes[0]))

    def _fill_memory(self, processes: Sequence[int]) -> bool:
        room = self.max_memory - (_kernel_memory(processes) if self.sandboxed else 0)
        # What forked processes share counts once; to find out how much that is takes longer.
        return sum(map(_resident, processes)) > room and sum(map(_proportional, processes)) > room

    def ask(self, message: Message, seconds: float) -> Message:
        """Send a message, and wait for what comes back: both together for some seconds at most.

        Where it is too long, a `MessageTooLongError` says so, and the runner can be asked something else.
        After any other `ChannelError` the runner is ended: what it would say later belongs to no question.
        """
        given_up = self.clock() + seconds
        try:
            self.channel.send(message, seconds)
            while True:
                reply = self.channel.receive(max(0.0, given_up - self.clock()))
                # Before a notebook begins, it may be said that an earlier one has ended.
                if "folder" not in message or "ended" not in reply:
                    return reply
        except MessageTooLongError:
            raise
        except ChannelError:
            self.end()
            raise

    def work(self) -> float:
        """Return the seconds that cores have worked for the processes that are there now."""
        return sum(map(used, _tree(self.process.pid)))

    def open(self, place: Place, seconds: float = START_TIMEOUT) -> None:
        """Fork for a notebook."""
        files = {name: base64.b64encode(content).decode() for name, content in place.files.items()}
        message = {"folder": place.folder, "files": files, "modules": dict(place.modules)}
        reply = self.ask(message | {"checks": self.trusted}, seconds)
        if "open" not in reply:
            self.end()
            raise ChannelError("An earlier notebook goes on.")

    def close(self, seconds: float = CLOSE_TIMEOUT) -> None:
        """End the process of the notebook; if it does not end in time, everything ends."""
        if self.alive:
            with suppress(ChannelError):
                self.ask({"do": "close"}, seconds)

    def end(self) -> None:
        """Kill it and all that it started, and wait until they are gone; not for ever."""
        if self.over.is_set():  # its pipes and its number may be those of others by now
            return
        below: list[psutil.Process] = []
        with suppress(psutil.Error):
            below = psutil.Process(self.process.pid).children(recursive=True)
        if self.group is not None:
            self.group.kill()
        # Of bubblewrap's process namespace this ends everything, if not at once.
        _kill(self.process.pid)
        for process in below:
            with suppress(psutil.Error):
                process.kill()
        given_up = time.monotonic() + cgroup.END_TIMEOUT
        with suppress(TimeoutExpired):
            self.process.wait(cgroup.END_TIMEOUT)
        while any(map(_runs, below)) and time.monotonic() < given_up:
            time.sleep(0.002)
        self.over.set()
        if self.group is not None:
            self.group.remove()
        with suppress(OSError):
            self.channel.close()

    @property
    def alive(self) -> bool:
        """True if it can still be asked."""
        return self.process.poll() is None


class Runners:
    """Two runners and what they have used: one runs the checks, the other the code of one student."""

    # Notebooks of one submission share a sandbox, and no two submissions do. nbgrader makes a preprocessor
    # anew for each notebook, so whoever starts nbgrader passes these in the configuration.

    def __init__(self) -> None:
        self.checks: Runner | None = None
        self.student: Runner | None = None
        self.seconds_used = 0.0  # by code of the student
        self.output_bytes = 0  # that were kept of the student's outputs
        self.shown_warnings: set[str] = set()  # those that stand in another notebook of the submission
        self.logged: set[str] = set()  # what one log entry for the first notebook is enough for
        # Held while a submission is graded: the sandbox is its student's alone.
        self.lock = threading.Lock()
        self._submission: Hashable = None
        self._new = partial(Runner, sandboxed=True)
        self._new_checks = partial(Runner, sandboxed=False, trusted=True)
        self._running: list[Runner] = []
        # They end when this object is deleted, or when Python ends.
        self._finalizer = weakref.finalize(self, _end_all, self._running)

    def __deepcopy__(self, memo: object) -> Self:
        """Return the same object: traitlets copies what stands in a configuration."""
        return self

    def begin(self, submission: Hashable, shown: Iterable[str], *, sandboxed: bool, **more: Any) -> None:
        """Begin a notebook of a submission, which is told from every other one by this value."""
        key = (os.getpid(), submission, sandboxed)
        if self._submission != key:
            if self._submission is not None:
                self.end_student()
            self._submission = key
            self.shown_warnings |= set(shown)
        self._new = partial(Runner, sandboxed=sandboxed, **more)
        self._new_checks = partial(Runner, sandboxed=False, trusted=True, **more)
        self.checks_again()

    def checks_again(self) -> Runner:
        """Return the runner of the checks; a new one in the place of one that was ended."""
        self.checks = self._alive(self.checks, self._new_checks)
        return self.checks

    def student_again(self) -> Runner:
        """Return the runner of the student; a new one in the place of one that was ended."""
        self.student = self._alive(self.student, self._new)
        return self.student

    def _alive(self, runner: Runner | None, new: Callable[[], Runner]) -> Runner:
        if runner is None or not runner.alive:
            runner = new()
            self._running[:] = [*(each for each in self._running if each.alive), runner]
        return runner

    def end_student(self) -> None:
        """End the sandbox of the student whose turn it was."""
        if self.student is not None:
            self.student.end()
        self.student, self._submission, self.seconds_used, self.output_bytes = None, None, 0.0, 0
        self.shown_warnings.clear()

    @contextmanager
    def counted(self, student: Runner) -> Iterator[None]:
        """Count what this block takes as time of the student."""
        start = student.clock()
        try:
            yield
        finally:
            # The clock takes back seconds that others had the cores for, also some of before this block.
            self.seconds_used = max(0.0, self.seconds_used + student.clock() - start)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count the work of this thread as time of the student, whose text it reads in this block."""
        start = time.thread_time()
        try:
            yield
        finally:
            self.seconds_used += time.thread_time() - start

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Count the work of the checks as time of the student, whose values they read in this block."""
        checks = self.checks_again()
        start = checks.work()
        try:
            yield
        finally:
            self.seconds_used += max(0.0, checks.work() - start)


def _end_all(runners: list[Runner]) -> None:
    for runner in runners:
        if runner.alive:
            runner.end()


def _started(argv: Sequence[str], **more: Any) -> Process:
    return Popen(argv, stdin=PIPE, stdout=PIPE, start_new_session=True, **more)


def _tree(root: int) -> list[int]:
    """A process and all below it, the nearest first.

    While one of them ends, the kernel may leave out another one beside it: a single look may miss a process.
    To ask each process of the machine for its parent misses as many, and takes twenty times as long.
    """
    found = [root] if os.path.isdir(f"/proc/{root}") else []
    if not os.path.isfile("/proc/thread-self/children"):  # macOS, and kernels that leave this out
        with suppress(psutil.Error):
            found = [root, *(one.pid for one in psutil.Process(root).children(recursive=True))]
        return found
    for one in found:  # which grows meanwhile
        for thread in threads(one):
            with suppress(OSError):
                below = map(int, (thread / "children").read_text().split())
                found += [each for each in below if each not in found]
    return found


def _group() -> cgroup.ControlGroup | None:
    """A control group for one sandbox; None where none can be made, and memory is counted here."""
    if (above := cgroup.place()) is not None:
        with suppress(OSError):
            return cgroup.ControlGroup.make(above, memory=MAX_MEMORY, processes=LIMITS["RLIMIT_NPROC"])
    return None


def _kill(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _runs(process: psutil.Process) -> bool:
    """True if a process is more than an entry that nobody has read yet."""
    with suppress(psutil.Error):
        is_there = process.status() != psutil.STATUS_ZOMBIE or len(threads(process.pid)) > 1
        return is_there and process.is_running()
    return False


def _kernel_memory(processes: Sequence[int]) -> int:
    """Bytes that no process has: the files of a sandbox, and the most that its sockets may hold."""
    size = 0
    for inside in processes[1:2]:
        # Until bubblewrap has set it up, it sees the host's folders, and no first one of these.
        with suppress(OSError):
            for folder in bubblewrap.WRITABLE:
                room = os.statvfs(f"/proc/{inside}/root{folder}")
                size += (room.f_blocks - room.f_bfree) * room.f_frsize
                size += (room.f_files - room.f_ffree) * INODE_SIZE
        with suppress(*UNKNOWN):
            # "sockets: used 12", of the sandbox's own network.
            size += int(Path(f"/proc/{inside}/net/sockstat").read_text().split()[2]) * SOCKET_SIZE
    return size


def _resident(process: int) -> int:
    """Bytes of memory that a process uses, whoever else uses them too."""
    if not os.path.isdir("/proc/self/task"):  # macOS, without a sandbox
        with suppress(psutil.Error):
            return int(psutil.Process(process).memory_info().rss)
    # All threads have the same memory; but a first thread that ended before the others shows none any more.
    for thread in threads(process):
        with suppress(*UNKNOWN):
            if pages := int((thread / "statm").read_text().split()[1]):
                return pages * mmap.PAGESIZE
    return 0


def _proportional(process: int) -> int:
    """Bytes of memory that a process uses, divided by the number of those who use them."""
    for thread in threads(process):
        with suppress(*UNKNOWN):
            lines = (thread / "smaps_rollup").read_text().splitlines()
            return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss:", "SwapPss:")))
    return _resident(process)  # it hides what it shares: then all of that counts
