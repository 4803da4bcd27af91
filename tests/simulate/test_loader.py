"""A loader reads its fields, refuses what it cannot mean, and knows what means allow."""

from __future__ import annotations

from math import inf

import pytest

from starvelab import Q_, InputError, UnknownNameError
from starvelab.simulate import Loader
from tests.rejected import bare, message, negative, no_share, not_positive, not_whole, other_dimension

SLOW = Loader(step_time="20 ms", prepare_time="50 ms")
TIMES = [
    "step_time", "prepare_time", "copy_time", "handover_time", "fetch_time", "start_up", "read_time",
    "read_wait", "straggler_time",
]  # fmt: skip


ARRAY = "A loader has one {0}, got an array. Make one for each value with loader.replace({0}=...)."
SHARES = ["jitter", "straggler_share"]
COUNTS = ["batch_size", "workers", "prefetch", "in_flight"]


def test_text_is_read_as_a_quantity():
    assert SLOW.step_time == Q_("20 ms")
    assert Loader(step_time="0.02 s", prepare_time=Q_(50, "ms")).ms("step_time") == 20


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        *(bare("ms", **{name: 20}) for name in TIMES),
        *(other_dimension("ms", **{name: "3 GB"}) for name in TIMES),
        *(not_positive(step_time=value) for value in ("-1 ms", "0 ms")),
        *(negative(**{name: "-1 ms"}) for name in TIMES[1:]),
        *(({name: Q_([1, 2], "ms")}, ARRAY.format(name)) for name in TIMES),
        *(not_whole(**{name: value}) for name in COUNTS for value in (2.5, "two", True)),
        *(not_positive(**{name: -1}) for name in COUNTS),
        *(not_positive(**{name: 0}) for name in ("batch_size", "prefetch", "in_flight", "cores")),
        *(({name: [1, 2]}, ARRAY.format(name)) for name in COUNTS),
        not_whole(workers=False),
        *(
            ({name: "no"}, f"{name} must be True or False, got 'no'. Pass one of these.")
            for name in ("in_order", "copy_overlaps")
        ),
        *(negative(**{name: -0.1}) for name in SHARES),
        *(
            ({name: "1 %"}, f"{name} must be a number, got '1 %'. Pass a number or an array of numbers.")
            for name in SHARES
        ),
        *(({name: [0.1]}, ARRAY.format(name)) for name in SHARES),
        no_share(straggler_share=1.5),
    ],
)
def test_what_a_loader_cannot_mean_is_refused(arguments, expected):
    assert message(InputError, SLOW.replace, **arguments) == expected


def test_nothing_and_no_limit_are_values_where_they_mean_something():
    for name in TIMES[1:]:
        assert SLOW.replace(**{name: "0 ms"}).ms(name) == 0
    assert SLOW.replace(workers=0).workers == 0
    assert SLOW.replace(in_flight=inf).in_flight == inf
    assert SLOW.replace(cores=1.5).stretch == pytest.approx(2 / 1.5)


def test_fewer_workers_than_cores_are_not_slowed_down():
    assert SLOW.replace(cores=8).stretch == 1
    assert SLOW.replace(cores=8, workers=0).stretch == 1


def test_a_wrong_name_is_corrected():
    assert message(UnknownNameError, SLOW.replace, worker=3) == (
        "A loader has no field 'worker'. Did you mean workers?"
    )
    said = message(UnknownNameError, SLOW.replace, paint="red")
    assert "'paint'. There is: step_time, prepare_time, batch_size, " in said


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
