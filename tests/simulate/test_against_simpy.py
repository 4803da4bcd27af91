"""Event by event, the simulation and an independent one in simpy agree."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_
from starvelab.simulate.inputs import LoaderInputs
from starvelab.simulate.simulation import simulate
from tests.simulate.in_simpy import Run

COLUMNS = (
    "batch", "worker", "prepare_start", "prepared", "received", "copy_start", "copied", "step_start",
    "step_end",
)  # fmt: skip

BASE = LoaderInputs(step_time=20, prepare_time=33)
like = partial(replace, BASE)
CASES = {
    "inline": like(workers=0),
    "inline, each step waited for": like(workers=0, in_flight=1, copy_time=3, handover_loop=1),
    "inline, copies in turn": like(workers=0, read_time=4, copy_time=3, copy_overlaps=False),
    "one worker": like(workers=1, handover_way=5, handover_loop=2),
    "one worker that reads": like(workers=1, prefetch=1, read_time=5, start_up=40),
    "two workers": BASE,
    "many workers": like(workers=7, prefetch=3, handover_way=9, in_flight=5),
    "no prefetch to speak of": like(workers=3, prefetch=1, handover_loop=3),
    "never waits for a step": like(workers=2, in_flight=inf, copy_time=7),
    "waits for every step": like(workers=3, in_flight=1, copy_time=7, handover_loop=2),
    "copy binds": like(workers=4, copy_time=27),
    "copies in turn": like(workers=4, copy_time=9, copy_overlaps=False, in_flight=3),
    "workers start late": like(workers=3, start_up=300),
    "as it comes": like(workers=3, in_order=False),
    "as it comes, deep": like(prefetch=8, in_order=False, handover_way=4, handover_loop=1),
    "as it comes, shallow": like(workers=5, prefetch=1, in_order=False, in_flight=1, start_up=50),
    "as it comes, copies in turn": like(
        workers=4, in_order=False, copy_time=9, copy_overlaps=False, in_flight=inf
    ),
    "shared storage": like(workers=4, read_time=6),
    "shared storage binds": like(workers=4, prefetch=1, read_time=26, start_up=7),
    "shared storage, as it comes": like(workers=3, prefetch=3, read_time=12, in_order=False),
    "shared storage, as it comes, all else too": like(
        workers=6,
        prefetch=2,
        read_time=17,
        in_order=False,
        copy_time=8,
        copy_overlaps=False,
        handover_way=3,
        handover_loop=2,
        in_flight=1,
        start_up=11,
    ),
    "epochs": like(workers=3, epoch_batches=14, start_up=70),
    "epochs, workers kept": like(workers=4, epoch_batches=9, start_up=70, persistent=True, in_flight=3),
    "epochs shorter than the prefetch": like(workers=4, prefetch=3, epoch_batches=5, in_flight=9),
    "epochs, inline": like(workers=0, epoch_batches=7, in_flight=4),
    "epochs, as it comes": like(workers=3, epoch_batches=13, in_order=False, start_up=30, in_flight=inf),
    "epochs, shared storage": like(
        workers=3, epoch_batches=11, read_time=12, copy_time=6, in_flight=3, start_up=25
    ),
}


def own_times(seed, batches=60):
    """Uneven times, now and then a slow one, and no two alike: simpy settles ties in its own way."""
    random = np.random.default_rng(seed)
    return random.uniform(1, 90, batches) + 400 * (random.random(batches) < 0.06)


def followed(inputs, times, **options):
    """The simulation of batches that take a worker so long [ms]."""
    return simulate(inputs, prepare_times=Q_(times, "ms"), **options)


def agree(inputs, times):
    simulated = followed(inputs, times)
    trace, rows = simulated.trace(), Run(inputs, times, simulated.reads[:, 0]).rows
    for column in COLUMNS:
        theirs = [row[column] for row in rows]
        np.testing.assert_allclose(getattr(trace, column), theirs, rtol=1e-9, atol=1e-9, err_msg=column)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("inputs", CASES.values(), ids=CASES)
def test_every_batch_has_the_times_that_simpy_gives_it(inputs, seed):
    agree(inputs, own_times(seed))


@pytest.mark.parametrize("batches", [1, 2, 5])
@pytest.mark.parametrize("in_order", [True, False])
def test_a_run_shorter_than_its_prefetch_agrees_too(batches, in_order):
    agree(like(workers=4, prefetch=3, read_time=2, in_order=in_order), own_times(3, batches))


loaders = st.builds(
    LoaderInputs,
    step_time=st.integers(1, 60),
    prepare_time=st.just(0),
    workers=st.integers(0, 6),
    prefetch=st.integers(1, 5),
    in_order=st.booleans(),
    in_flight=st.integers(1, 6) | st.just(inf),
    copy_time=st.integers(0, 30),
    copy_overlaps=st.booleans(),
    handover_way=st.integers(0, 30),
    handover_loop=st.integers(0, 10),
    start_up=st.integers(0, 200),
    read_time=st.integers(0, 30),
)


@given(
    loaders,
    st.sampled_from([0.0, 0.5]),
    st.none() | st.integers(1, 41),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_any_loader_agrees_with_simpy(inputs, cached_share, epoch_batches, persistent, seed):
    rest = {"cached_share": cached_share, "persistent": persistent, "epoch_batches": epoch_batches}
    agree(replace(inputs, **rest), own_times(seed, 40))
