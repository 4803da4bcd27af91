"""The time of a stage: the largest of a few straight lines, in whatever numbers it was given."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab.model.costs import Cost, Line, argmax, exceeds, name_of_largest
from tests.strategies import costs


def test_a_cost_is_the_largest_of_its_lines_in_the_numbers_it_was_given():
    assert Line(5, 2).at(10) == 25
    cost = Cost((Line(5, 0), Line(0, 1)))
    assert [cost.at(b) for b in (1, 5, 6)] == [5, 5, 6]
    assert Cost((Line(Fraction(1, 3), Fraction(1, 7)),)).at(21) == Fraction(10, 3)
    assert Cost((Line(0, np.array([1.0, 4.0])), Line(9, 2.0))).limit.tolist() == [2, 4]


@given(costs, st.lists(st.integers(0, 1000), min_size=1, max_size=5))
def test_a_cost_of_many_batches_is_that_of_each(cost, batches):
    assert cost.at(np.array(batches)).tolist() == pytest.approx([float(cost.at(b)) for b in batches])


@given(costs, costs, st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 8))
def test_costs_add_up_and_larger_batches_take_longer_but_not_for_each_sample(one, other, batch, more, count):
    assert (one + other).at(batch) == one.at(batch) + other.at(batch)
    assert (one * count).at(batch) == count * one.at(batch)
    assert one.at(batch + more) >= one.at(batch) >= one.limit * batch


def test_a_tie_is_not_longer_even_if_rounding_says_so():
    assert exceeds(1.1, 1)
    assert not exceeds(0.1 + 0.2, 0.3)
    assert not exceeds(1, 1)
    assert exceeds(np.array([1, 2]), 1).tolist() == [False, True]
    assert type(exceeds(np.float64(2), 1)) is bool


@given(st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_largest_is_found_where_argmax_finds_it(rows):
    arrays = [np.array(row, dtype=float) for row in rows]
    assert argmax(arrays).tolist() == np.argmax(np.stack(arrays), axis=0).tolist()
    assert int(argmax([1.0, 2.0, 2.0])) == 1
    two = {"a": np.array([1, 3]), "b": np.array([2, 2])}
    assert name_of_largest(two).tolist() == ["b", "a"]
