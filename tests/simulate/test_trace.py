"""A trace counts what happened, however it was recorded."""

from __future__ import annotations

import numpy as np
import pytest

from starvelab import Q_, InputError
from starvelab.simulate import Trace

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


def refused(**fields):
    with pytest.raises(InputError) as caught:
        Trace(**{**FIELDS, **fields})
    return str(caught.value)


def test_busy_is_the_sum_of_the_steps():
    assert TRACE.utilization == pytest.approx((10 + 10 + 18) / 80)
    assert TRACE.stall == pytest.approx(42 / 80)
    assert TRACE.step_time.m_as("ms") == pytest.approx(38 / 3)
    assert TRACE.period == Q_(80 / 3, "ms")
    assert TRACE.throughput.m_as("img/s") == pytest.approx(24 / 0.080)
    assert len(TRACE) == 3


def test_finished_batches_wait_in_the_queue():
    times, depths = TRACE.queue_depth()
    assert list(zip(times, depths, strict=True)) == [(10, 1), (30, 1), (35, 0), (50, 1), (60, 0)]


def test_one_that_an_earlier_batch_holds_back_is_not_next_in_turn():
    times, depths = TRACE.queue_depth(in_turn=True)
    assert list(zip(times, depths, strict=True)) == [(30, 1), (35, 0), (50, 1), (60, 0)]


def test_a_run_without_its_first_batch_starts_at_the_end_of_that_batch():
    rest = TRACE.after(1)
    assert list(rest.batch) == [1, 2]
    assert list(rest.step_start) == [0, 20]
    assert list(rest.prepared) == [-32, 8]
    assert rest.utilization == pytest.approx(28 / 38)
    assert (rest.batch_size, rest.source) == (8, "simulated")


def test_a_run_up_to_a_batch_keeps_its_clock():
    assert list(TRACE.first(2).step_end) == [42, 52]
    assert len(TRACE.first(99)) == 3


def test_reads_stay_beside_their_batches():
    trace = Trace(**FIELDS, read_start=[0, 5, 30], read_done=[5, 8, 35])
    assert list(trace.first(2).read_done) == [5, 8]
    assert list(trace.after(1).read_start) == [5 - 42, 30 - 42]
    assert trace.headers[-2:] == ("read start", "read done")
    assert "read start" not in TRACE.headers


def test_it_says_in_one_line_how_busy_the_accelerator_was():
    assert repr(Trace(**FIELDS, source="measured")) == (
        "3 batches of 8, measured: the accelerator is busy 47.5 %, 300 img/s"
    )


def test_columns_become_arrays_of_numbers():
    assert TRACE.batch.dtype == np.int64
    assert TRACE.received.dtype == float


def test_a_trace_with_a_missing_time_is_refused():
    assert refused(received=[1, 2]) == (
        "A trace has one received for each of its batches, got shape (2,) for 3 batches. "
        "Pass lists of one length."
    )
    assert refused(step_end=[42, np.nan, 80]) == (
        "Times of a trace must be finite, got step_end with a gap. Leave that batch out."
    )


def test_a_trace_of_nothing_is_refused():
    empty = {name: [] for name in FIELDS if name != "batch_size"}
    assert refused(**empty).startswith("A trace has one batch for each of its batches, got shape (0,)")


def test_a_clock_that_never_ran_is_refused():
    assert refused(step_end=[-3, -2, 0]) == (
        "A trace ends after its start, got a last step_end of 0 ms. "
        "Count the times from the start of the run."
    )


def test_a_source_is_one_of_two():
    assert refused(source="guessed") == (
        "source must be one of simulated, measured, got 'guessed'. Pass one of these."
    )


def test_a_batch_has_a_size():
    assert refused(batch_size=0).startswith("batch_size must be finite and positive, got 0.")


def test_something_must_be_left_of_a_run():
    with pytest.raises(InputError) as caught:
        TRACE.after(3)
    assert str(caught.value) == ("A trace of 3 batches has none left after 3. Skip at most 2.")
    with pytest.raises(InputError, match="batches must be finite and positive, got 0"):
        TRACE.after(0)
