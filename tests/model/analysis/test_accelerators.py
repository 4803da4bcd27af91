"""How many accelerators a host feeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import InputError, Pipeline, accelerators_fed
from tests.cases import WALL
from tests.strategies import pipelines

# 100 ms a batch of 100; the host prepares 4,000 samples a second.
HOST = Pipeline(accelerator_rate="1000 img/s", batch_size=100, cpu_throughput="4000 img/s")


def test_a_host_that_prepares_four_times_as_much_feeds_four():
    assert accelerators_fed(HOST, 1) == 4
    # At 90 % each of them takes a tenth less.
    assert accelerators_fed(HOST) == 4
    assert accelerators_fed(HOST, 0.8) == 5
    assert accelerators_fed(HOST.replace(storage="100 MB/s", sample_size="50 KB"), 1) == 2


def test_the_walkthroughs_host_does_not_feed_one():
    assert accelerators_fed(WALL) == 0


def test_a_loop_that_idles_more_than_is_asked_for_feeds_none():
    assert accelerators_fed(HOST.replace(host_time="20 ms"), 0.9) == 0
    assert accelerators_fed(HOST.replace(host_time="20 ms"), 0.8) == 5


@given(pipelines(overlap=st.just(True), accelerators=st.just(1)), st.sampled_from([0.5, 0.9, 1.0]))
def test_that_many_are_busy_enough_and_one_more_are_not(pipe, share):
    cores = pipe.inputs["transform"].cores
    if pipe.cpu_throughput is None and cores is not None:
        pipe = pipe.replace(cores=cores)
    fed = accelerators_fed(pipe, share)
    if not pipe.solve().feasible:
        assert fed == 0
        return
    if fed:
        assert pipe.solve(accelerators=fed).utilization >= share * (1 - 1e-9)
    assert pipe.solve(accelerators=fed + 1).utilization < share * (1 + 1e-9)


def test_what_is_no_share_is_rejected():
    with pytest.raises(InputError) as caught:
        accelerators_fed(HOST, 90)
    assert str(caught.value) == "utilization must be a share up to 1, got 90. Write 0.9 for 90 %."
