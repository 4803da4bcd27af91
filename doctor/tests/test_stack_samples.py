"""Samples of a stack say at which line a thread is, also while it keeps Python's lock."""

import gc
import os
import sys
import threading
import time
from contextlib import suppress
from functools import wraps
from multiprocessing import Pipe, resource_sharer

import pytest

from starvelab_doctor.watching.stack_samples import StackSampler, Uncollected
from tests.measure.patience import patiently

from .planted_lines import sampled


@pytest.mark.programs
def test_the_share_of_each_line_is_near_the_true_one():
    for _ in range(4):  # the machine may do something else meanwhile
        true, seen = sampled(0.04, 3.0)  # shorter lines: see benchmarks.sampler
        if max(abs(true[name] - seen[name]) for name in true) <= 0.1:
            return
    pytest.fail(f"true {true}, seen {seen}")


def in_a_process_with_one_thread(test):
    """Who starts the tests may have threads that read, of which the sampler cannot know that they wait."""

    @wraps(test)
    def run():
        if not (child := os.fork()):
            with suppress(AssertionError):
                test()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

    return run


def wait_for_interval(condition):
    assert condition(patiently(sys.getswitchinterval, condition))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@in_a_process_with_one_thread
def test_the_program_keeps_the_interval_after_which_its_own_threads_change():
    usual, ended = sys.getswitchinterval(), threading.Event()
    here, there = Pipe()
    threading.Thread(target=here.poll, args=(None,)).start()  # as one that pins batches waits for workers
    resource_sharer.DupFd(0)  # as in a worker that sends tensors: a thread waits for the loop
    sampler = StackSampler(lambda *_: None)
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
        there.send(None)
        resource_sharer.stop()
        sampler.stop()
    assert sys.getswitchinterval() == 2 * usual
    sys.setswitchinterval(usual)


def test_the_program_has_its_interval_again_where_the_thread_ends_that_is_watched():
    usual = sys.getswitchinterval()
    thread = threading.Thread(target=lambda: StackSampler(lambda *_: None).start() or time.sleep(0.2))
    thread.start()
    thread.join()
    wait_for_interval(lambda interval: interval == usual)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python collects between two steps of a program")
def test_no_garbage_is_collected_in_a_look_which_might_crash_the_program_or_stop_it():
    collecting, looks = [], []
    watched = StackSampler(lambda *_: looks.append(1))

    def note(phase, info):
        collecting.append((threading.get_ident(), sys._getframe(1).f_code.co_name))

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
    inside = {name for thread, name in collecting if thread == watched.looker.ident}
    assert inside
    assert not inside & {"stack_at", "stack_of", "_is_alone", "_waits"}


def test_the_program_collects_its_garbage_as_it_says_also_in_a_look_and_in_a_process_forked_then():
    pause, (before, *_) = Uncollected(), gc.get_threshold()
    with pause:
        assert gc.isenabled()  # the program may ask, and disable it
        pause.__exit__()  # in the child, after the fork
        assert gc.get_threshold()[0] == before
    with pause:
        gc.set_threshold(before + 1)  # by the program
    assert gc.get_threshold()[0] == before + 1
    gc.set_threshold(before)
