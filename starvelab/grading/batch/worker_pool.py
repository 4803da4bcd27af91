"""The workers that grade: Dask's, on this machine or wherever a scheduler has some."""

from __future__ import annotations

import logging
import signal
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from importlib.metadata import version
from itertools import islice
from typing import Any

import cloudpickle
import dask
import psutil
from distributed import Client, Future, KilledWorker, LocalCluster, Security, as_completed
from sqlalchemy.exc import SAWarning

from ...errors import StarvelabError
from ...host import usable_cores
from ..autograde.definition import Definition
from ..autograde.task import Graded, grade
from ..sandbox import bubblewrap
from ..submissions.digests import package_fingerprint
from ..submissions.files import HandIn

# Submissions that wait at a worker besides the one in progress: so that none idles, and memory stays small.
IN_STORE = 2
START = "60s"
# A task takes seconds; Dask watches itself every few milliseconds, which costs the cores that grade.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
}
# Dask's web pages ask nobody for a password, and name who is graded.
NO_PAGES = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
ENCRYPTED = ("tls://", "wss://")
MEMORY = 600_000_000  # bytes of a worker, with the two runners that it starts


class NoCrewError(StarvelabError, RuntimeError):
    """There are no workers, or they cannot grade."""


@contextmanager
def crew(
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    without_tls: bool = False,
    unsafe: bool = False,
) -> Iterator[Client]:
    """Workers to grade with: of a scheduler that runs already, or started here and ended afterwards.

    Parameters
    ----------
    workers : int, optional
        How many to start; by default as many as there are cores, and memory for.
    scheduler : str, optional
        Address of a Dask scheduler, such as tls://host:8786. Its workers need the same starvelab.
    without_tls : bool
        Whether a scheduler will do that takes work from everybody.
    unsafe : bool
        Whether workers without a sandbox will do.

    Raises
    ------
    NoCrewError
    """
    with ExitStack() as stack:
        if scheduler:
            _ask_whether_encrypted(scheduler, without_tls)
            try:
                client = stack.enter_context(Client(scheduler, timeout=START, set_as_default=False))
            except (OSError, ValueError) as error:
                raise NoCrewError(
                    f"No Dask scheduler answers at {scheduler}: {error}. "
                    "Start one (dask scheduler), or leave --scheduler out to grade on this machine."
                ) from error
            if not client.scheduler_info()["workers"]:
                raise NoCrewError(
                    f"The scheduler at {scheduler} has no workers. Start some: dask worker {scheduler}"
                )
        else:
            stack.enter_context(dask.config.set(QUIET | NO_PAGES))
            folder = stack.enter_context(_folder())
            with _interrupts_for_the_main_thread_only():
                cluster = LocalCluster(
                    n_workers=workers or _as_many_as_fit(),
                    threads_per_worker=1,
                    # Whoever may talk to a worker runs code in it, and other users of this machine reach its
                    # port: both ends have to show a certificate, which exists in memory only.
                    security=Security.temporary(),
                    protocol="tls://",
                    # In the folder that Dask would choose in /tmp another user may wait already.
                    local_directory=folder,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
            client = stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))
        _ask_whether_ready(client, unsafe)
        yield client


@contextmanager
def _interrupts_for_the_main_thread_only() -> Iterator[None]:
    """What is started meanwhile never hears of Ctrl+C, which a terminal sends to every process.

    The main thread then ends the workers. A worker that ended by itself would be started again meanwhile, and
    the grader would wait for it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Threads and processes inherit what is blocked; an interrupt that comes meanwhile is heard afterwards.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="starvelab-workers-", ignore_cleanup_errors=True)


def _as_many_as_fit() -> int:
    return max(1, min(usable_cores(), psutil.virtual_memory().available // MEMORY))


def _ask_whether_encrypted(scheduler: str, without_tls: bool) -> None:
    if not scheduler.startswith(ENCRYPTED):
        if without_tls:
            return
        raise NoCrewError(
            f"A scheduler must use TLS, and {scheduler} does not: whoever reaches its port can run code as "
            "its workers do. Give it, its workers and this machine certificates "
            "(https://distributed.dask.org/en/stable/tls.html) and an address that begins with tls://, or "
            "accept the risk in a network that nobody else reaches: --without-tls."
        )
    if Security().get_connection_args("client").get("ssl_context") is None:
        raise NoCrewError(
            f"To reach {scheduler} this machine needs a certificate, and Dask's configuration names none. "
            "Name the files there, under distributed.comm.tls: ca-file, client.cert and client.key."
        )


def code() -> str:
    """The version of starvelab, and of its code and facts: in a checkout these change, and it does not."""
    return f"{version('starvelab')} ({package_fingerprint()[:8]})"


def _ready() -> tuple[str, str]:
    """What a worker answers: the starvelab it has, and why it cannot start a sandbox, if so."""
    return code(), bubblewrap.why_not()


def _ask_whether_ready(client: Client, unsafe: bool) -> None:
    try:
        answers: dict[str, tuple[str, str]] = client.run(_ready)
    # A worker without starvelab cannot even read the question.
    except Exception as error:
        raise NoCrewError(
            f"A worker cannot run starvelab: {type(error).__name__}: {error}. "
            "Install it there in the same version, with its extra: pip install starvelab[grade]"
        ) from error
    others = {worker: one for worker, (one, _) in answers.items() if one != code()}
    if others:
        worker, one = next(iter(others.items()))
        raise NoCrewError(
            f"Workers need the starvelab that is installed here, {code()}, and {worker} has {one}. "
            "Install the same there, and start it again."
        )
    reasons = {reason for _, reason in answers.values() if reason}
    if reasons and not unsafe:
        raise NoCrewError("\n".join(sorted(reasons)))


def graded_by(client: Client, definition: Definition, hand_ins: Iterable[HandIn]) -> Iterator[Graded]:
    """Grade submissions, and give each as soon as it is done.

    `hand_ins` is read as workers become free, so that a large class is never in memory as a whole.
    """
    coming = iter(hand_ins)
    # With each submission, and not once for all: a worker that took a dead one's place would lack it.
    packed = cloudpickle.dumps(definition)
    sent: dict[Any, HandIn] = {}

    def send(handed: HandIn) -> Future:
        future = client.submit(_grade, handed, packed, pure=False)
        sent[future.key] = handed
        return future

    at_once = sum(client.nthreads().values())
    running = as_completed(
        [send(one) for one in islice(coming, max(1, at_once) * (1 + IN_STORE))], loop=client.loop
    )
    starved = []
    for future in running:
        handed = sent.pop(future.key)
        for following in islice(coming, 1):
            running.add(send(following))
        graded = _result(future, handed.student)
        if graded.out_of_time and at_once > 1:
            starved.append(handed)
        else:
            yield graded
    # What others kept from getting on is graded again when they are done, one submission after the other.
    for handed in starved:
        yield _result(send(handed), handed.student)


def _result(future: Future, student: str) -> Graded:
    try:
        return future.result()
    except KilledWorker as error:
        why = f"The worker that graded it died, each time that it was tried: {error}"
    # The others can still be graded.
    except Exception as error:
        why = f"Its worker gave no answer: {type(error).__name__}: {error}"
    return Graded(student, failed=why)


def _grade(handed: HandIn, packed: bytes) -> Graded:
    warnings.simplefilter("ignore", SAWarning)  # of nbgrader's queries, in which nothing is amiss
    return grade(handed, _unpacked(packed))


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Definition:
    return cloudpickle.loads(packed)
