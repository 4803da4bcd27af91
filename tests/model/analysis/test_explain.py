"""What a person would say of a pipeline: what binds, the evidence, the next step."""

import re
from itertools import product
from operator import attrgetter

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
SLOW_LINK = {"link": Links.PCIe3_x16, "link.pinned": False, "dataset.transfer": "600 KB"}
UNET = Pipeline(model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=2)


def less_prepared(pipe, _):
    crew = pipe.workers
    if isinstance(crew, Quantity):
        return {"workers": 2 * crew}
    if crew.rate is not None:
        return {"workers.rate": 2 * crew.rate}
    alone = {"workers.count": 1, "workers.handover": Handover(), "hardware.ranks.slow": 1}
    times = pipe.solve(alone, storage=None, overlap=True)
    return {"dataset.cpu_time": times.stage_times["transform"] / times.batch_size / times.accelerators / 2}


def moved(pipe, _):
    handover = pipe.workers.handover
    worker = 0 * handover.loop if handover.worker is None else handover.worker
    return {"workers.handover.loop": "0 ms", "workers.handover.worker": worker + handover.loop}


def times(factor, field):
    """Multiply what a field of a pipeline has."""
    return lambda pipe, _: {field: factor * attrgetter(field)(pipe)}


def cached(pipe, _):
    return {"storage.cache.share": (1 + (pipe.storage.cache.share if pipe.storage.cache else 0)) / 2}


# Each advice that an explanation may give, and what it changes of a pipeline that follows it.
ADVICE = {
    "halve the stored bytes of each sample": lambda p, _: {"dataset.size": p.size / 2},
    "read twice as many samples with each request": times(2, "storage.requests.samples"),
    "open twice as many requests at a time": lambda p, _: {
        "storage.requests.open": 2 * min(p.reads.open, 10**9)
    },
    r"keep \d+ % of the samples in memory": cached,
    "read from twice as many (?:drive|bucket)s": times(2, "storage.count"),
    "halve the bytes of each sample on the link": lambda p, _: {"dataset.transfer": p.transferred / 2},
    "let the workers do half of the decoding": times(0.5, "dataset.on_device.decoder_time"),
    "let the workers do half of the [GT]PU's input work": times(0.5, "dataset.on_device.time"),
    r"start (\d+) workers?": lambda _, m: {"workers": int(m[1])},
    "start a worker": lambda *_: {"workers": 1},
    "use a host with twice the cores, and twice the workers": lambda p, _: {
        "workers": 2 * p.workers.count, "workers.cores": 2 * p.inputs["transform"].cores,
    },
    "use worker processes, which share no lock": lambda *_: {"workers.kind": "processes"},
    "halve the CPU work for each sample": less_prepared,
    "bring the slowest host to the pace of the others": lambda *_: {"hardware.ranks.slow": 1},
    "prefetch batches, so that .* sets the step": lambda *_: {"overlap": True},
    "double the batch size, which takes more memory": times(2, "batch_size"),
    "use a [GT]PU that is twice as fast": lambda p, _: {
        "hardware.rate": Q_(2 * p.batch_size, "img") / p.solve().stage_times["model"]
    },
    "use half precision": lambda *_: {"hardware.precision": "fp16"},
    "compile the step, which is then launched once": lambda p, _: {
        "hardware.rate": p.hardware.framework.replace(compiled=True)
    },
    "copy from pinned memory on a stream of its own": lambda *_: {"link.overlaps": True, "link.pinned": True},
    r"let (\d+) steps be in flight": lambda _, m: {"hardware.in_flight": int(m[1])},
    r"let each worker prefetch (\d+) batches": lambda _, m: {"workers.prefetch": int(m[1])},
    "move the training loop's own work into the workers": moved,
    r"pack the \d+ objects of a batch into one": lambda *_: {"workers.handover.objects": 1},
    "halve the spread of the steps' times": times(0.5, "hardware.ranks.spread"),
}  # fmt: skip


def check_advice(pipe):
    """Follow each advice that is given: it brings as much as is said, and half a percent at least."""
    text, step, followed = pipe.explain(), pipe.solve(), 0
    for advice, follow in ADVICE.items():
        if match := re.search(f"{advice} \\(([^ ]+) times\\)", text):
            gain = (pipe.solve(follow(pipe, match)).throughput / step.throughput).m_as("")
            assert gain >= 1.005 * (1 - 1e-9), (advice, gain, text)
            said = float(match[match.lastindex])
            # The host of the accelerators may limit what more workers bring.
            assert said <= gain * 1.006, (advice, text)
            assert said >= gain * 0.994 or "worker" in advice, (advice, text)
            followed += 1
    assert followed == text.count(" times)"), text


@given(pipelines() | pipelines(workers=st.just(0)))
def test_each_advice_shortens_the_step_of_whoever_follows_it(pipe):
    check_advice(pipe)


def test_no_advice_is_given_where_none_helps():
    # A cache that takes as long as all of them, two resources that take equally long, and a single worker.
    cached = DISK.replace(storage=Drive("1 TB/s", cache=Cache(1.0)), workers="1000 img/s")
    tied = DISK.replace(storage="0.5 GB/s", workers="500 img/s")
    for pipe in (cached, tied):
        assert "samples a second" not in pipe.explain()


def test_a_loop_without_workers_is_told_to_start_as_many_as_shorten_its_step():
    alone = KNOWN.replace(workers=0)
    assert "start a worker (1.1 times)" in alone.replace({"hardware.in_flight": 1}).explain()
    # One step ahead the loop prepares beside the accelerator as well, so one worker changes nothing.
    assert "start 10 workers (10 times)" in alone.explain()
    assert "start a worker" not in alone.explain()


def test_a_time_that_is_known_of_one_batch_size_alone_is_not_carried_to_another():
    given = Pipeline(hardware="20 ms", batch_size=64, dataset=Samples(cpu_time="0.1 ms"), workers=8)
    assert "batch size" not in given.explain()
    packed = given.replace({"workers.handover.loop": "30 ms"}, hardware="3200 img/s")
    assert packed.solve().bottleneck == "loop"
    assert "batch size" not in packed.explain()


def test_a_rate_that_launches_no_faster_and_input_work_beside_a_measured_rate_are_no_causes():
    beside = WALL.replace({"dataset.on_device.time": "0.01 ms"}, workers="1e6 img/s", assumptions=PUBLISHED)
    assert "own time comes from a measured rate" in beside.explain()


@given(pipelines())
def test_whatever_the_pipeline_the_explanation_is_a_few_whole_sentences(pipe):
    text = pipe.explain()
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", text)
    assert 1 <= len(sentences) <= 12
    for sentence in sentences:
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence[0].isdigit()
    assert "  " not in text
    assert ".." not in text.replace("=...", "")
    assert "None" not in text


# What is said of each stands in tests/golden/explain.txt, under its name.
SAID = {
    "too few workers": WALL,
    "no number of workers": WALL.replace({"workers.rate": "100 img/s"}, assumptions=PUBLISHED),
    "a CPU given in bytes": WALL.replace(workers="2 GB/s"),
    "a storage wall behind a page cache": KITS.replace(
        {"storage.cache.share": 0.138}, storage=Storage.EBS_gp3_max
    ),
    "an object store": KNOWN.replace(
        {"dataset.cpu_time": "5 ms"}, storage=Storage.S3_connection, assumptions=PUBLISHED, workers=16
    ),
    "a narrow link": WALL.replace({"dataset.transfer": "602112 B"}, workers=64, link="8 GB/s"),
    "a link of its own for each": KNOWN.replace(
        {"dataset.transfer": "1 MB", "hardware.count": 2}, link="0.5 GB/s", workers=64
    ),
    "a copy from other memory": DISK.replace(
        {**SLOW_LINK, "hardware.rate": "20000 img/s"}, workers="99000 img/s", assumptions=PUBLISHED
    ),
    "overhead, and a crossover ahead": WALL.replace(batch_size=64, phase="training"),
    "lower precision": FAST.replace({"hardware.precision": "tf32"}),
    "DALI with its price": FAST.replace({"dataset.on_device.time": "0.1 ms"}),
    "a rate that was extrapolated": KITS.replace(hardware=Hardware.Cloud.T4, workers=64, batch_size=2),
    "a tie at every batch": WALL.replace(assumptions=PUBLISHED, workers="2470 img/s"),
    "one after the other": WALL.replace(overlap=False),
    "eight of them, fed": KNOWN.replace({"hardware.count": 8}, workers=200),
    "threads that share a lock": KNOWN.replace({"workers.kind": "threads", "workers.cores": 16}),
    "workers that wait": KNOWN.replace({"storage.requests.latency": "30 ms", "workers.cores": 16}),
    "a loop beside overhead": WALL.replace({"hardware.host.time": "10 ms"}, batch_size=8),
    "samples that the model does not take": UNET,
    "a batch that does not fit": WALL.replace(batch_size=4096, phase="training"),
    "a packer": PACKER,
    "many tensors": TENSORS.replace(hardware="5 ms"),
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


@pytest.mark.parametrize(
    ("source", "size", "limit"),
    [
        (Storage.HDD, "110 KB", ", limited by the time its requests take:"),
        (Storage.EBS_gp3, "110 KB", ", limited by its bandwidth:"),
        (Storage.EBS_gp3, "4 KB", ", limited by its requests a second:"),
        (Q_("0.1 GB/s"), "4 KB", ":"),  # nothing is known of its requests
    ],
)
def test_a_drive_that_binds_is_said_to_be_limited_by_the_slowest_of_its_terms(source, size, limit):
    starved = {"dataset.size": size, "hardware.rate": "1e15 img/s"}
    pipe = DISK.replace(starved, storage=source, assumptions=PUBLISHED, workers="1e15 img/s")
    assert pipe.explain(advice=False).startswith(f"The drive binds{limit} reading a batch")


@pytest.mark.parametrize("source", [*Storage, Q_("0.1 GB/s")], ids=lambda s: getattr(s, "path", "0.1 GB/s"))
def test_each_advice_about_storage_helps_whoever_follows_it(source):
    for (size, assumed), drives, share in product(
        (("4 KB", PUBLISHED), ("100 MB", TUTORIAL)), (1, 6400), (None, 0.5, 0.9)
    ):
        starved = {"dataset.size": size, "storage.count": drives, "hardware.rate": "1e15 img/s"}
        cached = {} if share is None else {"storage.cache.share": share}
        pipe = DISK.replace({**starved, **cached}, storage=source, assumptions=assumed, workers="1e15 img/s")
        check_advice(pipe)
