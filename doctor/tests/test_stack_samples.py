"""Samples of a stack say at which line a thread is, also while it keeps Python's lock."""

import os
import sys
import threading
import time

import pytest

from starvelab_doctor.watching.stack_samples import StackSampler

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
    assert sys.getswitchinterval() == 2 * usual
    sys.setswitchinterval(usual)
