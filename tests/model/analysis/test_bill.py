"""Money and energy of an hour and of an epoch, and how much of it is waiting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    Accelerator,
    Datasets,
    Hardware,
    InputError,
    MissingValueError,
    Pipeline,
)
from tests.cases import KITS, WALL
from tests.rejected import bare, message, negative, not_whole, other_dimension
from tests.strategies import pipelines

EIGHTEEN = Pipeline(hardware=Accelerator(Hardware.Cloud.A100, rate="1000 img/s"), workers="180 img/s")
HALF = EIGHTEEN.replace(hardware=Hardware.Cloud.H100, workers="500 img/s")
EXACT = {"price": "2 USD/h"}


def test_power_is_that_of_the_board_while_it_computes_and_less_while_it_waits():
    found = EIGHTEEN.bill(price="2 USD/h")
    assert found.hour.money == Q_("2 USD")
    assert found.hour_waiting.money.m_as("USD") == pytest.approx(1.64)
    # (700 W + 121.7 W) / 2; an epoch of 500 samples a second for 3600 s.
    found = HALF.bill(samples=1_800_000, **EXACT)
    assert found.power.m_as("W") == pytest.approx(410.85)
    assert found.epoch_time.m_as("h") == pytest.approx(1)
    for time, energy in (
        (found.hour, 410.85),
        (found.epoch, 410.85),
        (found.hour_waiting, 60.85),
        (found.epoch_waiting, 60.85),
    ):
        assert time.energy.m_as("Wh") == pytest.approx(energy)
    assert found.epoch.money.m_as("USD") == pytest.approx(2)
    assert found.epoch_waiting.money.m_as("USD") == pytest.approx(1)


def test_the_epoch_is_that_of_the_data_set():
    pipe = WALL.replace(dataset=Datasets.ImageNet)
    assert pipe.bill(**EXACT).epoch_time == pipe.bill(samples=1_281_167, **EXACT).epoch_time
    # 3D U-Net comes with KiTS19, of which 168 volumes are for training.
    assert KITS.bill(price="2 USD/h").epoch_time.m_as("s") == pytest.approx(
        168 / KITS.solve().throughput.m_as("img/s")
    )


@given(pipelines(), st.integers(1, 10**7))
def test_what_is_not_wasted_in_an_epoch_is_what_an_accelerator_that_never_waits_takes(pipe, samples):
    found = pipe.bill(price="2 USD/h", busy_power="400 W", waiting_power="80 W", samples=samples)
    # All accelerators together share the samples.
    own = pipe.batch_size * pipe.hardware.count / (found.step.step_time / found.step.slowdown).m_as("s")
    hours = samples / own / 3600 * pipe.hardware.count
    useful = found.epoch.money - found.epoch_waiting.money
    assert useful.m_as("USD") == pytest.approx(2 * hours, rel=1e-6)
    useful = found.epoch.energy - found.epoch_waiting.energy
    assert useful.m_as("Wh") == pytest.approx(400 * hours, rel=1e-6)


def test_several_points_have_a_bill_each():
    batches = [1, 16, 256]
    swept = WALL.replace(batch_size=np.array(batches)).bill(price="2 USD/h", samples=10**6)
    alone = [WALL.replace(batch_size=batch).bill(price="2 USD/h", samples=10**6) for batch in batches]
    for time in ("hour_waiting", "epoch", "epoch_waiting"):
        for name in ("money", "energy"):
            values = [getattr(getattr(one, time), name).magnitude for one in alone]
            assert getattr(getattr(swept, time), name).magnitude == pytest.approx(values)
    assert swept.summary == "3 bills, an array of shape (3,)"


def test_an_accelerator_without_a_power_has_money_and_says_what_to_pass():
    found = WALL.replace(hardware=Hardware.Cloud.H200).bill(price="3.5 USD/h", samples=1000)
    assert found.hour.money == Q_("3.5 USD")
    assert (found.power, found.hour.energy, found.epoch_waiting.energy) == (None, None, None)
    assert found.notes[-1] == (
        "Energy is missing: NVIDIA H200 141GB SXM lists no waiting_power. "
        'Pass for example waiting_power="80 W".'
    )
    complete = WALL.replace(hardware=Hardware.Cloud.H200).bill(samples=1000, waiting_power="80 W")
    assert complete.epoch_waiting.energy.m_as("Wh") > 0


def test_a_bill_without_a_price_has_energy_and_says_what_to_pass():
    found = WALL.replace(hardware=Hardware.Cloud.T4).bill(busy_power="70 W", waiting_power="20 W")
    assert (found.price, found.hour.money) == (None, None)
    assert found.hour.energy is not None
    assert [row[0] for row in found.rows] == ["energy"]
    assert found.notes[0] == 'Money is missing: a bill knows no prices. Pass for example price="2 USD/h".'


def test_an_unknown_data_set_leaves_the_epoch_out_and_says_what_to_pass():
    found = WALL.bill(**EXACT)
    assert (found.epoch_time, found.epoch.money, found.epoch_waiting.energy) == (None, None, None)
    assert found.note == (
        "The epoch is missing: the pipeline names no data set of a known size. "
        "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline."
    )


def test_a_step_that_cannot_run_says_so_first():
    pipe = WALL.replace(batch_size=100_000, assumptions=PUBLISHED)
    assert pipe.bill(**EXACT).notes[0] == pipe.solve().infeasible_reason != ""


NOTHING = (
    "A bill needs a price, or what a GPU draws while it is busy and while it waits, got no price, "
    "and {} lists no busy_power and no waiting_power. Pass for example "
    'busy_power="400 W", waiting_power="80 W". '
    'Or pass price="2 USD/h".'
)


@pytest.mark.parametrize(("error", "pipeline", "arguments", "expected"), [
    (MissingValueError, WALL.replace(hardware=Hardware.Cloud.T4), {}, NOTHING.format("NVIDIA T4")),
    (MissingValueError, Pipeline(hardware="1 img/s"), {}, NOTHING.format("a pipeline without hardware")),
    (InputError, WALL, *bare("USD/h", price=2)),
    (InputError, WALL, *negative(price="-2 USD/h")),
    (InputError, WALL, *other_dimension("W", busy_power="400 Wh")),
    (InputError, WALL, *not_whole(samples=1.5)),
    (InputError, WALL, {"waiting_power": "80"},
     "A quantity needs a unit, got '80'. Write for example Q_(\"500 KB\")."),
])  # fmt: skip
def test_what_says_too_little_is_rejected(error, pipeline, arguments, expected):
    assert message(error, Pipeline.bill, pipeline, **arguments) == expected


def test_a_bill_is_as_uncertain_as_its_utilization():
    measured = WALL.replace(assumptions=PUBLISHED)
    low, high = measured.solve().ranges.utilization
    said = f"busy 44.1 % (80 % range {100 * low:.1f} % to {100 * high:.1f} %) of each step"
    assert said in measured.bill(price="2 USD/h").summary
    assert "range" not in WALL.bill(price="2 USD/h").summary
