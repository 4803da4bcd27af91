"""Spans of time, beside a count of every single moment."""

import random

import numpy as np
import pytest

from starvelab.jobs.timeline import covered, gaps, union

MOMENTS = 40


def drawn(generator, most):
    pairs = (sorted(generator.sample(range(MOMENTS + 1), 2)) for _ in range(generator.randrange(most)))
    return np.array(list(pairs), dtype=float).reshape(-1, 2)


def moments(pairs):
    """Which moments from 0 to MOMENTS the spans cover."""
    return [any(start <= t < end for start, end in pairs) for t in range(MOMENTS)]


@pytest.mark.parametrize("seed", range(12))
def test_spans_cover_what_a_count_of_moments_says(seed):
    generator = random.Random(seed)
    pairs, stretches = drawn(generator, 9), drawn(generator, 9)
    found = union(pairs[:, 0], pairs[:, 1])
    assert moments(found) == moments(pairs)
    assert (np.diff(found.ravel()) > 0).all()
    counted = [sum(moments(pairs)[int(start) : int(end)]) for start, end in stretches]
    assert covered(found, stretches[:, 0], stretches[:, 1]).tolist() == pytest.approx(counted)
    if len(found):
        inside = slice(int(found[0, 0]), int(found[-1, 1]))
        assert moments(gaps(found))[inside] == [not one for one in moments(found)[inside]]
