"""What a little more of each resource buys: something for the one that binds, nothing for the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    Drive,
    InputError,
    Links,
    Pipeline,
    Requests,
    Samples,
    Storage,
    Workers,
)
from tests.cases import WALL
from tests.rejected import message
from tests.strategies import links, pipelines

FULL = WALL.replace(storage=Storage.NVMe_Gen4, link=Links.PCIe4_x16)


def levers(pipe):
    return {one.resource: one for one in pipe.sensitivity().changes}


def limits(pipe):
    return {resource: one.limit for resource, one in levers(pipe).items()}


@given(pipelines(overlap=st.just(True), link=links))
def test_only_the_resource_that_binds_is_worth_more_of(pipe):
    step = pipe.solve()
    before = step.throughput.m_as("img/s")
    for resource, lever in levers(pipe).items():
        assert lever.gain >= 0
        assert lever.throughput.m_as("img/s") == pytest.approx(before * (1 + lever.gain))
        if resource != step.bottleneck:
            assert lever.gain == pytest.approx(0, abs=1e-11)
            assert lever.limit.startswith("not now: ")
    if pipe.numbers["cpu_throughput"] is None:
        more = pipe.solve(workers=pipe.workers.count + 1)
        assert levers(pipe)["CPU"].throughput.m_as("img/s") == pytest.approx(more.throughput.m_as("img/s"))


def test_one_gb_per_second_more_buys_what_the_faster_drive_does():
    pipe = FULL.replace(workers=56)
    faster = pipe.solve(storage="8 GB/s")
    assert levers(pipe)["storage"].throughput.m_as("img/s") == pytest.approx(faster.throughput.m_as("img/s"))
    assert levers(pipe)["storage"].gain == pytest.approx(1 / 7)


WAITING = Pipeline(
    hardware="1000 img/s",
    batch_size=100,
    dataset=Samples(cpu_time="10 ms"),
    workers=Workers(8, cores=10),
    storage=Drive(requests=Requests("30 ms")),
)
NO_NUMBER = "no number of workers is as fast as the accelerator"


@pytest.mark.parametrize(
    ("pipe", "resource", "limit"),
    [
        (WALL, "CPU", "44 workers, then the accelerator"),
        (FULL, "CPU", "28 workers, then storage"),
        (WALL.replace({"hardware.count": 8}), "CPU", "349 workers, then the accelerator"),
        (WAITING, "CPU", "40 workers, then the accelerator"),  # past the cores
        (WAITING.replace({"workers.cores": 5}), "CPU", NO_NUMBER),
        (WALL.replace({"workers.rate": "100 img/s"}, assumptions=PUBLISHED), "CPU", NO_NUMBER),
        (FULL.replace(workers=56), "storage", "10.9 GB/s, then the accelerator"),
        (WALL.replace(workers=56, link="5 GB/s"), "link", "13.13 GB/s, then the accelerator"),
        (WALL.replace(workers="50 GB/s"), "accelerator", "4.59 times as fast, then the CPU"),
        (WALL.replace({"storage.cache.share": 1.0}, storage="1 GB/s"), "storage", "not now: the CPU binds"),
        (
            WALL.replace(
                {"storage.cache.share": 0.5, "storage.cache.bandwidth": "1.5 GB/s"},
                storage="1 GB/s",
                workers=64,
            ),
            "storage",
            "a faster drive alone is not enough: what memory serves takes its time too",
        ),
    ],
)
def test_more_of_a_resource_pays_until_the_next_one_binds(pipe, resource, limit):
    assert limits(pipe)[resource] == limit


def test_a_cpu_that_is_given_as_a_whole_is_made_a_tenth_faster():
    slow = levers(WALL.replace(workers="2 GB/s"))["CPU"]
    assert (slow.change, slow.limit) == ("CPU a tenth faster", "5.45 times as fast, then the accelerator")
    assert slow.gain == pytest.approx(0.1)


def test_a_drive_that_waits_for_requests_is_not_helped_by_bandwidth():
    waiting = WALL.replace(
        {"dataset.size": "100 KB"},
        storage=Drive(Storage.NFS_10GbE, requests=Requests(at_most=2)),
        workers=64,
    )
    lever = levers(waiting)["storage"]
    assert lever.limit == "more connections: the requests under way bind, not bandwidth"
    assert lever.gain < 0.5
    more = waiting.solve({"storage.requests.at_most": 4})
    assert more.throughput > 1.9 * waiting.solve().throughput


@pytest.mark.parametrize(("drive", "size"), [(Storage.HDD, "115 KB"), (Storage.EBS_gp3, "4 KB")])
def test_where_a_drive_serves_no_more_requests_more_in_flight_are_no_advice(drive, size):
    fast = {"hardware.rate": "1e5 img/s", "workers": "1e5 img/s"}
    waiting = WALL.replace({"dataset.size": size}, storage=drive, assumptions=PUBLISHED, **fast)
    assert limits(waiting)["storage"] == "more drives: the requests that one serves bind, not bandwidth"
    assert waiting.solve({"storage.count": 2}).throughput > 1.9 * waiting.solve().throughput


def test_a_tie_is_left_by_neither_of_the_two():
    tied = WALL.replace(storage="7 GB/s", workers=28)
    found = levers(tied)
    assert (found["CPU"].gain, found["storage"].gain) == pytest.approx((0, 0), abs=1e-11)
    assert sorted((found["CPU"].limit, found["storage"].limit)) == [
        "not now: storage takes as long",
        "not now: the CPU binds",
    ]


def test_the_levers_show_themselves_as_a_table():
    text = repr(WALL.sensitivity())
    assert text.splitlines()[0] == "What would help while the CPU binds"
    assert text.splitlines()[3].split("  ")[0] == "9 workers instead of 8"
    assert "+12.5 %" in text
    assert "<caption>What would help while the CPU binds</caption>" in WALL.sensitivity()._repr_html_()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"workers": [1, 2], "storage": Q_([1, 7], "GB/s")},
            "sensitivity looks at one point, got several values of storage, workers. Pass one value of each.",
        ),
        (
            {"overlap": False},
            "sensitivity looks at stages that overlap, got overlap=False: then the accelerator always waits. "
            "Pass overlap=True.",
        ),
        (
            {"link": "32 GB/s", "link.overlaps": False},
            "sensitivity looks at one resource at a time, got Link(overlaps=False): then a copy takes the "
            "time of two. Pass overlaps=True, and compare the step with and without.",
        ),
    ],
)
def test_a_question_without_one_answer_is_refused(fields, expected):
    assert message(InputError, Pipeline.sensitivity, WALL.replace(**fields)) == expected
