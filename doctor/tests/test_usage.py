"""What the system tells of a job's processes, with known clocks, and of its GPU, with a simulated one."""

import _thread
import os
import queue
import sys
import threading
import time
import types
from collections.abc import Sequence

import pytest

from doctor.tests.loops import Loader, train
from starvelab.measure.devices import cuda_in_use
from starvelab_doctor import watch
from starvelab_doctor.watching import recorder, usage
from starvelab_doctor.watching.recorder import Recorder
from starvelab_doctor.watching.usage import ProcessUse


def source(*numbers):
    return types.SimpleNamespace(_workers=[types.SimpleNamespace(pid=number) for number in numbers])


def test_each_look_counts_since_the_one_before(monkeypatch):
    spent, queued = iter([10.0, 10.75, 11.5]), iter([1.0, 1.0, 1.5])
    of_loop = iter([7.0, 7.125, 7.25])
    threads = ("one", "another")
    monkeypatch.setattr(usage, "own_threads", lambda: threads)
    monkeypatch.setattr(usage, "queued_seconds", lambda *tasks: next(of_loop if tasks == threads else queued))
    clocks = types.SimpleNamespace(
        perf_counter=iter([100.0, 101.0, 102.0]).__next__, process_time=iter([5.0, 5.25, 5.5]).__next__
    )
    monkeypatch.setattr(usage, "time", clocks)
    # Its own, and in part by processes that it had started, as a decoder of films is.
    worker = types.SimpleNamespace(cpu_times=lambda: (2.0, 1.0, next(spent) - 4.0, 1.0, 0.0))
    monkeypatch.setattr("psutil.Process", lambda number: worker)
    found, workers = ProcessUse(), source(1)
    found.poll(workers)
    assert (found.share, found.loop_cores(0.0), found.queued_share) == (None, None, None)
    found.poll(workers)
    assert (found.share, found.loop_cores(0.0), found.queued_share) == (0.75, 0.25, 0.0)
    found.poll(workers)
    # Waiting for a core counts as work, and apart.
    assert (found.share, found.loop_cores(0.0), found.queued_share) == (1.0, 0.25, 0.25)
    assert found.threads == 1.0
    found.busy = 2.1
    assert (found.threads, found.share) == (1.0, 1.0)
    found.busy = 3.0
    assert (found.threads, found.share) == (1.5, 1.0)
    assert found.core_waits == 0.25  # the loop has no core in half as much
    found.queued = None
    assert found.core_waits == 0.125


def test_what_a_loop_without_workers_prepares_is_not_its_own_work():
    recorder = Recorder(batch_size=1, workers=0)
    recorder.use.loop_busy, recorder.use.loop_passed = 0.75, 1.0
    recorder.replay(None, [0.06] * 10, [0.04] * 10)
    recorder.use.add(0.5, 0.6)
    assert recorder.finding().machine.loop_cpu == pytest.approx(0.25)
    assert recorder.finding().machine.prepare_queued is None  # nobody asked the system for that thread


def test_without_workers_what_processes_compute_that_an_item_starts_is_no_waiting(clock, monkeypatch):
    monkeypatch.setattr(clock, "process_time", lambda: 0.0)
    monkeypatch.setattr(recorder, "children_seconds", lambda: clock.now)
    watched = watch(Loader(clock, 0.03), workers=0, progress=False)
    for _ in watched:
        clock.sleep(0.01)
    assert watched.result.machine.prepare_cpu == pytest.approx(1.0)
    # What the loop itself computes is without them, and without workers of another loop that have ended.
    watched._recorder.use.loop_busy, watched._recorder.use.loop_passed = 0.25, 1.0
    assert watched.result.machine.loop_cpu == 0.25


def test_without_workers_waiting_for_a_core_is_no_waiting_for_storage(clock, monkeypatch):
    queued = [0.0]
    monkeypatch.setattr(recorder, "queued_seconds", lambda: queued[0])
    monkeypatch.setattr(clock, "process_time", lambda: clock.now - queued[0])

    class Beside(Loader):  # of 60 ms a batch, it gets a core for 20
        def batches(self):
            for batch in super().batches():
                queued[0] += 0.04
                yield batch

    watched = watch(Beside(clock, 0.06), workers=0, progress=False)
    for _ in watched:
        clock.sleep(0.01)
    assert watched.result.machine.prepare_cpu == pytest.approx(1)
    assert watched.result.machine.prepare_queued == pytest.approx(2 / 3)


@pytest.mark.parametrize(("others", "rank", "computes", "waits", "verdict"), [
    (0.8, "", 0.001, 0.03, "not"),
    (0.8, "", 0.005, 0.08, "moderately"),  # a sampler in the loop's thread: that wants the core
    (0.05, "", 0.001, 0.08, "moderately"),
    (0.05, "1", 0.001, 0.03, "not"),
])  # fmt: skip
def test_a_wait_for_a_core_is_no_wait_for_data(clock, monkeypatch, others, rank, computes, waits, verdict):
    queued = [0.0]
    monkeypatch.setenv("RANK", rank)  # the other ranks are there, however little they use
    monkeypatch.setattr(recorder, "queued_seconds", lambda: queued[0])
    monkeypatch.setattr(ProcessUse, "others_share", others)

    class Beside(Loader):  # the batch is there, but of 8 ms the loop waits 5 for a core
        def batches(self):
            for batch in super().batches():
                queued[0] += 0.005
                clock.computed += computes
                yield batch

    watched = watch(Beside(clock, 0.008), workers=1, progress=False)
    for _ in watched:
        clock.sleep(0.092)
    assert watched.result.waits.host_wait == pytest.approx(waits, abs=0.002)
    assert watched.result.verdict == f"{verdict} input-bound"
    assert watched.result.waits.batch_rate.m_as("1/s") == pytest.approx(10)


def test_what_others_use_of_the_cores(monkeypatch):
    clock, used = iter([10.0, 11.0, 12.0]), iter([50.0, 51.5, 53.5])
    monkeypatch.setattr(usage, "busy_cores", lambda: next(used))
    monkeypatch.setattr(usage, "usable_cores", lambda: 2)
    monkeypatch.setattr(usage, "tree_seconds", iter([1.0, 1.5, 2.5]).__next__)
    clocks = types.SimpleNamespace(perf_counter=clock.__next__, process_time=lambda: 0.0)
    monkeypatch.setattr(usage, "time", clocks)
    found = ProcessUse()
    for share in (None, 0.5, 0.5):  # of four core seconds, two: 1.5 less 0.5, and 2 less 1
        found.poll(None)
        assert found.others_share == share


def test_workers_that_are_new_or_have_ended_and_loaders_without_any():
    found = ProcessUse()
    found.poll(source(os.getpid()))
    found.poll(source(os.getpid(), os.getpid()))
    for one in (source(2**22 + 1), source(), object()):
        found.poll(one)
    assert found.share is None
    assert usage.queued_seconds(2**22 + 1) is None


class Computes(Sequence):
    """Items that each take a core for 5 ms."""

    def __len__(self):
        return 60

    def __getitem__(self, index):
        end = time.thread_time() + 0.005
        while time.thread_time() < end:
            pass
        return index


@pytest.mark.programs  # each takes two seconds
@pytest.mark.parametrize("rest", ["between passes", "in a long step", "in an evaluation"])
def test_a_worker_that_rests_while_the_loop_does_something_else_waits_for_no_storage(monkeypatch, rest):
    # Of a training with persistent workers beside an evaluation, 2.5 times as much was said of two cores.
    loaders = pytest.importorskip("torch.utils.data")
    monkeypatch.setattr(recorder, "POLL_INTERVAL", 0.05)
    monkeypatch.setattr(recorder, "PAUSE", 0)
    loader = loaders.DataLoader(Computes(), 4, num_workers=1, persistent_workers=True)
    watched, other = watch(loader, progress=False), watch([1, 2, 3], progress=False)
    for _ in range(2):
        for number, _ in enumerate(watched):
            time.sleep(0.5 if number == 12 and rest == "in a long step" else 0.002)
            if number == 12 and rest == "in an evaluation":
                for _ in other:
                    time.sleep(0.2)
        if rest == "between passes":
            time.sleep(0.5)
    found, loader._iterator = watched.result, None  # and its worker ends
    assert found.machine.prepare_cpu > 0.75


class SimulatedCuda:
    """`torch.cuda` as far as `watch` uses it: a stream that works on its own, in the time of a clock."""

    def __init__(self, clock):
        self.clock, self.busy_until, self.made = clock, clock.now, 0
        cuda = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing
                cuda.made += 1
                self.done = None

            def record(self, stream=None):
                assert stream == "stream of device 0"
                self.done = max(clock.now, cuda.busy_until)

            def query(self):
                return clock.now >= self.done

            def elapsed_time(self, end):
                assert self.query(), "this event is not done yet"
                assert end.query(), "this event is not done yet"
                return 1e3 * (end.done - self.done)

        self.Event = Event

    def is_initialized(self):
        return True

    def current_device(self):
        return 0

    def current_stream(self, device):
        return f"stream of device {device}"

    def work(self, seconds):
        """Order work, which begins when all that was ordered before is done."""
        self.busy_until = max(self.clock.now, self.busy_until) + seconds

    def synchronize(self):
        self.clock.now = max(self.clock.now, self.busy_until)


def run(clock, wait, count, step, **loader):
    """What is found of a loop whose step orders work of a GPU; `step` gets the GPU and the batch's number."""
    cuda = SimulatedCuda(clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "cuda_in_use", lambda: cuda)
        watched = watch(Loader(clock, wait, count, **loader), progress=False)
        for number in watched:
            step(cuda, number)
    cuda.synchronize()
    return watched.result, cuda


def ordered(seconds, every=0):
    """A step that orders its work and goes on; after so many batches it waits for the GPU."""

    def step(cuda, number):
        cuda.work(seconds)
        cuda.clock.sleep(0.001)
        if every and number % every == every - 1:
            cuda.synchronize()

    return step


def small_kernels(cuda, number):
    for _ in range(10):  # each is done before the next is ordered
        cuda.clock.sleep(0.01)
        cuda.work(0.002)


def evaluated_once(cuda, number):
    cuda.work(0.05 + 60 * (number == 30))
    cuda.synchronize()


@pytest.mark.parametrize(
    ("wait", "step", "stall", "verdict", "interruptions"),
    [
        (0.08, ordered(0.1), 0.0, "not input-bound", 0),
        (0.1, ordered(0.06), (0.101 - 0.06) / 0.101, "highly input-bound", 0),
        (0.001, small_kernels, 0.0, "not input-bound", 0),
        (0.05, evaluated_once, 0.5, "highly input-bound", 1),
        (0.001, ordered(0.1, every=50), 0.0, "not input-bound", 0),
    ],
    ids=["ahead of a busy GPU", "starved", "launches", "an evaluation", "reading the loss at times"],
)
def test_the_gpu_decides_where_it_is_timed(clock, wait, step, stall, verdict, interruptions):
    result, cuda = run(clock, wait, 101, step)
    assert result.gpu.stall == pytest.approx(stall, abs=0.012)
    assert (result.verdict, result.waits.interruptions) == (verdict, interruptions)
    assert f"The GPU waits {100 * result.gpu.stall:.1f} % of the time for data" in result.summary
    assert cuda.made <= 110  # events are used again once they are done


def test_a_first_batch_counts_neither_on_the_gpu(clock, monkeypatch):
    cuda = SimulatedCuda(clock)
    monkeypatch.setattr(recorder, "cuda_in_use", lambda: cuda)
    watched = watch(Loader(clock, 0.001, 20, first=50), progress=False)
    for _ in range(2):
        for _ in watched:
            cuda.work(0.099)
            cuda.synchronize()
    assert watched.result.gpu.stall == pytest.approx(0.01, rel=0.01)
    assert watched.result.waits.counted == 36
    assert cuda.made <= 6


def test_cuda_is_found_as_soon_as_the_program_works_with_it(clock, monkeypatch):
    cuda = SimulatedCuda(clock)
    cuda.is_initialized = lambda: cuda.made_use_of
    cuda.made_use_of = False
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    assert cuda_in_use() is None
    watched = watch(Loader(clock, 0.1, 40), progress=False)
    for _ in watched:
        cuda.made_use_of = True
        cuda.work(0.1)
    assert watched.result.gpu.stall is not None


def test_a_gpu_that_was_never_timed_leaves_a_wait_open(clock, monkeypatch):
    watched = watch(Loader(clock, 0.1, 40), progress=False)
    for _ in watched:
        clock.sleep(0.1)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=SimulatedCuda(clock)))
    assert watched.result.verdict == "cannot tell"
    assert "the loop may run ahead of the GPU, which was not timed" in watched.result.summary


def test_beside_short_waits_the_system_is_asked_seldom_and_long_ones_count_as_they_are(clock, monkeypatch):
    asked, slept = [], [0.0]
    monkeypatch.setattr(clock, "process_time", lambda: asked.append(1) or clock.now - slept[0])

    class Reads(Loader):  # each 97th batch waits 10 ms for storage, the others compute for 0.1 ms
        num_workers = 0

        def batches(self):
            for batch in super().batches():
                if batch % 97 == 96:
                    slept[0] += 0.01
                    clock.sleep(0.01)
                yield batch

    watched = watch(Reads(clock, 0.0001, 60_000), progress=False)
    train(clock, watched, 0.00011)
    assert len(asked) < 2 * 60_000 / 20  # twice for a batch
    assert watched.result.machine.prepare_cpu == pytest.approx(97 / 197, abs=0.1)


def test_threads_of_libraries_are_the_loops_and_those_that_python_started_are_not():
    # The thread by which doctor looks at the loop wakes up often, and waits for a core each time.
    ended, numbers = threading.Event(), queue.Queue()

    def run():
        numbers.put(threading.get_native_id())
        ended.wait()

    thread = threading.Thread(target=run)
    thread.start()
    of_python = numbers.get()
    _thread.start_new_thread(run, ())
    of_library, tasks = numbers.get(), usage.own_threads()
    ended.set()
    thread.join()
    if tasks:  # where the system tells
        assert f"self/task/{of_python}" not in tasks
        assert {f"self/task/{of_library}", f"self/task/{threading.get_native_id()}"} <= set(tasks)
