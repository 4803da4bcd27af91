"""A measured rate carried to another accelerator: arithmetic and memory traffic, one after the other."""

import pytest
from hypothesis import given

from starvelab import Hardware, InputError, MissingValueError, Models
from starvelab.model.analysis import extrapolate_rate
from tests.rejected import bare, message, no_entry
from tests.strategies import quantities

A100, H100, RESNET50 = Hardware.Cloud.A100, Hardware.Cloud.H100, Models.ResNet50


def carried(rate, to=H100, measured_on=A100, model=RESNET50):
    return extrapolate_rate(rate, model=model, measured_on=measured_on, to=to).m_as("img/s")


@given(quantities(1, 10_000, "img/s"))
def test_a_rate_grows_no_more_than_arithmetic_and_no_less_than_memory_does_and_back_is_the_first(rate):
    number = rate.m_as("img/s")
    assert carried(rate, to=A100) == pytest.approx(number)
    assert 3350 / 2039 - 1e-9 <= carried(rate) / number <= 794.5 / 271.2 + 1e-9
    there = extrapolate_rate(rate, model=RESNET50, measured_on=A100, to=H100)
    assert carried(there, to=A100, measured_on=H100) == pytest.approx(number)


def test_nearly_all_memory_traffic_grows_as_the_memory_does_and_lambdas_a100_makes_an_h100_of_2773():
    assert carried("1 img/s") == pytest.approx(3350 / 2039, rel=1e-3)
    assert carried("1582 img/s") == pytest.approx(2773, abs=0.5)


def test_an_accelerator_of_which_no_matrix_product_was_measured_is_refused():
    said = message(MissingValueError, carried, "100 img/s", to=Hardware.Cloud.T4)
    assert said.startswith("NVIDIA T4 lists no matmul_bf16_sustained")


@pytest.mark.parametrize(("arguments", "expected"), [
    (
        {"rate": "20000 img/s"},
        "rate must leave time for memory traffic, got 20000 img/s: the arithmetic alone allows 11050 "
        "img/s on NVIDIA A100 80GB SXM. Check what it counts.",
    ),
    bare("img/s", rate=1582),
    no_entry("Hardware.Cloud.A100", to="H100"),
    ({"model": H100},
     "model must be an entry of Models, got Hardware.Cloud.H100. Pass for example Models.ResNet50."),
])  # fmt: skip
def test_bad_input_is_refused(arguments, expected):
    assert message(InputError, carried, **{"rate": "1582 img/s", **arguments}) == expected
