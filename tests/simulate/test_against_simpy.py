"""Event by event, the simulation and an independent one in simpy agree."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_
from starvelab.simulate import Loader, simulate
from tests.simulate.in_simpy import Run

COLUMNS = (
    "batch", "worker", "prepare_start", "prepared", "received", "copy_start", "copied", "step_start",
    "step_end",
)  # fmt: skip

BASE = Loader(step_time="20 ms", prepare_time="33 ms")
CASES = {
    "inline": BASE.replace(workers=0),
    "inline, each step waited for": BASE.replace(workers=0, in_flight=1, copy_time="3 ms", fetch_time="1 ms"),
    "inline, copies in turn": BASE.replace(
        workers=0, read_time="4 ms", copy_time="3 ms", copy_overlaps=False
    ),
    "one worker": BASE.replace(workers=1, handover_time="5 ms", fetch_time="2 ms"),
    "one worker that reads": BASE.replace(workers=1, prefetch=1, read_time="5 ms", start_up="40 ms"),
    "two workers": BASE,
    "many workers": BASE.replace(workers=7, prefetch=3, handover_time="9 ms", in_flight=5),
    "no prefetch to speak of": BASE.replace(workers=3, prefetch=1, fetch_time="3 ms"),
    "never waits for a step": BASE.replace(workers=2, in_flight=inf, copy_time="7 ms"),
    "waits for every step": BASE.replace(workers=3, in_flight=1, copy_time="7 ms", fetch_time="2 ms"),
    "copy binds": BASE.replace(workers=4, copy_time="27 ms"),
    "copies in turn": BASE.replace(workers=4, copy_time="9 ms", copy_overlaps=False, in_flight=3),
    "workers start late": BASE.replace(workers=3, start_up="300 ms"),
    "as it comes": BASE.replace(workers=3, in_order=False),
    "as it comes, deep": BASE.replace(prefetch=8, in_order=False, handover_time="4 ms", fetch_time="1 ms"),
    "as it comes, shallow": BASE.replace(
        workers=5, prefetch=1, in_order=False, in_flight=1, start_up="50 ms"
    ),
    "as it comes, copies in turn": BASE.replace(
        workers=4, in_order=False, copy_time="9 ms", copy_overlaps=False, in_flight=inf
    ),
    "shared storage": BASE.replace(workers=4, read_time="6 ms"),
    "shared storage binds": BASE.replace(workers=4, prefetch=1, read_time="26 ms", start_up="7 ms"),
    "shared storage, as it comes": BASE.replace(workers=3, prefetch=3, read_time="12 ms", in_order=False),
    "shared storage, as it comes, all else too": BASE.replace(
        workers=6, prefetch=2, read_time="17 ms", in_order=False, copy_time="8 ms", copy_overlaps=False,
        handover_time="3 ms", fetch_time="2 ms", in_flight=1, start_up="11 ms",
    ),
    "epochs": BASE.replace(workers=3, epoch_batches=14, start_up="70 ms"),
    "epochs, workers kept": BASE.replace(
        workers=4, epoch_batches=9, start_up="70 ms", persistent_workers=True, in_flight=3
    ),
    "epochs shorter than the prefetch": BASE.replace(workers=4, prefetch=3, epoch_batches=5, in_flight=9),
    "epochs, inline": BASE.replace(workers=0, epoch_batches=7, in_flight=4),
    "epochs, as it comes": BASE.replace(
        workers=3, epoch_batches=13, in_order=False, start_up="30 ms", in_flight=inf
    ),
    "epochs, shared storage": BASE.replace(
        workers=3, epoch_batches=11, read_time="12 ms", copy_time="6 ms", in_flight=3, start_up="25 ms"
    ),
}  # fmt: skip


def own_times(seed, batches=60):
    """Uneven times, now and then a slow one, and no two alike: simpy settles ties in its own way."""
    random = np.random.default_rng(seed)
    return random.uniform(1, 90, batches) + 400 * (random.random(batches) < 0.06)


def agree(loader, times):
    simulated = simulate(loader, prepare_times=Q_(times, "ms"))
    trace, rows = simulated.trace(), Run(loader, times, simulated.reads[:, 0]).rows
    for column in COLUMNS:
        theirs = [row[column] for row in rows]
        np.testing.assert_allclose(getattr(trace, column), theirs, rtol=1e-9, atol=1e-9, err_msg=column)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("loader", CASES.values(), ids=CASES)
def test_every_batch_has_the_times_that_simpy_gives_it(loader, seed):
    agree(loader, own_times(seed))


@pytest.mark.parametrize("batches", [1, 2, 5])
@pytest.mark.parametrize("in_order", [True, False])
def test_a_run_shorter_than_its_prefetch_agrees_too(batches, in_order):
    agree(BASE.replace(workers=4, prefetch=3, read_time="2 ms", in_order=in_order), own_times(3, batches))


def milliseconds(highest):
    return st.integers(0, highest).map(lambda x: Q_(x, "ms"))


loaders = st.builds(
    Loader,
    step_time=st.integers(1, 60).map(lambda x: Q_(x, "ms")),
    prepare_time=st.just(Q_("0 ms")),
    workers=st.integers(0, 6),
    prefetch=st.integers(1, 5),
    in_order=st.booleans(),
    in_flight=st.integers(1, 6) | st.just(inf),
    copy_time=milliseconds(30),
    copy_overlaps=st.booleans(),
    handover_time=milliseconds(30),
    fetch_time=milliseconds(10),
    start_up=milliseconds(200),
    read_time=milliseconds(30),
)


@given(
    loaders,
    st.sampled_from([0.0, 0.5]),
    st.none() | st.integers(1, 41),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_any_loader_agrees_with_simpy(loader, cached_fraction, epoch_batches, persistent, seed):
    loader = loader.replace(cached_fraction=cached_fraction, persistent_workers=persistent)
    agree(loader.replace(epoch_batches=epoch_batches), own_times(seed, 40))
