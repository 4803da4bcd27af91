"""A loader reads its fields, refuses what it cannot mean, and knows what means allow."""

from __future__ import annotations

from math import inf

import pytest

from starvelab import Q_, InputError, UnknownNameError
from starvelab.simulate import Loader

SLOW = Loader(step_time="20 ms", prepare_time="50 ms")
TIMES = [
    "step_time", "prepare_time", "copy_time", "handover_time", "fetch_time", "start_up", "read_time",
    "read_wait", "straggler_time",
]  # fmt: skip


def refused(**fields):
    with pytest.raises(InputError) as caught:
        SLOW.replace(**fields)
    return str(caught.value)


def test_text_is_read_as_a_quantity():
    assert SLOW.step_time == Q_("20 ms")
    assert Loader(step_time="0.02 s", prepare_time=Q_(50, "ms")).ms("step_time") == 20


@pytest.mark.parametrize("name", TIMES)
def test_a_time_needs_a_unit_a_sign_and_one_value(name):
    assert refused(**{name: 20}) == (
        f'{name} needs a unit, got the bare int 20. Write for example Q_(20, "ms").'
    )
    assert refused(**{name: "3 GB"}).startswith(f"{name} must be convertible to ms, got 3 GB.")
    assert refused(**{name: "-1 ms"}).startswith(f"{name} must be finite and ")
    assert refused(**{name: Q_([1, 2], "ms")}) == (
        f"A loader has one {name}, got an array. Make one for each value with loader.replace({name}=...)."
    )


@pytest.mark.parametrize("name", TIMES)
def test_every_time_but_the_step_may_be_nothing(name):
    if name == "step_time":
        assert refused(step_time="0 ms") == (
            "step_time must be finite and positive, got 0 ms. Check the value and its sign."
        )
    else:
        assert SLOW.replace(**{name: "0 ms"}).ms(name) == 0


@pytest.mark.parametrize("name", ["batch_size", "workers", "prefetch", "in_flight"])
def test_a_count_is_one_whole_number(name):
    assert refused(**{name: 2.5}) == (
        f"{name} must be a whole number, got 2.5. Round it to the one you mean."
    )
    assert refused(**{name: -1}).startswith(f"{name} must be finite and positive, got -1.")
    assert refused(**{name: "two"}) == (f"{name} must be a whole number, got 'two'. Pass an int such as 256.")
    assert refused(**{name: True}).startswith(f"{name} must be a whole number, got True.")
    assert refused(**{name: [1, 2]}).startswith(f"A loader has one {name}, got an array.")


@pytest.mark.parametrize("name", ["batch_size", "prefetch", "in_flight"])
def test_only_workers_may_be_none_at_all(name):
    assert refused(**{name: 0}).startswith(f"{name} must be finite and positive, got 0.")
    assert SLOW.replace(workers=0).workers == 0


def test_there_is_no_such_thing_as_false_workers():
    assert refused(workers=False).startswith("workers must be a whole number, got False.")


def test_any_number_of_steps_may_be_in_flight():
    assert SLOW.replace(in_flight=inf).in_flight == inf


@pytest.mark.parametrize("name", ["in_order", "copy_overlaps"])
def test_a_switch_is_true_or_false(name):
    assert refused(**{name: "no"}) == f"{name} must be True or False, got 'no'. Pass one of these."


@pytest.mark.parametrize("name", ["jitter", "straggler_share"])
def test_a_share_is_a_plain_number_from_0_on(name):
    assert refused(**{name: -0.1}).startswith(f"{name} must be finite and not negative, got -0.1.")
    assert refused(**{name: "1 %"}).startswith(f"{name} must be a number, got '1 %'.")
    assert refused(**{name: [0.1]}).startswith(f"A loader has one {name}, got an array.")


def test_no_more_than_all_samples_straggle():
    assert refused(straggler_share=1.5) == (
        "straggler_share must be a share up to 1, got 1.5. Write 0.5 for 50 %."
    )


def test_cores_may_be_a_share_of_one_and_not_none_at_all():
    assert SLOW.replace(cores=1.5).stretch == pytest.approx(2 / 1.5)
    assert refused(cores=0).startswith("cores must be finite and positive, got 0.")


def test_fewer_workers_than_cores_are_not_slowed_down():
    assert SLOW.replace(cores=8).stretch == 1
    assert SLOW.replace(cores=8, workers=0).stretch == 1


def test_a_wrong_name_is_corrected():
    with pytest.raises(UnknownNameError) as caught:
        SLOW.replace(worker=3)
    assert str(caught.value) == "A loader has no field 'worker'. Did you mean workers?"
    with pytest.raises(UnknownNameError, match=r"'paint'[.] There is: step_time, prepare_time, batch_size, "):
        SLOW.replace(paint="red")


def test_it_shows_what_was_given():
    assert repr(SLOW) == 'Loader(step_time="20 ms", prepare_time="50 ms")'
    assert repr(SLOW.replace(workers=4, in_order=False, copy_time="1 ms")) == (
        'Loader(step_time="20 ms", prepare_time="50 ms", workers=4, in_order=False, copy_time="1 ms")'
    )


@pytest.mark.parametrize(
    ("changes", "period"),
    [
        ({"workers": 8}, 20),  # the step
        ({"workers": 8, "copy_time": "5 ms", "copy_overlaps": False}, 25),  # the step and the copy in turn
        ({"workers": 8, "copy_time": "30 ms"}, 30),  # the copy
        ({"workers": 8, "fetch_time": "40 ms"}, 40),  # receiving
        ({}, 25),  # 50 ms over two workers
        ({"read_wait": "30 ms"}, 40),  # and what they sleep
        ({"straggler_share": 0.01, "straggler_time": "100 ms"}, 41),  # 32 samples: 32 ms more
        ({"workers": 8, "cores": 2}, 25),  # the cores
        ({"workers": 8, "read_time": "35 ms"}, 35),  # the storage
        ({"workers": 8, "read_time": "70 ms", "cached_fraction": 0.5}, 35),  # what memory does not serve
        ({"read_wait": "60 ms", "cached_fraction": 0.5}, 40),
        ({"handover_time": "150 ms"}, 50),  # the way of a batch, four under way
        (
            {"workers": 8, "in_flight": 1, "copy_time": "3 ms", "fetch_time": "2 ms"},
            25,
        ),  # each step waited for
        ({"workers": 0}, 50),
        ({"workers": 0, "in_flight": 1}, 70),
        ({"workers": 0, "in_flight": inf, "prepare_time": "5 ms"}, 20),
    ],
)
def test_means_allow_what_the_slowest_part_does(changes, period):
    loader = SLOW.replace(**changes)
    assert loader.mean_rate.m_as("img/s") == pytest.approx(32_000 / period)
    assert loader.mean_utilization == pytest.approx(20 / period)
