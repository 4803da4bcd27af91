"""Event by event, the simulation and an independent one in simpy agree."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starvelab import Q_
from starvelab.simulate.simulation import simulate
from starvelab.simulate.timeline import LoaderInputs
from tests.simulate.in_simpy import Run

COLUMNS = (
    "batch", "worker", "prepare_start", "prepared", "received", "copy_start", "copied", "step_start",
    "step_end",
)  # fmt: skip


def own_times(seed, batches=60):
    """Uneven times, now and then a slow one, and no two alike: simpy settles ties in its own way."""
    random = np.random.default_rng(seed)
    return random.uniform(1, 90, batches) + 400 * (random.random(batches) < 0.06)


def followed(inputs, times, **options):
    """The simulation of batches that take a worker so long [ms]."""
    return simulate(inputs, prepare_times=Q_(times, "ms"), **options)


loaders = st.builds(
    LoaderInputs, step_time=st.integers(1, 60), prepare_time=st.just(0), workers=st.integers(0, 6),
    prefetch=st.integers(1, 5), in_order=st.booleans(), in_flight=st.integers(1, 6) | st.just(inf),
    copy_time=st.integers(0, 30), copy_overlaps=st.booleans(), handover_way=st.integers(0, 30),
    handover_loop=st.integers(0, 10), start_up=st.integers(0, 200), read_time=st.integers(0, 30),
)  # fmt: skip


# Short ones end before each worker has had its first batches.
@pytest.mark.programs
@settings(max_examples=100)
@given(
    loaders,
    st.sampled_from([0.0, 0.5]),
    st.none() | st.integers(1, 41),
    st.booleans(),
    st.integers(1, 60),
    st.integers(0, 10_000),
)
def test_every_batch_of_any_loader_has_the_times_that_simpy_gives_it(
    inputs, cached_share, epoch_batches, persistent, batches, seed
):
    rest = {"cached_share": cached_share, "persistent": persistent, "epoch_batches": epoch_batches}
    inputs, times = replace(inputs, **rest), own_times(seed, batches)
    simulated = followed(inputs, times)
    trace, rows = simulated.trace(), Run(inputs, times, simulated.reads[:, 0]).rows
    for column in COLUMNS:
        theirs = [row[column] for row in rows]
        np.testing.assert_allclose(getattr(trace, column), theirs, rtol=1e-9, atol=1e-9, err_msg=column)
