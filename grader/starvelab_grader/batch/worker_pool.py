"""The worker pool that grades: workers of Dask, on this machine or wherever a scheduler has some."""

import logging
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from itertools import islice
from queue import Empty, SimpleQueue

import cloudpickle
import dask
import psutil
from dask.system import CPU_COUNT
from distributed import Client, Future, KilledWorker, LocalCluster, Security, get_worker
from sqlalchemy.exc import SAWarning

from ..autograde.definition import Definition
from ..autograde.task import GradingResult, grade
from ..errors import UnavailableError
from ..files import VERSION, package_fingerprint, scratch_folder
from ..sandbox import bubblewrap
from ..sandbox.process import Runners
from ..submissions.submission import Submission
from ..text import one_line

# Submissions that wait at a worker besides the one in progress: no worker idles, and memory stays small.
QUEUE_LENGTH = 2
START_TIMEOUT = "60s"
REPORT_INTERVAL, MAX_NAME = 5.0, 30  # seconds; characters of a student's name in a report
# A task takes seconds. Dask watches itself every few milliseconds, and the cores should rather grade.
QUIET = {
    "distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s", "distributed.admin.large-graph-warning-threshold": "1GB",
}  # fmt: skip
# Dask's web pages ask for no password, and show the names of students.
NO_PAGES: dict[str, list[str]] = {f"distributed.{one}.http.routes": [] for one in ("scheduler", "worker")}
ENCRYPTED = ("tls://", "wss://")
RUNNERS = "starvelab_runners"  # the attribute of a worker
WORKER_MEMORY = 600_000_000  # bytes of a worker, with the two runners that it starts
_unpacked = lru_cache(maxsize=1)(cloudpickle.loads)  # once for all submissions that follow each other


@contextmanager
def open_pool(
    workers: int = 0, scheduler: str = "", without_tls: bool = False, unsafe: bool = False
) -> Iterator[Client]:
    """Open a pool of workers: those of a running scheduler, or some that are started here and ended again.

    An UnavailableError says what one of them lacks.
    """
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(QUIET | NO_PAGES))
        if scheduler:
            _require_encryption(scheduler, without_tls)
            try:
                client = stack.enter_context(Client(scheduler, timeout=START_TIMEOUT, set_as_default=False))
            except (OSError, ValueError) as error:
                raise UnavailableError(
                    f"No Dask scheduler answers at {scheduler}: {error}. "
                    "Start one (dask scheduler), or leave --scheduler out to grade on this machine."
                ) from error
            if not client.scheduler_info()["workers"]:
                text = f"The scheduler at {scheduler} has no workers. Start some: dask worker {scheduler}"
                raise UnavailableError(text)
        else:
            available = int(psutil.virtual_memory().available)
            with _interrupts_for_the_main_thread_only():
                cluster = LocalCluster(
                    n_workers=workers or max(1, min(CPU_COUNT, available // WORKER_MEMORY)),
                    threads_per_worker=1,
                    # Whoever reaches the port of a worker can run code in it, also another user of this
                    # machine. So both ends have to show a certificate, which exists in memory only.
                    security=Security.temporary(),
                    protocol="tls://",
                    # Dask's own is a folder in /tmp with a known name, which another user may have made.
                    local_directory=str(stack.enter_context(scratch_folder())),
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},  # which bokeh, where it is installed, would draw
                    silence_logs=logging.CRITICAL,
                )
            client = stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))
        _require_ready(client, unsafe)
        yield client


@contextmanager
def _interrupts_for_the_main_thread_only() -> Iterator[None]:
    """Threads and processes that are started in this block do not receive Ctrl+C."""
    # A terminal sends it to every process. A worker that ended by itself would be started again meanwhile,
    # and the grader would wait for it.
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Threads and processes inherit what is blocked. An interrupt that comes meanwhile is delivered after it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _require_encryption(scheduler: str, without_tls: bool) -> None:
    if not scheduler.startswith(ENCRYPTED):
        if without_tls:
            return
        raise UnavailableError(
            f"A scheduler must use TLS, and {scheduler} does not: whoever reaches its port can run code as "
            "its workers do. Give it, its workers and this machine certificates "
            "(https://distributed.dask.org/en/stable/tls.html) and an address that begins with tls://, or "
            "accept the risk in a network that nobody else reaches: --without-tls."
        )
    if Security().get_connection_args("client").get("ssl_context") is None:
        raise UnavailableError(
            f"To reach {scheduler} this machine needs a certificate, and Dask's configuration names none. "
            "Name the files there, under distributed.comm.tls: ca-file, client.cert and client.key."
        )


def code() -> str:
    """The version of starvelab, and of its code and facts: in a checkout these change, and it does not."""
    return f"{VERSION} ({package_fingerprint()[:8]})"


def _require_ready(client: Client, unsafe: bool) -> None:
    try:
        answers: dict[str, tuple[str, str]] = client.run(_state)
    # A worker without starvelab cannot even read the question.
    except Exception as error:
        raise UnavailableError(
            f"A worker cannot run starvelab: {type(error).__name__}: {error}. "
            "It needs the same version there: python -m pip install starvelab-grader"
        ) from error
    reasons = {why_not for _, why_not in answers.values() if why_not and not unsafe}
    reasons |= {
        f"Workers need the starvelab that is installed here, {code()}, and {worker} has {version}. "
        "Install the same there, and start it again."
        for worker, (version, _) in answers.items() if version != code()
    }  # fmt: skip
    if reasons:
        raise UnavailableError("\n".join(sorted(reasons)))


def _state() -> tuple[str, str]:
    """Return the starvelab that a worker has, and why it has no sandbox."""
    return code(), bubblewrap.why_not()


def graded_by(
    client: Client, definition: Definition, work: Iterable[Submission],
    report: Callable[[str], object] | None = None,
) -> Iterator[GradingResult]:  # fmt: skip
    """Grade submissions, read as workers become free, and give each as soon as it is done.

    After some seconds `report` is told which one has run longest, and once that is done nothing, "".
    """
    coming = iter(work)
    # Sent with each submission: a worker that takes the place of a dead one would not have it otherwise.
    packed = cloudpickle.dumps(definition)
    running, done = dict[Future[GradingResult], Submission](), SimpleQueue[Future[GradingResult]]()

    def send(submissions: Iterable[Submission]) -> None:
        for submission in submissions:
            future = client.submit(_grade, submission, packed, pure=False)
            running[future] = submission
            future.add_done_callback(done.put)

    def as_done() -> Iterator[tuple[Submission, Future[GradingResult]]]:
        longest, since = None, 0.0
        while running:
            oldest = next(iter(running))  # workers begin with what was sent first
            if oldest is not longest:
                longest, since = oldest, time.monotonic()
            future = None
            with suppress(Empty):
                future = done.get(timeout=REPORT_INTERVAL)
            is_long = future is not oldest and time.monotonic() - since >= REPORT_INTERVAL
            if report is not None:
                report(f"{one_line(running[oldest].student, MAX_NAME)} runs longest" if is_long else "")
            if future is not None:
                yield running.pop(future), future

    threads, starved = sum(client.nthreads().values()), list[Submission]()
    send(islice(coming, max(1, threads) * (1 + QUEUE_LENGTH)))
    for submission, future in as_done():
        send(islice(coming, 1))
        result = _result(future, submission.student)
        if result.out_of_time and threads > 1:
            starved.append(submission)
        else:
            yield result
    # A submission that waited for a core too long is graded again when the others are done, without company.
    for submission in starved:
        send([submission])
        yield from (_result(future, submission.student) for _, future in as_done())


def _result(future: Future[GradingResult], student: str) -> GradingResult:
    try:
        return future.result()
    except KilledWorker as error:
        reason = f"The worker that graded it ended, each time that it was tried: {error}"
    # The others can still be graded.
    except Exception as error:
        reason = f"Its worker gave no answer: {type(error).__name__}: {error}"
    return GradingResult(student, failed=reason)


def _grade(submission: Submission, packed: bytes) -> GradingResult:
    warnings.simplefilter("ignore", SAWarning)  # of nbgrader's queries, in which nothing is amiss
    # A worker keeps its runners between submissions.
    runners: Runners = vars(get_worker()).setdefault(RUNNERS, Runners())
    return grade(submission, _unpacked(packed), runners)
