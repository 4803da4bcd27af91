"""Named sets of assumptions: what they hold, that they hold together, and how they are changed."""

import dataclasses
import inspect
import pydoc
from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import PUBLISHED, Q_, TUTORIAL, InputError, Pipeline, UnknownNameError
from tests.rejected import bare, message, negative, no_rate, no_share, none_of, not_positive, other_dimension
from tests.strategies import shares

BOTH = pytest.mark.parametrize("assumed", [TUTORIAL, PUBLISHED], ids=lambda a: a.name)
FIELDS = [f.name for f in dataclasses.fields(TUTORIAL) if f.name not in ("name", "facts")]


@BOTH
def test_every_assumption_says_where_it_comes_from(assumed):
    assert list(assumed.facts) == FIELDS
    for name, fact in assumed.facts.items():
        assert getattr(assumed, name) == fact.value
        is_word = name in ("phase", "macs_field", "link_rate", "transfer_dtype")
        assert is_word == isinstance(fact.value, str), name
        assert len(fact.note if fact.kind == "assumption" else fact.source) > 10


@BOTH
def test_a_set_shows_itself_with_the_origin_of_each_value(assumed):
    # A browser may break a long name behind an underscore.
    for text in (str(assumed), assumed._repr_html_().replace("<wbr>", "")):
        assert all(name in text for name in (assumed.name, *FIELDS))
    assert assumed.facts["sample_size"].origin in str(assumed)


def test_help_shows_a_named_set_by_its_name():
    assert str(inspect.signature(Pipeline)).endswith(
        "assumptions: 'Assumptions' = TUTORIAL, **unknown: 'Never') -> 'None'"
    )
    first = pydoc.render_doc(Pipeline, renderer=pydoc.plaintext).split("An input pipeline in front")[0]
    assert len(first.splitlines()) <= 6


curves = st.builds(
    lambda c, k: TUTORIAL.replace(contention=c, coherency=k), shares, shares.map(lambda x: x / 100)
)


@given(curves, st.integers(1, 500))
def test_a_speed_up_may_be_asked_for_in_exact_fractions(assumed, n):
    assert assumed.speedup(1) == 1
    exactly = assumed.scaling.exactly().speedup(n)
    assert isinstance(exactly, Fraction | int)
    assert float(exactly) == pytest.approx(assumed.speedup(n))


@given(curves.filter(lambda a: a.coherency > 0))
def test_the_peak_is_where_the_scalability_law_is_highest(assumed):
    def law(n):
        return n / (1 + assumed.contention * (n - 1) + assumed.coherency * n * (n - 1))

    peak = assumed.scaling.peak_workers
    assert law(peak) == pytest.approx(max(law(n) for n in range(1, 2 * peak + 2)), rel=1e-12)


def test_without_coherency_there_is_no_peak():
    assert TUTORIAL.scaling.peak_workers == TUTORIAL.replace(contention=0.1).scaling.peak_workers == inf


def test_a_changed_set_says_what_was_changed_and_the_rest_keep_their_origin():
    mine = TUTORIAL.replace(flop_per_mac=2, sample_size="5 MB")
    assert mine.name == "TUTORIAL but flop_per_mac=2, sample_size=5 MB"
    assert mine.replace(name="mine").name == "mine"
    assert mine.sample_size == Q_("5 MB")
    assert mine.facts["sample_size"].note == "given by the user"
    assert mine.facts["efficiency"] == TUTORIAL.facts["efficiency"]
    assert TUTORIAL.sample_size == Q_("500 KB")


def test_an_unknown_assumption_is_refused_with_those_that_there_are():
    expected = f"No assumption is called 'speed'. There is: {', '.join(FIELDS)}."
    assert message(UnknownNameError, TUTORIAL.replace, speed=3) == expected


@pytest.mark.parametrize(("changes", "expected"), [
    none_of("forward, training", phase="train"),
    none_of("each_way, pinned_sustained", link_rate="peak"),
    none_of("macs_forward, macs_forward_rounded", macs_field="flops"),
    ({"measured_rates": "no"}, "measured_rates must be True or False, got 'no'. Pass one of these."),
    no_share(efficiency=50),
    not_positive(efficiency=0),
    ({"efficiency": "0.5"}, "efficiency must be a number, got '0.5'. Pass a number or an array of numbers."),
    no_share(contention=1.5),
    negative(contention=-0.1),
    negative(coherency=float("nan")),
    no_share(forward_activation=2),
    negative(activation_traffic=-1),
    not_positive(flop_per_mac=0),
    not_positive(training_factor=inf),
    not_positive(state_bytes=-16),
    ({"open_requests": 0.5}, "open_requests must be 1 or more, got 0.5. Pass 1 or more."),
    not_positive(open_requests=-1),
    bare("ms", overhead_per_layer=0.1),
    negative(overhead_per_step="-1 ms"),
    other_dimension("KB", sample_size="5 ms"),
    not_positive(sample_size="0 KB"),
    no_rate(worker_rate=250),
    not_positive(worker_rate="-250 MB/s"),
])  # fmt: skip
def test_an_assumption_that_cannot_be_meant_is_refused(changes, expected):
    assert message(InputError, TUTORIAL.replace, **changes) == expected
