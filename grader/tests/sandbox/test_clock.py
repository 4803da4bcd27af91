"""Time that counts: for whoever waits for a core it stands still, for whoever sleeps or works it does not."""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import psutil
import pytest

from starvelab_grader.sandbox import clock
from starvelab_grader.sandbox.channel import Channel, ChannelError
from starvelab_grader.sandbox.clock import (
    CellTimeoutError,
    SandboxClock,
    counted,
    fair_niceness,
    slow_down,
    time_limit,
    waited,
)
from starvelab_grader.sandbox.process import Runners, _runs, _tree

pytestmark = pytest.mark.programs


def test_nobody_waits_for_ever():  # what else counts stands in its examples
    assert counted(2.0, 2.0, 0.0) == 0.2


@pytest.fixture
def kernel():
    """What the kernel says: seconds of work and of waiting, by process; and a clock on the wall."""
    return {"now": 0.0}


def told_by(kernel, cores=1):
    return SandboxClock(lambda: kernel["now"], cores, lambda it: (kernel[it], {it: (kernel[it][0], False)}))


def test_a_sandbox_is_counted_by_all_its_processes(kernel):
    watch = told_by(kernel, cores=2)
    kernel |= {"now": 1.0, 7: (1.0, 0.0)}
    watch.look([7])
    assert (watch(), watch.busy, watch.starved) == (1.0, 1, False)
    kernel |= {"now": 3.0, 7: (1.0, 1.8), 8: (0.2, 0.5)}
    assert watch() == 3.0, "until somebody looks, it is the clock on the wall"
    watch.look([7, 8])
    assert (watch(), watch.busy, watch.starved) == (pytest.approx(1.2), 1, True)
    kernel |= {"now": 4.0, 8: (2.2, 0.5), 9: (1.0, 0.9)}
    watch.look([8, 9])
    assert (watch(), watch.busy) == (pytest.approx(4.2), 2), "work on three cores counts three times"


def test_a_process_that_one_look_missed_is_not_counted_twice(kernel):
    watch = told_by(kernel)
    for now, used, processes in ((1.0, 1.0, [7]), (1.2, 1.2, []), (1.4, 1.4, [7])):
        kernel |= {"now": now, 7: (used, 0.0)}
        watch.look(processes)
    assert watch() == pytest.approx(1.4)


def test_processes_that_wait_for_one_another_wait_for_nobody_else(kernel):
    """Ten processes on two cores: each waits for four fifths of the time, also when nobody else is there."""
    watch = told_by(kernel, cores=2)
    kernel |= {"now": 10.0} | dict.fromkeys(range(10), (0.1, 8.0))
    watch.look(range(10))
    assert (watch(), watch.busy, watch.starved) == (pytest.approx(10.0), 10, False)
    kernel |= {"now": 20.0} | dict.fromkeys(range(10), (0.2, 17.5))
    watch.look(range(10))
    assert (watch(), watch.starved) == (pytest.approx(18.5), True)


WORK = """
import ctypes, hashlib, platform, threading
def work():
    while True: hashlib.sha256(bytes(10**7))
for _ in range(4): threading.Thread(target=work).start()
"""
# The system call `exit` ends the first thread alone; then the process looks as if it had ended.
END_FIRST_THREAD = "ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)"


@pytest.mark.parametrize("last", ["", END_FIRST_THREAD], ids=["all", "without the first"])
def test_threads_count_as_busy_one_by_one_and_are_slowed_down(monkeypatch, last):
    watch = SandboxClock()
    with psutil.Popen([sys.executable, "-c", WORK + last]) as process:
        try:
            given_up = time.monotonic() + 20
            while time.monotonic() < given_up:
                time.sleep(0.05)
                watch.look([process.pid])
                ended = process.status() == psutil.STATUS_ZOMBIE
                if watch.busy >= 4 and ended == bool(last):
                    break
            assert watch.busy >= 4
            assert ended == bool(last)
            assert _runs(process)
            # At the highest niceness, which the tests themselves may have, nothing would be seen to change.
            slowed = {}
            monkeypatch.setattr(os, "getpriority", lambda *_: 0)
            monkeypatch.setattr(
                os, "setpriority", lambda _, thread, niceness: slowed.update({thread: niceness})
            )
            slow_down([process.pid], 10)
            assert {slowed.get(one.id) for one in process.threads()} == {10}
        finally:
            process.kill()
    assert not _runs(process)


FAMILY = """
import os, threading, time
def born_in_a_thread():
    os.fork()  # and the grandchildren
    time.sleep(60)
threading.Thread(target=born_in_a_thread).start()
time.sleep(0.2)
if os.fork() == 0:
    os.setsid()
    os.fork()
    time.sleep(60)
while True:  # a sibling that ends may hide the next one
    if os.fork() == 0: os._exit(0)
    if os.fork() == 0: os._exit(0)
    os.wait()
    os.wait()
"""


def test_all_below_a_process_are_found_while_others_end():
    with psutil.Popen([sys.executable, "-c", FAMILY]) as process:
        stays: set[int] = set()
        try:
            given_up = time.monotonic() + 20
            while len(stays) < 3 and time.monotonic() < given_up:
                time.sleep(0.05)
                below = [*process.children(recursive=True)]
                stays = {one.pid for one in below if one.is_running() and one.status() == "sleeping"}
            assert len(stays) == 3
            missed = [stays - set(_tree(process.pid)) for _ in range(100)]
            assert sum(map(bool, missed)) < 33, "a look may miss one, and seldom does"
            assert _tree(process.pid)[0] == process.pid
        finally:
            process.suspend()  # it has no more children, of which one might end before it is killed
            for one in [*process.children(recursive=True), process]:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
    assert _tree(process.pid) == []


def test_the_kernel_says_how_long_a_process_waited():
    assert waited() >= 0.0
    assert waited(2**22 + 1) == 0.0


def test_the_more_processes_work_the_less_each_gets():
    assert [fair_niceness(busy) for busy in (0, 1, 2, 30, 1000)] == [0, 0, 3, 15, 19]
    for busy in (2, 10, 30):
        assert busy * 0.8 ** fair_niceness(busy) == pytest.approx(1.0, rel=0.15)


def test_processes_are_slowed_down_and_never_sped_up():
    with psutil.Popen(["/bin/sleep", "60"]) as process:
        try:
            for busy, more in ((1, 0), (10, 10), (2, 10)):
                slow_down([process.pid, 2**22 + 1], busy)
                assert process.nice() == min(19, os.getpriority(os.PRIO_PROCESS, 0) + more)
        finally:
            process.kill()


def test_a_channel_waits_by_its_own_clock():
    there, here = os.pipe(), os.pipe()
    times = iter([0.0, 0.0, 0.0, 0.0])
    channel = Channel(there[0], here[1], clock=lambda: next(times, 1.0))
    try:
        with pytest.raises(ChannelError, match=r"Nothing came in time\."):
            channel.receive(0.01)
        assert next(times, None) is None, "it looked at the clock until that showed more than 0.01 s"
    finally:
        for end in (*there, *here):
            os.close(end)


def test_a_cell_is_not_interrupted_for_time_that_others_had(monkeypatch):
    times = iter([0.0, 0.01, 0.02])
    monkeypatch.setattr(clock, "own_time", lambda: next(times, 9.0))
    alarms = []
    signals = signal.setitimer
    monkeypatch.setattr(clock.signal, "setitimer", lambda *args: alarms.append(args[1]) or signals(*args))
    with pytest.raises(CellTimeoutError, match=r"This took longer than 0\.05 s\."), time_limit(0.05):
        threading.Event().wait(30)
    assert alarms == [0.05, pytest.approx(0.04), pytest.approx(0.03), 0]


def test_a_cell_is_interrupted_before_its_process_is_ended_however_busy_the_machine_is(monkeypatch):
    monkeypatch.setattr(clock, "own_time", lambda: 0.0)  # a tenth counts, inside as outside
    with pytest.raises(CellTimeoutError, match=r"This took longer than 0\.05 s\."), time_limit(0.05):
        threading.Event().wait(10)


def test_a_look_that_comes_late_ends_nobody(kernel):
    watch = told_by(kernel)
    kernel["now"] = 20.0
    assert watch() == 4.0
    kernel[7] = (0.5, 19.5)
    watch.look([7])
    assert watch() == 2.0


@pytest.mark.parametrize(("blocks", "used"), [
    ([(0.0, 1.5), (2.0, 2.5)], 2.0),
    # At the second block's end the clock has found that others had the cores for some of the first.
    ([(0.0, 1.5), (1.5, 1.2)], 1.2),
    # It was read before it was looked at: what is taken back then was never counted.
    ([(0.1, 0.0), (0.0, 0.5)], 0.5),
])  # fmt: skip
def test_no_submission_gets_more_time_than_there_is(blocks, used):
    read = iter([second for block in blocks for second in block])
    runners = Runners()
    for _ in blocks:
        with runners.counted(SimpleNamespace(clock=lambda: next(read))):
            pass
    assert runners.seconds_used == pytest.approx(used)
