"""What a person would say of a pipeline: what binds, the evidence, the next step."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Datasets,
    Hardware,
    InputError,
    Links,
    Models,
    Pipeline,
    Samples,
    Storage,
)
from starvelab.units import Quantity
from tests.cases import KITS, WALL
from tests.rejected import message
from tests.strategies import pipelines

# 100 ms for a batch, and 16 workers of 100 images a second each.
KNOWN = Pipeline(hardware="1000 img/s", batch_size=100, dataset=Samples(cpu_time="10 ms"), workers=16)
DISK = KNOWN.replace({"dataset.cpu_time": None, "dataset.size": "1 MB"}, workers="5000 img/s")
STARVED = (
    "The CPU binds: preparing a batch of 256 takes 64 ms, so the accelerator, which needs 11.74 ms, is busy "
    "18.3 % of each step and waits for the rest."
)
LESS = "Prepare less for each sample, or do it ahead of the training or on the accelerator."


@given(pipelines())
def test_whatever_the_pipeline_the_explanation_is_a_few_whole_sentences(pipe):
    text = pipe.explain()
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", text)
    # That a batch does not fit takes three sentences before all others.
    assert 2 <= len(sentences) <= (13 if pipe.solve().infeasible_reason else 10)
    for sentence in sentences:
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert sentence.count(": ") <= 1
    assert "  " not in text
    assert ".." not in text
    assert "None" not in text


SAID = {
    "too few workers": (
        WALL,
        f"{STARVED} 44 workers instead of 8 would keep up, but that meets other limits: a typical host "
        "has 16 physical cores for each NVIDIA A100 80GB SXM; reading would take 10.9 GB/s, and the drive "
        f"gives 7 GB/s. {LESS}",
    ),
    "a few more workers": (
        KITS.replace(workers=1),
        "The CPU binds: preparing a batch of 7 takes 1288 ms, so the accelerator, which needs 636 ms, is "
        "busy 49.4 % of each step and waits for the rest. 3 workers instead of 1 would keep up.",
    ),
    "no number of workers": (
        WALL.replace({"workers.rate": "100 img/s"}, assumptions=PUBLISHED),
        "The CPU binds: preparing a batch of 256 takes 342 ms, so the accelerator, which needs 103.6 "
        "ms, is busy 30.3 % of each step and waits for the rest. No number of workers keeps up. A "
        "typical host has 16 cores for each NVIDIA A100 80GB SXM: together its workers reach at most "
        "18.1 times what one does, and it would take 24.7 times. More workers still help: up to 2.41 "
        "times what they prepare now. Use a host with more cores. " + LESS,
    ),
    "a CPU given in bytes": (
        WALL.replace(workers="2 GB/s"),
        f"{STARVED} To keep it fed, the CPU would have to supply 10.9 GB/s, and it supplies 2 GB/s. {LESS}",
    ),
    "a CPU given in images": (
        WALL.replace(workers="4000 img/s"),
        f"{STARVED} To keep it fed, the CPU would have to supply 21800 img/s, and it supplies 4000 "
        f"img/s. {LESS}",
    ),
    "the storage wall of KiTS19": (
        KITS.replace(storage=Storage.EBS_gp3_max),
        "Storage binds: reading a batch of 7 takes 978.7 ms, so the accelerator, which needs 636 ms, "
        "is busy 65.0 % of each step and waits for the rest. To keep it fed, storage would have to "
        "deliver 1.613 GB/s, and it delivers 1.049 GB/s: store fewer bytes for each sample, keep them"
        " in memory, or use a faster drive or more of them.",
    ),
    "a storage wall behind a page cache": (
        KITS.replace({"storage.cache.share": 0.138}, storage=Storage.EBS_gp3_max),
        "Storage binds: reading a batch of 7 takes 843.6 ms, so the accelerator, which needs 636 ms, is busy "
        "75.4 % of each step and waits for the rest. Memory serves 13.8 % of the reads. To keep it fed, "
        "storage would have to deliver 1.391 GB/s, and it delivers 1.049 GB/s: store fewer bytes for each "
        "sample, keep more of them in memory, or use a faster drive or more of them.",
    ),
    "a CPU given in bytes prepares what memory serves too": (
        WALL.replace({"storage.cache.share": 0.5}, workers="2 GB/s", storage="20 GB/s"),
        f"{STARVED} To keep it fed, the CPU would have to supply 10.9 GB/s, and it supplies 2 GB/s. {LESS}",
    ),
    "a narrow link": (
        WALL.replace({"dataset.transfer": "602112 B"}, workers=64, link="8 GB/s"),
        "The link binds: copying a batch of 256 takes 19.27 ms, so the accelerator, which needs 11.74 ms, is "
        "busy 60.9 % of each step and waits for the rest. To keep it fed, 13.13 GB/s would have to cross the "
        "link, and 8 GB/s do: send fewer bytes for each sample, for example as uint8.",
    ),
    "overhead, and a crossover ahead": (
        WALL.replace(batch_size=64, phase="training"),
        "The accelerator binds: it needs 20.06 ms for a batch of 64, and the CPU has prepared it in "
        "16 ms. The largest part of each step is fixed overhead: a larger batch spreads that over "
        "more samples. From batch 88 on the CPU would bind.",
    ),
    "DALI for nothing": (
        WALL.replace(workers="50 GB/s", batch_size=512),
        "The accelerator binds: it needs 18.47 ms for a batch of 512, and the CPU has prepared it in "
        "5.12 ms. The largest part of each step is arithmetic: a faster accelerator would shorten it."
        " The accelerator would have to be 3.61 times as fast before the CPU binds.",
    ),
    "DALI with its price": (
        WALL.replace({"dataset.device_time": "0.1 ms"}, workers="50 GB/s", batch_size=512),
        "The accelerator binds: it needs 69.67 ms for a batch of 512, and the CPU has prepared it in 5.12 "
        "ms. The largest part of each step is input work that was moved onto it: some may be better left to "
        "the CPU. The accelerator would have to be 13.6 times as fast before the CPU binds.",
    ),
    "KiTS19 on a good drive": (
        KITS,
        "The accelerator binds: it needs 636 ms for a batch of 7, and the CPU has prepared it in "
        "172.1 ms. The accelerator's own time comes from a measured rate. The accelerator would have "
        "to be 3.7 times as fast before the CPU binds.",
    ),
    "a link that is next": (
        KITS.replace({"dataset.transfer": KITS.size}, workers=200, storage="8 GB/s", link="1.7 GB/s"),
        "The accelerator binds: it needs 636 ms for a batch of 7, and the link has copied it in 603.6"
        " ms. The accelerator's own time comes from a measured rate. The accelerator would have to be"
        " 1.05 times as fast before the link binds.",
    ),
    "one after the other": (
        WALL.replace(overlap=False),
        "Nothing overlaps, so all stages add up to 75.74 ms, and the accelerator is busy 15.5 % of "
        "that. Prefetch batches, so that the slowest resource alone sets the step: that would be the "
        "CPU, with 64 ms.",
    ),
    "eight of them, fed": (
        KNOWN.replace({"hardware.count": 8}, workers=200),
        "The 8 accelerators bind: each needs 100 ms for a batch of 100, and the CPU has prepared one "
        "for each in 40 ms. The accelerator's own time comes from a measured rate. The accelerators "
        "would have to be 2.5 times as fast before the CPU binds.",
    ),
    "eight of them, starved": (
        KNOWN.replace({"hardware.count": 8}),
        "The CPU binds: preparing a batch of 100 for each of the 8 accelerators takes 500 ms, so the "
        "accelerators, which need 100 ms each, are busy 20.0 % of each step and wait for the rest. 80"
        " workers instead of 16 would keep up.",
    ),
    "too few cores": (
        KNOWN.replace({"workers.cores": 8}, workers=4),
        "The CPU binds: preparing a batch of 100 takes 250 ms, so the accelerator, which needs 100 "
        "ms, is busy 40.0 % of each step and waits for the rest. No number of workers keeps up. "
        "However many workers share the 8 cores, together they reach at most 8 times what one does, "
        "and it would take 10 times. More workers still help: up to 2 times what they prepare now. "
        "Use a host with more cores. " + LESS,
    ),
    "workers that wait": (
        KNOWN.replace({"storage.wait": "30 ms", "workers.cores": 16}),
        "The CPU, whose workers wait for storage, binds: waiting for and preparing a batch of 100 "
        "takes 250 ms, so the accelerator, which needs 100 ms, is busy 40.0 % of each step and waits "
        "for the rest. Most of that is waiting, in which cores idle: without it, preparing would take"
        " 62.5 ms. 40 workers instead of 16 would keep up.",
    ),
    "a copy in turn": (
        KNOWN.replace({"dataset.transfer": "100 KB", "link.overlaps": False}, link="1 GB/s"),
        "The accelerator binds: together with the copy it needs 110 ms for a batch of 100, and the CPU has "
        "prepared it in 62.5 ms. In each step the copy takes 10 ms, so the accelerator is busy 90.9 % of it. "
        "The copy would overlap on a stream of its own. The accelerator's own time comes from a measured "
        "rate. The accelerator would have to be 1.9 times as fast before the CPU binds.",
    ),
    "a costly step": (
        KNOWN.replace({"hardware.step_overhead": "150 ms"}),
        "The accelerator binds: it needs 250 ms for a batch of 100, and the CPU has prepared it in "
        "62.5 ms. The largest part of each step is fixed overhead: a larger batch spreads that over "
        "more samples. The accelerator would have to be 4 times as fast before the CPU binds.",
    ),
    "a link of its own for each": (
        KNOWN.replace({"dataset.transfer": "1 MB", "hardware.count": 2}, link="0.5 GB/s", workers=64),
        "The link binds: copying a batch of 100 for each of the 2 accelerators takes 200 ms, so the "
        "accelerators, which need 100 ms each, are busy 50.0 % of each step and wait for the rest. To"
        " keep them fed, 1 GB/s would have to cross each link, and 0.5 GB/s do: send fewer bytes for "
        "each sample, for example as uint8.",
    ),
}


@pytest.mark.parametrize(("pipe", "text"), SAID.values(), ids=SAID)
def test_it_says_what_a_person_would(pipe, text):
    assert pipe.explain() == text


def test_a_tie_is_called_one():
    own = WALL.solve(batch_size=64).resource_times["accelerator"].m_as("s")
    tied = WALL.replace(batch_size=64, workers=Q_(64 / own, "img/s"))
    assert "From batch 65 on the CPU would bind." in tied.explain()
    always = WALL.replace(assumptions=PUBLISHED, workers="2470 img/s")
    assert always.explain().endswith("The CPU takes equally long: if it were any slower, it would bind.")


BYTES_ALONE = WALL.replace(
    hardware=WALL.hardware.of.replace(memory_bandwidth="1 GB/s"),
    assumptions=TUTORIAL.replace(overhead_per_layer="0 ms", overhead_per_step="0 ms"),
    batch_size=8,
)


@pytest.mark.parametrize(
    ("pipe", "said"),
    [
        (BYTES_ALONE, "is memory traffic: a larger batch does more arithmetic for each byte."),
        (
            KNOWN.replace({"dataset.cpu_time": None}, workers="1e9 img/s"),
            "would have to be more than a hundred times as fast",
        ),
        (DISK.replace(workers="1001 img/s"), "The CPU takes almost as long."),
        (DISK.replace(storage="4 MB/s"), "takes 25 s, so the accelerator, which needs 100 ms, "),
        (
            DISK.replace(storage=Storage.S3_connection, assumptions=PUBLISHED),
            "keep them in memory, or open more connections.",
        ),
        (
            WALL.replace(workers="500 MB/s"),
            "the CPU would have to supply 10.9 GB/s, and it supplies 0.5 GB/s.",
        ),
        (
            DISK.replace(
                {"storage.cache.share": 1.0, "storage.cache.bandwidth": "0.5 GB/s"}, storage="1 GB/s"
            ),
            "Memory serves 100.0 % of the reads. To keep it fed, storage and memory together would have to "
            "deliver 1 GB/s, and they deliver 0.5 GB/s: store fewer bytes for each sample.",
        ),
        (
            WALL.replace({"hardware.host_time": "10 ms"}, batch_size=8),
            "The largest part of the rest is fixed overhead: a larger batch spreads that over more samples.",
        ),
        (
            WALL.replace({"dataset.transfer": "uint8"}, workers="99 GB/s", link="0.5 GB/s"),
            " do: send fewer bytes for each sample.",
        ),
    ],
    ids=lambda value: value if type(value) is str else "",
)
def test_it_says_what_follows_and_no_more(pipe, said):
    text = pipe.explain()
    assert said in text
    # Nothing is said behind an advice that ends the explanation.
    assert text.endswith(said) or not said.endswith(("sample.", "connections.", "long."))


def test_a_batch_that_does_not_fit_is_said_first():
    text = WALL.replace(batch_size=4096, phase="training").explain()
    assert text.startswith(
        "The step needs about 179.8 GB of memory, and NVIDIA A100 80GB SXM has 80 GB. Use a batch of at "
        "most 1817. What follows assumes enough memory. The CPU binds"
    )


def test_an_explanation_is_of_one_point():
    assert message(InputError, Pipeline.explain, WALL.replace(batch_size=[1, 2])) == (
        "explain looks at one point, got several values of batch_size. Pass one value of each."
    )


def test_a_worker_is_counted_in_the_singular_and_accelerators_in_the_plural():
    few = KNOWN.replace({"dataset.cpu_time": "1 ms"}, workers=1)
    assert str(few.workers_needed()) == "1 worker is enough at batch 100."
    starved = KNOWN.replace({"hardware.count": 2}, storage="1 MB/s").explain()
    assert "To keep them fed, storage would have to deliver" in starved


# ---- What misled a reader ----------------------------------------------------------------------------------


REQUESTS = "It is the number of requests that limits storage, not their bytes."


def test_where_requests_limit_a_drive_smaller_samples_are_no_advice():
    seeking = DISK.replace({"dataset.size": "100 KB"}, storage=Storage.HDD, assumptions=PUBLISHED)
    text = seeking.explain()
    assert REQUESTS in text
    assert "100 MB/s, and it delivers" in text
    fewer = "read several samples with each request (samples_per_request)"
    assert f" MB/s: {fewer}, keep them in memory, or use a faster" in text
    packed = seeking.replace({"dataset.size": "1 MB", "storage.samples_per_request": 1000}).explain()
    assert REQUESTS not in packed
    assert ": store fewer bytes for each sample, keep them in memory, or use a faster drive or more" in packed


# What each advice to a starved storage does to a pipeline that follows it.
FOLLOWED = {
    "store fewer bytes for each sample": lambda p: p.replace({"dataset.size": p.size / 2}),
    "read several samples with each request (samples_per_request)": lambda p: p.replace(
        {"storage.samples_per_request": 2 * p.storage.samples_per_request}
    ),
    "keep them in memory": lambda p: p.replace({"storage.cache.share": 0.5}),
    "keep more of them in memory": lambda p: p.replace(
        {"storage.cache.share": (1 + p.storage.cache.share) / 2}
    ),
    "open more connections": lambda p: p.replace({"storage.count": 2 * p.storage.count}),
    "more of them": lambda p: p.replace({"storage.count": 2 * p.storage.count}),
    "use a faster drive": lambda p: p.replace(storage=faster(p.storage.of)),
}


def faster(storage):
    if isinstance(storage, Quantity):
        return 2 * storage
    facts = storage.facts
    times = {name: facts[name].value / 2 for name in ("request_latency", "queued_latency") if name in facts}
    rates = {name: 2 * facts[name].value for name in ("bandwidth_sustained", "request_rate") if name in facts}
    return storage.replace(**times, **rates)


@pytest.mark.parametrize("assumed", [TUTORIAL, PUBLISHED], ids=lambda a: a.name)
@pytest.mark.parametrize("drives", [1, 6400])
@pytest.mark.parametrize("size", ["4 KB", "100 MB"])
@pytest.mark.parametrize("source", [*Storage, Q_("0.1 GB/s")], ids=lambda s: getattr(s, "path", "0.1 GB/s"))
def test_each_advice_about_storage_helps_whoever_follows_it(source, size, drives, assumed):
    pipe = DISK.replace(
        {"dataset.size": size, "storage.count": drives, "hardware.rate": "1e15 img/s"},
        storage=source,
        assumptions=assumed,
        workers="1e15 img/s",
    )
    for cached in (
        {},
        {"storage.cache.share": 0.5},
        {"storage.cache.share": 0.9, "storage.cache.bandwidth": "1 MB/s"},
    ):
        pipe = pipe.replace(**cached)
        advice = pipe.explain().rpartition(": ")[2].rstrip(".")
        for one in re.split(", or |, | or (?=more)", advice):
            followed = FOLLOWED[one](pipe)
            assert followed.solve().throughput > 1.05 * pipe.solve().throughput, one


def test_what_would_starve_the_accelerator_even_then_is_named():
    text = DISK.replace(storage="0.1 GB/s", workers="200 img/s").explain()
    assert text.endswith("With faster storage alone the CPU would bind: preparing takes 500 ms.")
    tied = DISK.replace(storage="0.5 GB/s", workers="500 img/s").explain()
    assert tied.startswith("The CPU binds")
    assert tied.endswith("Even then storage would bind: reading takes 200 ms.")


def test_a_loop_that_is_waited_for_is_part_of_what_is_needed_and_of_no_supply():
    text = DISK.replace({"hardware.host_time": "50 ms"}, storage="0.5 GB/s").explain()
    assert "which needs 150 ms with the training loop, is busy 50.0 % of each step" in text
    assert "storage would have to deliver 0.6667 GB/s, and it delivers 0.5 GB/s" in text
    given = DISK.replace({"hardware.host_time": "50 ms"}, workers="500 img/s").explain()
    assert "the CPU would have to supply 666.7 img/s, and it supplies 500 img/s" in given
    link = DISK.replace(
        {"dataset.transfer": "1 MB", "hardware.host_time": "50 ms"}, link="0.5 GB/s"
    ).explain()
    assert "0.6667 GB/s would have to cross the link, and 0.5 GB/s do" in link


def test_no_faster_accelerator_shortens_what_it_waits_for():
    waiting = DISK.replace({"hardware.host_time": "30 ms"})
    assert waiting.explain().endswith("However fast the accelerator itself were, the CPU would not bind.")
    text = waiting.replace({"hardware.host_time": "10 ms"}).explain()
    assert "The accelerator binds: together with the training loop it needs 110 ms" in text
    assert text.endswith("The accelerator would have to be 10 times as fast before the CPU binds.")


def test_pinned_memory_is_advised_to_those_who_copy_from_other_memory():
    copies = {"link": Links.PCIe3_x16, "link.pinned": False, "dataset.transfer": "600 KB"}
    in_turn = KNOWN.replace({"link.overlaps": False}, **copies).explain()
    assert "The copy would overlap from pinned memory and on a stream of its own." in in_turn
    fast = KNOWN.replace({"hardware.rate": "20000 img/s", "dataset.cpu_time": None}, workers="99000 img/s")
    assert (
        fast.replace(**copies, assumptions=PUBLISHED)
        .explain()
        .endswith(
            "12 GB/s would have to cross the link, and 6 GB/s do: copy from pinned memory, or send fewer "
            "bytes for each sample, for example as uint8."
        )
    )


def test_lower_precision_is_advised_where_there_is_one():
    fast = WALL.replace(workers="50 GB/s", batch_size=512)
    assert "is arithmetic: a faster accelerator would shorten it." in fast.explain()
    lower = fast.replace({"hardware.precision": "tf32"}).explain()
    assert "is arithmetic: lower precision or a faster" in lower


def test_workers_that_mostly_wait_are_not_told_to_prepare_less():
    text = KNOWN.replace({"storage.wait": "60 ms", "workers.cores": 8}).explain()
    assert text.startswith("The CPU, whose workers wait for storage, binds: waiting for and preparing a ")
    assert "However many workers share the 8 cores, together they reach at most 56 times" in text
    assert text.endswith(
        "Use a host with more cores. Read several samples with each request or keep them in memory, so that "
        "the workers wait less."
    )
    assert "Part of that is waiting" in KNOWN.replace({"storage.wait": "1 ms"}, workers=8).explain()


def test_what_was_extrapolated_is_called_so():
    text = KITS.replace(hardware=Hardware.Cloud.T4, workers=64, batch_size=2).explain()
    assert "The accelerator's own time is extrapolated from a measured rate." in text
    assert "is memory traffic: faster memory would shorten it." in text


def test_without_overlap_several_accelerators_are_several():
    text = KNOWN.replace({"hardware.count": 2}, overlap=False, workers=50).explain()
    assert "add up to 140 ms, and the accelerators are busy 71.4 % of that." in text
    assert text.endswith("that would be the accelerator, with 100 ms.")


def test_samples_that_the_model_does_not_take_are_pointed_out():
    text = Pipeline(model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=2).explain()
    assert text.endswith(
        "The samples of 500 KB are those of the assumptions: pass dataset=Datasets.KiTS19 for those of "
        f"{Models.UNet3D.name}."
    )
    named = Pipeline(model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=2, dataset=Datasets.KiTS19)
    assert "those of the assumptions" not in named.explain()


def test_threads_that_share_a_lock_are_not_told_to_find_cores():
    text = KNOWN.replace({"workers.kind": "threads", "workers.cores": 16}).explain()
    assert (
        "Carried on from one and two threads on two cores, under a Python with its global lock, threads "
        "would reach at most 4.26 times what one does, and it would take 10 times. A free-threaded build of "
        "Python has no such lock, and was not measured."
    ) in text
    assert text.endswith(f"Use worker processes, which share no lock as threads do. {LESS}")
    assert "more cores" not in text


def test_a_wait_that_makes_no_difference_is_not_mentioned():
    text = KNOWN.replace({"storage.wait": "0.01 ms"}, workers=8).explain()
    assert text.startswith("The CPU binds: preparing a batch")
    assert "waiting" not in text
