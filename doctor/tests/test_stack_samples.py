"""Samples of a stack say at which line a thread is, also while it keeps Python's lock."""

import gc
import os
import socket
import sys
import threading
import time

import pytest

from starvelab_doctor.watching.stack_samples import StackSampler, Uncollected

from .planted_lines import sampled


@pytest.mark.programs
def test_the_share_of_each_line_is_near_the_true_one():
    for _ in range(4):  # the machine may do something else meanwhile
        true, seen = sampled(0.04, 3.0)  # shorter lines: see benchmarks.sampler
        if max(abs(true[name] - seen[name]) for name in true) <= 0.1:
            return
    pytest.fail(f"true {true}, seen {seen}")


def wait_for_interval(condition):
    end = time.monotonic() + 10
    while not condition(sys.getswitchinterval()) and time.monotonic() < end:
        time.sleep(0.01)
    assert condition(sys.getswitchinterval())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_the_program_keeps_the_interval_after_which_its_own_threads_change():
    usual, ended = sys.getswitchinterval(), threading.Event()
    sampler = StackSampler(lambda *_: None)
    server = socket.create_server(("localhost", 0))  # a thread that waits for one keeps no core
    listening = threading.Thread(target=lambda: server.accept()[0].close())
    listening.start()
    sampler.start()
    try:
        wait_for_interval(lambda interval: interval < usual / 10)
        if not (child := os.fork()):
            os._exit(sys.getswitchinterval() != usual)
        assert os.waitpid(child, 0)[1] == 0
        threading.Thread(target=lambda: [None for _ in iter(ended.is_set, True)]).start()
        wait_for_interval(lambda interval: interval == usual)
        sys.setswitchinterval(2 * usual)  # by the program itself
    finally:
        ended.set()
        sampler.stop()
        socket.create_connection(server.getsockname()).close()
        listening.join()
        server.close()
    assert sys.getswitchinterval() == 2 * usual
    sys.setswitchinterval(usual)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python collects between two steps of a program")
def test_no_garbage_is_collected_in_a_look_which_might_crash_the_program_or_stop_it():
    collecting, looks = [], []
    watched = StackSampler(lambda *_: looks.append(1))

    def note(phase, info):
        collecting.append((threading.current_thread().name, sys._getframe(1).f_code.co_name))

    def sink(depth):
        return sink(depth - 1) if depth else len(looks) > 8 or time.sleep(0.01)

    gc.callbacks.append(note)
    before = gc.get_threshold()
    gc.set_threshold(1)
    watched.start()
    try:
        for _ in range(1000):
            if sink(50):
                break
    finally:
        watched.stop()
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    inside = {name for thread, name in collecting if thread == "starvelab sampler"}
    assert inside
    assert not inside & {"stack_at", "stack_of", "_is_alone", "_waits"}


def test_a_process_that_is_forked_in_a_look_collects_its_garbage():
    pause = Uncollected()
    with pause:
        pause.__exit__()  # in the child, after the fork
        assert gc.isenabled()
    assert gc.isenabled()
