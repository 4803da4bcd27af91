"""What a person would say of a pipeline: what binds, the evidence, the next step."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Cache,
    Datasets,
    Drive,
    Handover,
    Hardware,
    Links,
    Models,
    Pipeline,
    Samples,
    Storage,
)
from starvelab.units import Quantity
from tests.cases import KITS, WALL, golden
from tests.model.stages.test_loop import PACKER, TENSORS
from tests.strategies import pipelines

# 100 ms for a batch, and 16 workers of 100 images a second each.
KNOWN = Pipeline(hardware="1000 img/s", batch_size=100, dataset=Samples(cpu_time="10 ms"), workers=16)
DISK = KNOWN.replace({"dataset.cpu_time": None, "dataset.size": "1 MB"}, workers="5000 img/s")
FAST = WALL.replace(workers="50 GB/s", batch_size=512)
SEEKING = DISK.replace({"dataset.size": "100 KB"}, storage=Storage.HDD, assumptions=PUBLISHED)
SLOW_LINK = {"link": Links.PCIe3_x16, "link.pinned": False, "dataset.transfer": "600 KB"}
UNET = Pipeline(model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=2)
BYTES_ALONE = WALL.replace(
    hardware=WALL.hardware.of.replace(memory_bandwidth="1 GB/s"),
    assumptions=TUTORIAL.replace(overhead_per_layer="0 ms", overhead_per_step="0 ms"),
    batch_size=8,
)
WAIT_LESS = (
    "Read several samples with each request, open more requests at a time, or keep them in memory: then they "
    "wait less."
)


def twice_the_rate(pipe, _):
    step = pipe.solve()
    return pipe.replace({"hardware.rate": 2 * step.batch_size / step.stage_times["model"] * Q_("1 img")})


def started(pipe, match):
    return pipe.replace(overlap=True, workers=int(match[1] or 1))


def less_prepared(pipe, _):
    crew = pipe.workers
    if isinstance(crew, Quantity):
        return pipe.replace(workers=2 * crew)
    if crew.rate is not None:
        return pipe.replace({"workers.rate": 2 * crew.rate})
    alone = pipe.replace(
        {"workers.count": 1, "workers.handover": Handover(), "hardware.ranks.slow": 1},
        storage=None,
        overlap=True,
    ).solve()
    each = alone.stage_times["transform"] / alone.batch_size / alone.accelerators
    return pipe.replace({"dataset.cpu_time": each / 2})


# Each advice that an explanation may give, and what it does to a pipeline that follows it.
ADVICE = {
    "[Ss]tore fewer bytes for each sample": lambda p, _: p.replace({"dataset.size": p.size / 2}),
    "[Rr]ead several samples with each request": lambda p, _: p.replace(
        {"storage.requests.samples": 2 * p.storage.requests.samples}
    ),
    "[Oo]pen more requests at a time": lambda p, _: p.replace(
        {"storage.requests.open": 2 * min(p.reads.open, 10**9)}
    ),
    "[Kk]eep (?:more of )?them in memory": lambda p, _: p.replace(
        {"storage.cache.share": (1 + (p.storage.cache.share if p.storage.cache else 0)) / 2}
    ),
    "(?:use a faster drive or more of them|read from more prefixes)": lambda p, _: p.replace(
        {"storage.count": 2 * p.storage.count}
    ),
    "send fewer bytes for each sample": lambda p, _: p.replace({"dataset.transfer": p.transferred / 2}),
    "(?:Leave a part of the decoding to the workers|store smaller (?:images|samples))": (
        lambda p, _: p.replace({"dataset.on_device.decoder_time": p.dataset.on_device.decoder_time / 2})
    ),
    r"(\d+) workers? instead of \d+ would keep up": lambda p, m: p.replace(workers=int(m[1])),
    "More workers still help": lambda p, _: p.replace(workers=10**9),
    "Use a host with more cores": lambda p, _: p.replace({"workers.cores": 10**9}, workers=10**7),
    "Use worker processes": lambda p, _: p.replace({"workers.kind": "processes"}),
    "Prepare less for each sample": less_prepared,
    r"Start (?:a|(\d+)) workers?": started,
    "Prefetch batches": lambda p, _: p.replace(overlap=True),
    "a larger batch": lambda p, _: p.replace(batch_size=2 * p.batch_size),
    "(?:a faster (?:GPU|TPU)|faster memory) would shorten": twice_the_rate,
    "lower precision": lambda p, _: p.replace({"hardware.precision": "fp16"}),
    "better left to the workers": lambda p, _: p.replace(
        {"dataset.on_device.time": p.dataset.on_device.time / 2}
    ),
    "a step that is compiled": lambda p, _: p.replace(
        {"hardware.rate": p.hardware.framework.replace(compiled=True)}
    ),
    "on a stream of its own": lambda p, _: p.replace({"link.overlaps": True, "link.pinned": True}),
    r"[Ww]ith in_flight=(\d+)": lambda p, m: p.replace({"hardware.in_flight": int(m[1])}),
    r"[Ww]ith prefetch=(\d+)": lambda p, m: p.replace({"workers.prefetch": int(m[1])}),
    "into the workers": lambda p, _: p.replace({"workers.handover": moved(p.workers.handover)}),
    "objects of a batch into one": lambda p, _: p.replace({"workers.handover.objects": 1}),
}


def moved(handover):
    worker = 0 * handover.loop if handover.worker is None else handover.worker
    return handover.replace(worker=worker + handover.loop, loop="0 ms")


def check_advice(pipe, least):
    """Follow each advice that is given: the throughput rises by that factor at least."""
    text, step = pipe.explain(), pipe.solve()
    for advice, follow in ADVICE.items():
        if match := re.search(advice, text):
            gain = (follow(pipe, match).solve().throughput / step.throughput).m_as("")
            assert gain >= least * (1 - 1e-9), (advice, gain, text)


@given(pipelines() | pipelines(workers=st.just(0)))
def test_each_advice_shortens_the_step_of_whoever_follows_it(pipe):
    check_advice(pipe, 1.005)


def test_no_advice_is_given_where_none_helps():
    # A cache that takes as long as all of them, two resources that take equally long, and a single worker.
    cached = DISK.replace(storage=Drive("1 TB/s", cache=Cache(1.0)), batch_size=1)
    tied = DISK.replace(storage="0.5 GB/s", workers="500 img/s")
    alone = KNOWN.replace({"workers.cores": 1}, workers=0, batch_size=1, hardware="1 us")
    for pipe in (cached, tied, alone):
        assert not [advice for advice in ADVICE if re.search(advice, pipe.explain())], pipe.explain()


def test_a_loop_without_workers_is_told_to_start_as_many_as_shorten_its_step():
    meanwhile = "so that batches are prepared meanwhile: then"
    alone = KNOWN.replace(workers=0)
    waiting = alone.replace({"hardware.in_flight": 1}).explain()
    assert f"Start a worker, {meanwhile} the workers would bind, with 1000 ms." in waiting
    # One step ahead the loop prepares beside the accelerator as well, so one worker changes nothing.
    assert f"Start 10 workers, {meanwhile} the GPU would bind, with 100 ms." in alone.explain()


@given(pipelines())
def test_whatever_the_pipeline_the_explanation_is_a_few_whole_sentences(pipe):
    text = pipe.explain()
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", text)
    # That a batch does not fit takes three sentences before all others.
    assert 1 <= len(sentences) <= (13 if pipe.solve().infeasible_reason else 10)
    for sentence in sentences:
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert sentence.count(": ") <= 1
    assert "  " not in text
    assert ".." not in text.replace("=...", "")
    assert "None" not in text


# What is said of each stands in tests/golden/explain.txt, under its name.
SAID = {
    "too few workers": WALL,
    "a few more workers": KITS.replace(workers=1),
    "no number of workers": WALL.replace({"workers.rate": "100 img/s"}, assumptions=PUBLISHED),
    "a CPU given in bytes": WALL.replace(workers="2 GB/s"),
    "a storage wall behind a page cache": KITS.replace(
        {"storage.cache.share": 0.138}, storage=Storage.EBS_gp3_max
    ),
    "requests that limit a drive": SEEKING,
    "an object store": KNOWN.replace(
        {"dataset.cpu_time": "5 ms"}, storage=Storage.S3_connection, assumptions=PUBLISHED, workers=16
    ),
    "an object store behind a few connections": KNOWN.replace(
        storage=Storage.S3_connection.replace(parallel_requests=4), assumptions=PUBLISHED, workers=64
    ),
    "an object store that throttles": DISK.replace(
        {"dataset.size": "1 KB", "hardware.rate": "9000 img/s"},
        storage=Storage.S3_connection,
        workers="9000 img/s",
    ),
    "an object store behind a network card": DISK.replace(
        {"dataset.size": "5 MB", "hardware.rate": "4000 img/s"}, storage=Storage.S3_connection
    ),
    "a CPU that is next": DISK.replace(storage="0.1 GB/s", workers="200 img/s"),
    "a drive that is next": DISK.replace(storage="0.5 GB/s", workers="500 img/s"),
    "a drive that is next by far": DISK.replace(storage="0.8 GB/s", workers="500 img/s"),
    "a narrow link": WALL.replace({"dataset.transfer": "602112 B"}, workers=64, link="8 GB/s"),
    "a link of its own for each": KNOWN.replace(
        {"dataset.transfer": "1 MB", "hardware.count": 2}, link="0.5 GB/s", workers=64
    ),
    "a copy from other memory": DISK.replace(
        {**SLOW_LINK, "hardware.rate": "20000 img/s"}, workers="99000 img/s", assumptions=PUBLISHED
    ),
    "overhead, and a crossover ahead": WALL.replace(batch_size=64, phase="training"),
    "memory traffic": BYTES_ALONE,
    "DALI for nothing": FAST,
    "lower precision": FAST.replace({"hardware.precision": "tf32"}),
    "DALI with its price": FAST.replace({"dataset.on_device.time": "0.1 ms"}),
    "a rate that was extrapolated": KITS.replace(hardware=Hardware.Cloud.T4, workers=64, batch_size=2),
    "a link that is next": KITS.replace(
        {"dataset.transfer": KITS.size}, workers=200, storage="8 GB/s", link="1.7 GB/s"
    ),
    "a CPU far behind": KNOWN.replace({"dataset.cpu_time": None}, workers="1e9 img/s"),
    "a CPU just behind": DISK.replace(workers="1001 img/s"),
    "a tie at every batch": WALL.replace(assumptions=PUBLISHED, workers="2470 img/s"),
    "one after the other": WALL.replace(overlap=False),
    "eight of them, fed": KNOWN.replace({"hardware.count": 8}, workers=200),
    "threads that share a lock": KNOWN.replace({"workers.kind": "threads", "workers.cores": 16}),
    "workers that wait": KNOWN.replace({"storage.requests.latency": "30 ms", "workers.cores": 16}),
    "workers that mostly wait": KNOWN.replace({"storage.requests.latency": "60 ms", "workers.cores": 8}),
    "workers that wait a little": KNOWN.replace({"storage.requests.latency": "1 ms"}, workers=8),
    "a wait that makes no difference": KNOWN.replace({"storage.requests.latency": "0.01 ms"}, workers=8),
    "a copy in turn": KNOWN.replace({"dataset.transfer": "100 KB", "link.overlaps": False}, link="1 GB/s"),
    "a costly step": KNOWN.replace({"hardware.step_overhead": "150 ms"}),
    "a loop beside overhead": WALL.replace({"hardware.host.time": "10 ms"}, batch_size=8),
    "a loop that leaves spare time": DISK.replace({"hardware.host.time": "10 ms"}),
    "a loop that leaves none": DISK.replace({"hardware.host.time": "30 ms"}),
    "a loop before storage": DISK.replace({"hardware.host.time": "50 ms"}, storage="0.5 GB/s"),
    "a loop before the CPU": DISK.replace({"hardware.host.time": "50 ms"}, workers="500 img/s"),
    "samples that the model does not take": UNET,
    "a batch that does not fit": WALL.replace(batch_size=4096, phase="training"),
    "a packer": PACKER,
    "many tensors": TENSORS.replace(hardware="5 ms"),
    "one object, which nothing that was tried makes smaller": TENSORS.replace(
        {"workers.handover.objects": 1, "dataset.transfer": "5 MB"}
    ),
    "a loop that waits for each step": PACKER.replace({"hardware.in_flight": 1}),
}


TEXTS = {name: " ".join(text.split()) for name, text in golden("explain").items()}


@pytest.mark.parametrize("name", SAID | dict.fromkeys(TEXTS))
def test_it_says_what_a_person_would(name):
    assert SAID[name].explain() == TEXTS[name]


def test_nothing_is_said_of_samples_that_are_named_and_a_tie_starves_nobody():
    assert "those of the assumptions" not in UNET.replace(dataset=Datasets.KiTS19).explain()
    own = WALL.solve(batch_size=64).resource_times["accelerator"].m_as("s")
    tied = WALL.replace(batch_size=64, workers=Q_(64 / own, "img/s"))
    assert "From batch 65 on the workers would bind." in tied.explain()


def test_more_requests_than_are_assumed_to_be_open_are_advised_where_they_help():
    far = WALL.replace(storage=Storage.S3_connection, assumptions=PUBLISHED.replace(open_requests=4))
    assert far.explain().endswith(f" {WAIT_LESS}")
    assert far.solve({"storage.requests.open": 8}).throughput > 1.6 * far.solve().throughput


@pytest.mark.parametrize("source", [*Storage, Q_("0.1 GB/s")], ids=lambda s: getattr(s, "path", "0.1 GB/s"))
def test_each_advice_about_storage_helps_whoever_follows_it(source):
    for (size, assumed), drives, share in product(
        (("4 KB", PUBLISHED), ("100 MB", TUTORIAL)), (1, 6400), (None, 0.5, 0.9)
    ):
        starved = {"dataset.size": size, "storage.count": drives, "hardware.rate": "1e15 img/s"}
        cached = {} if share is None else {"storage.cache.share": share}
        pipe = DISK.replace({**starved, **cached}, storage=source, assumptions=assumed, workers="1e15 img/s")
        check_advice(pipe, 1.05)
