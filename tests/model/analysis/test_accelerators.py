"""How many accelerators a host feeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import InputError, Pipeline
from tests.cases import WALL
from tests.rejected import message
from tests.strategies import accelerators, pipelines

# 100 ms a batch of 100; the host prepares 4,000 samples a second.
HOST = Pipeline(hardware="1000 img/s", batch_size=100, workers="4000 img/s")


@pytest.mark.parametrize(
    ("pipe", "share", "fed"),
    [
        (HOST, 1, 4),
        (HOST, 0.9, 4),  # each of them takes a tenth less
        (HOST, 0.8, 5),
        (HOST.replace({"dataset.size": "50 KB"}, storage="100 MB/s"), 1, 2),
        (HOST.replace({"hardware.host_time": "20 ms"}), 0.9, 0),  # a loop that idles more than is asked for
        (HOST.replace({"hardware.host_time": "20 ms"}), 0.8, 5),
        (WALL, 0.9, 0),
    ],
)
def test_a_host_that_prepares_four_times_as_much_feeds_four(pipe, share, fed):
    assert pipe.accelerators_fed(share) == fed


@given(pipelines(overlap=st.just(True), hardware=accelerators), st.sampled_from([0.5, 0.9, 1.0]))
def test_that_many_are_busy_enough_and_one_more_are_not(pipe, share):
    cores = pipe.inputs["transform"].cores
    if pipe.numbers["cpu_throughput"] is None and cores is not None:
        pipe = pipe.replace({"workers.cores": cores})
    fed = pipe.accelerators_fed(share)
    if not pipe.solve().feasible:
        assert fed == pipe.accelerators_fed() == 0
        return
    if fed:
        assert pipe.solve({"hardware.count": fed}).utilization >= share * (1 - 1e-9)
    assert pipe.solve({"hardware.count": fed + 1}).utilization < share * (1 + 1e-9)


def test_what_is_no_share_is_rejected():
    said = message(InputError, Pipeline.accelerators_fed, HOST, 90)
    assert said == "utilization must be a share up to 1, got 90. Write 0.9 for 90 %."
