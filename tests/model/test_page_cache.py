"""What a page cache serves of reads in a random order: as a simulated one does, and as was measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab.model.stages.data import hit_share


def simulated_hits(held, samples=1000, epochs=10):
    """The share of hits of a cache that evicts at random, read in a new order in each epoch."""
    random = np.random.default_rng(1)
    slots = list(range(int(held * samples)))  # what lies in each slot
    where = {sample: slot for slot, sample in enumerate(slots)}
    hits = 0
    for epoch in range(epochs + 2):
        for sample in random.permutation(samples).tolist():
            if sample in where:
                hits += epoch >= 2  # the first epochs still show what it began with
            else:
                slot = int(random.integers(len(slots)))
                del where[slots[slot]]
                slots[slot], where[sample] = sample, slot
    return hits / samples / epochs


@pytest.mark.parametrize("held", [0.2, 0.35, 0.65, 0.9])
def test_it_is_what_a_simulated_cache_serves(held):
    assert hit_share(held) == pytest.approx(simulated_hits(held), abs=0.015)


def test_the_share_belongs_to_what_is_held():
    # Measured: Mohan et al., PVLDB 14(5), 2021.
    assert 1 - hit_share(0.35) == pytest.approx(0.85, abs=0.015)
    # s = 2: h = ((1 - exp(-2)) / 2)^2 = 0.18691 and c = (1 - h) / 2 = 0.40654.
    assert hit_share(0.40654) == pytest.approx(0.18691, abs=1e-5)
    assert hit_share(1.0) == 1.0
    assert hit_share([1.0, 3.0]).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(1e-6, 1.2), min_size=2, max_size=6).map(sorted))
def test_more_memory_serves_more_and_never_more_than_it_holds(held):
    shares = hit_share(held)
    assert (np.diff(shares) >= 0).all()
    assert (shares <= np.minimum(held, 1) + 1e-9).all()
    assert (shares >= 0).all()
