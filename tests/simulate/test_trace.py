"""A trace counts what happened, however it was recorded."""

import numpy as np
import pytest

from starvelab import Q_, InputError
from starvelab.simulate import Trace
from tests.rejected import message, not_positive

# Batch 1 is finished first and waits for batch 0.
FIELDS = {
    "batch": [0, 1, 2],
    "worker": [0, 1, 0],
    "prepare_start": [0, 0, 30],
    "prepared": [30, 10, 50],
    "received": [30, 35, 60],
    "copy_start": [30, 35, 60],
    "copied": [32, 37, 62],
    "step_start": [32, 42, 62],
    "step_end": [42, 52, 80],
    "batch_size": 8,
}
TRACE = Trace(**FIELDS)


def test_busy_is_the_sum_of_the_steps():
    assert TRACE.utilization == pytest.approx((10 + 10 + 18) / 80)
    assert TRACE.stall == pytest.approx(42 / 80)
    assert TRACE.step_time.m_as("ms") == pytest.approx(38 / 3)
    assert TRACE.period == Q_(80 / 3, "ms")
    assert TRACE.throughput.m_as("img/s") == pytest.approx(24 / 0.080)
    assert (TRACE.batch.dtype, TRACE.received.dtype) == (np.int64, float)
    assert repr(Trace(**FIELDS, source="measured")) == (
        "3 batches of 8, measured: the GPU is busy 47.5 %, 300 img/s"
    )


@pytest.mark.parametrize(("in_turn", "depths"), [
    (False, [(10, 1), (30, 1), (35, 0), (50, 1), (60, 0)]),
    # One that an earlier batch holds back is not next in turn.
    (True, [(30, 1), (35, 0), (50, 1), (60, 0)]),
])  # fmt: skip
def test_finished_batches_wait_in_the_queue(in_turn, depths):
    assert list(zip(*TRACE.queue_depth(in_turn=in_turn), strict=True)) == depths


def test_a_run_is_cut_at_a_batch_and_its_clock_starts_with_what_is_left():
    trace = Trace(**FIELDS, read_start=[0, 5, 30], read_done=[5, 8, 35])
    begun, rest = trace.first(2), trace.after(1)
    assert (list(begun.step_end), list(begun.read_done), len(trace.first(99))) == ([42, 52], [5, 8], 3)
    assert (list(rest.batch), list(rest.step_start), list(rest.prepared)) == ([1, 2], [0, 20], [-32, 8])
    assert list(rest.read_start) == [5 - 42, 30 - 42]
    assert rest.utilization == pytest.approx(28 / 38)
    assert (rest.batch_size, rest.source, len(TRACE.after(2))) == (8, "simulated", 1)


def test_something_must_be_left_of_a_run():
    assert (
        message(InputError, TRACE.after, 3) == "A trace of 3 batches has none left after 3. Skip at most 2."
    )
    assert message(InputError, TRACE.after, 0) == not_positive(batches=0)[1]
