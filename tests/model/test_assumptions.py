"""Named sets of assumptions: what they hold, that they hold together, and how they are changed."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Hardware,
    InputError,
    Models,
    SingleNodeModel,
    UnknownNameError,
)
from tests.strategies import shares

FIELDS = [f.name for f in dataclasses.fields(TUTORIAL) if f.name not in ("name", "facts")]


def message(**changes):
    with pytest.raises(InputError) as caught:
        TUTORIAL.replace(**changes)
    return str(caught.value)


# ---- The two sets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("assumed", [TUTORIAL, PUBLISHED], ids=lambda a: a.name)
def test_every_assumption_says_where_it_comes_from(assumed):
    assert list(assumed.facts) == FIELDS
    for name, fact in assumed.facts.items():
        assert getattr(assumed, name) == fact.value
        is_word = name in ("phase", "macs_field", "link_rate", "transfer_dtype")
        assert is_word == isinstance(fact.value, str), name
        assert len(fact.note if fact.kind == "assumption" else fact.source) > 10


@pytest.mark.parametrize("assumed", [TUTORIAL, PUBLISHED], ids=lambda a: a.name)
def test_a_set_shows_itself_with_the_origin_of_each_value(assumed):
    for text in (repr(assumed), assumed._repr_html_()):
        assert assumed.name in text
        for name in FIELDS:
            assert name in text
    assert assumed.facts["sample_size"].origin in repr(assumed)


def test_the_tutorial_counts_a_forward_pass_of_4_1_gflop():
    a = TUTORIAL
    assert (a.phase, a.flop_per_mac, a.efficiency, a.measured_rates) == ("forward", 1, 0.5, False)
    assert (a.overhead_per_layer, a.overhead_per_step) == (Q_("0.1 ms"), Q_("0.015 ms"))
    assert (a.sample_size, a.worker_rate) == (Q_("500 KB"), Q_("250 MB/s"))
    assert a.scaling.speedup(1000) == 1000


def test_published_trains_an_a100_at_the_measured_2470_images_per_second():
    found = SingleNodeModel(PUBLISHED).solve(
        model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256
    )
    assert found.throughput.m_as("img/s") == pytest.approx(2470)


def test_published_counts_24_5_gflop_for_an_image():
    found = SingleNodeModel(PUBLISHED).solve(
        model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256
    )
    assert found.work.m_as("GFLOP") == pytest.approx(24.5, abs=0.05)


def test_published_takes_the_mean_image_of_imagenet():
    assert PUBLISHED.sample_size == Q_("114.66 KB")


def test_published_efficiency_is_the_measured_rate_seen_as_a_share_of_peak():
    assert pytest.approx(2470 * 24.53e9 / 312e12, abs=5e-4) == PUBLISHED.efficiency


@pytest.mark.parametrize(("workers", "rate"), [(1, 145.6), (8, 1090), (28, 2487)])
def test_the_published_worker_curve_goes_through_the_points_of_lotus(workers, rate):
    assert PUBLISHED.worker_rate.m_as("img/s") * PUBLISHED.scaling.speedup(workers, 16) == pytest.approx(
        rate, rel=3e-3
    )


# ---- How workers scale -------------------------------------------------------------------------------------

curves = st.builds(
    lambda c, k: TUTORIAL.replace(contention=c, coherency=k), shares, shares.map(lambda x: x / 100)
)


@given(curves, st.integers(1, 500))
def test_one_more_worker_never_slows_the_others_down(assumed, n):
    assert assumed.scaling.speedup(n + 1) >= assumed.scaling.speedup(n) * (1 - 1e-12)


@given(curves, st.integers(1, 500))
def test_n_workers_are_never_more_than_n_times_as_fast(assumed, n):
    assert assumed.scaling.speedup(1) == 1
    assert assumed.scaling.speedup(n) <= n * (1 + 1e-12)


@given(curves.filter(lambda a: a.coherency > 0))
def test_the_peak_is_where_the_scalability_law_is_highest(assumed):
    def law(n):
        return n / (1 + assumed.contention * (n - 1) + assumed.coherency * n * (n - 1))

    peak = assumed.scaling.peak_workers
    assert law(peak) == pytest.approx(max(law(n) for n in range(1, 2 * peak + 2)), rel=1e-12)


def test_linear_scaling_has_no_peak():
    assert TUTORIAL.scaling.peak_workers == inf
    assert TUTORIAL.replace(contention=0.1).scaling.peak_workers == inf


@given(curves, st.integers(1, 200))
def test_an_exact_speed_up_is_the_same_number(assumed, n):
    found = assumed.scaling.exactly().speedup(n)
    assert isinstance(found, Fraction | int)
    assert float(found) == pytest.approx(assumed.scaling.speedup(n))


def test_speed_ups_of_an_array_keep_its_shape():
    found = PUBLISHED.speedup(np.array([[1, 8], [28, 1000]]), 16)
    assert found.shape == (2, 2)
    assert found[1, 1] == PUBLISHED.speedup(32, 16)


# ---- Your own ----------------------------------------------------------------------------------------------


def test_a_changed_set_is_named_after_what_was_changed():
    assert (
        TUTORIAL.replace(flop_per_mac=2, sample_size="5 MB").name
        == "TUTORIAL but flop_per_mac=2, sample_size=5 MB"
    )
    assert TUTORIAL.replace(name="mine", flop_per_mac=2).name == "mine"


def test_a_changed_value_is_an_assumption_of_the_user_and_the_rest_keep_their_origin():
    mine = TUTORIAL.replace(sample_size="5 MB")
    assert mine.sample_size == Q_("5 MB")
    assert mine.facts["sample_size"].note == "given by the user"
    assert mine.facts["efficiency"] == TUTORIAL.facts["efficiency"]
    assert TUTORIAL.sample_size == Q_("500 KB")


def test_an_unknown_assumption_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownNameError) as caught:
        TUTORIAL.replace(speed=3)
    assert str(caught.value) == f"No assumption is called 'speed'. There is: {', '.join(FIELDS)}."


@pytest.mark.parametrize("roundtrip", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_assumptions_survive_copies_and_pickles(roundtrip):
    assert roundtrip(PUBLISHED) == PUBLISHED
    assert hash(roundtrip(PUBLISHED)) == hash(PUBLISHED)


# ---- Bad input ---------------------------------------------------------------------------------------------

SIGN = "Check the value and its sign."


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"phase": "train"},
            "phase must be one of forward, training, got 'train'. Pass one of these.",
        ),
        (
            {"link_rate": "peak"},
            "link_rate must be one of each_way, pinned_sustained, got 'peak'. Pass one of these.",
        ),
        (
            {"macs_field": "flops"},
            "macs_field must be one of macs_forward, macs_forward_rounded, got 'flops'. Pass one of these.",
        ),
        ({"measured_rates": "no"}, "measured_rates must be True or False, got 'no'. Pass one of these."),
        ({"efficiency": 50}, "efficiency must be a share up to 1, got 50. Write 0.5 for 50 %."),
        ({"efficiency": 0}, f"efficiency must be finite and positive, got 0. {SIGN}"),
        (
            {"efficiency": "0.5"},
            "efficiency must be a number, got '0.5'. Pass a number or an array of numbers.",
        ),
        ({"contention": 1.5}, "contention must be a share up to 1, got 1.5. Write 0.5 for 50 %."),
        ({"contention": -0.1}, f"contention must be finite and not negative, got -0.1. {SIGN}"),
        ({"coherency": float("nan")}, f"coherency must be finite and not negative, got nan. {SIGN}"),
        ({"forward_activation": 2}, "forward_activation must be a share up to 1, got 2. Write 0.5 for 50 %."),
        ({"activation_traffic": -1}, f"activation_traffic must be finite and not negative, got -1. {SIGN}"),
        ({"flop_per_mac": 0}, f"flop_per_mac must be finite and positive, got 0. {SIGN}"),
        ({"training_factor": inf}, f"training_factor must be finite and positive, got inf. {SIGN}"),
        ({"state_bytes": -16}, f"state_bytes must be finite and positive, got -16. {SIGN}"),
        (
            {"requests_in_flight": 0.5},
            "requests_in_flight must be 1 or more, got 0.5. Pass 1 for one by one.",
        ),
        ({"requests_in_flight": -1}, f"requests_in_flight must be finite and positive, got -1. {SIGN}"),
        (
            {"overhead_per_layer": 0.1},
            'overhead_per_layer needs a unit, got the bare float 0.1. Write for example Q_(0.1, "ms").',
        ),
        (
            {"overhead_per_step": "-1 ms"},
            f"overhead_per_step must be finite and not negative, got -1 ms. {SIGN}",
        ),
        ({"sample_size": "5 ms"}, "sample_size must be convertible to KB, got 5 ms. Check what it counts."),
        ({"sample_size": "0 KB"}, f"sample_size must be finite and positive, got 0 KB. {SIGN}"),
        (
            {"worker_rate": 250},
            'worker_rate must be a rate in samples or in bytes, got 250. Write for example Q_("100 img/s") '
            'or Q_("250 MB/s").',
        ),
        ({"worker_rate": "-250 MB/s"}, f"worker_rate must be finite and positive, got -250 MB/s. {SIGN}"),
    ],
)
def test_an_assumption_that_cannot_be_meant_is_refused(changes, expected):
    assert message(**changes) == expected


def test_latency_may_be_hidden_completely():
    assert TUTORIAL.replace(requests_in_flight=inf).requests_in_flight == inf
