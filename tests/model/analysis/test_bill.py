"""The money of an hour and of an epoch, and how much of it is waiting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import PUBLISHED, Q_, Accelerator, Datasets, Hardware, InputError, Pipeline
from tests.cases import KITS, WALL
from tests.rejected import bare, message, negative, not_whole
from tests.strategies import pipelines

HALF = Pipeline(hardware=Accelerator(Hardware.Cloud.H100, rate="1000 img/s"), workers="500 img/s")
PRICE = {"price": "2 USD/h"}


def test_an_hour_is_paid_for_in_full_and_an_epoch_as_long_as_it_takes():
    # An epoch of 500 samples a second for 3600 s.
    found = HALF.bill(samples=1_800_000, **PRICE)
    assert (found.hour, found.hour_waiting) == (Q_("2 USD"), Q_("1 USD"))
    assert found.epoch_time.m_as("h") == pytest.approx(1)
    assert found.epoch.m_as("USD") == pytest.approx(2)
    assert found.epoch_waiting.m_as("USD") == pytest.approx(1)


def test_the_epoch_is_that_of_the_data_set():
    pipe = WALL.replace(dataset=Datasets.ImageNet)
    assert pipe.bill(**PRICE).epoch_time == pipe.bill(samples=1_281_167, **PRICE).epoch_time
    # 3D U-Net comes with KiTS19, of which 168 volumes are for training.
    seconds = 168 / KITS.solve().throughput.m_as("img/s")
    assert KITS.bill(**PRICE).epoch_time.m_as("s") == pytest.approx(seconds)


@given(pipelines(), st.integers(1, 10**7))
def test_what_is_not_wasted_in_an_epoch_is_what_an_accelerator_that_never_waits_takes(pipe, samples):
    found = pipe.bill(samples=samples, **PRICE)
    # All accelerators together share the samples.
    own = pipe.batch_size * pipe.hardware.count / (found.step.step_time / found.step.slowdown).m_as("s")
    hours = samples / own / 3600 * pipe.hardware.count
    assert (found.epoch - found.epoch_waiting).m_as("USD") == pytest.approx(2 * hours, rel=1e-6)


def test_several_points_have_a_bill_each():
    batches = [1, 16, 256]
    swept = WALL.replace(batch_size=np.array(batches)).bill(samples=10**6, **PRICE)
    alone = [WALL.replace(batch_size=batch).bill(samples=10**6, **PRICE) for batch in batches]
    for name in ("hour_waiting", "epoch", "epoch_waiting"):
        assert getattr(swept, name).magnitude == pytest.approx([getattr(b, name).magnitude for b in alone])
    assert swept.summary == "3 bills, an array of shape (3,)"


def test_an_unknown_data_set_leaves_the_epoch_out_and_says_what_to_pass():
    found = WALL.bill(**PRICE)
    assert (found.epoch_time, found.epoch, found.epoch_waiting) == (None, None, None)
    assert found.note == (
        "The epoch is missing: the pipeline names no data set of a known size. "
        "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline."
    )


def test_a_step_that_cannot_run_says_so_first():
    pipe = WALL.replace(batch_size=100_000, assumptions=PUBLISHED)
    assert pipe.solve().infeasible_reason != ""
    assert pipe.bill(**PRICE).note.startswith(pipe.solve().infeasible_reason)


@pytest.mark.parametrize(("arguments", "expected"), [
    ({}, "bill() takes price, samples, but missing a required argument: 'price'. Pass each by its name."),
    bare("USD/h", price=2),
    negative(price="-2 USD/h"),
    ({**PRICE, **not_whole(samples=1.5)[0]}, not_whole(samples=1.5)[1]),
    ({"price": "1,5 USD/h"},
     "A quantity must be a number without a comma, got '1,5 USD/h'. Write a point before decimals, and "
     "thousands without a separator."),
])  # fmt: skip
def test_what_says_too_little_is_rejected(arguments, expected):
    assert message(InputError, WALL.bill, **arguments) == expected


def test_a_bill_is_as_uncertain_as_its_utilization():
    measured = WALL.replace(assumptions=PUBLISHED)
    low, high = measured.solve().ranges.utilization
    said = f"busy 44.1 % (80 % range {100 * low:.1f} % to {100 * high:.1f} %) of each step"
    assert said in measured.bill(**PRICE).summary
    assert "range" not in WALL.bill(**PRICE).summary
