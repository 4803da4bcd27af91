"""What a person would say of a pipeline: what binds, the evidence, the next step."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from starvelab import PUBLISHED, Q_, InputError, Pipeline, Storage, explain, workers_needed
from tests.cases import KITS, WALL
from tests.strategies import pipelines

# 100 ms for a batch, and 16 workers of 100 images a second each.
KNOWN = Pipeline(accelerator_rate="1000 img/s", batch_size=100, cpu_time="10 ms", workers=16)
LESS = "Prepare less for each sample, or do it ahead of the training or on the accelerator."


@given(pipelines())
def test_whatever_the_pipeline_the_explanation_is_a_few_whole_sentences(pipe):
    text = explain(pipe)
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", text)
    # That a batch does not fit takes two sentences before all others.
    assert 2 <= len(sentences) <= (9 if pipe.solve().infeasible_reason else 7)
    for sentence in sentences:
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert sentence.count(": ") <= 1
    assert "  " not in text
    assert ".." not in text
    assert "None" not in text


@pytest.mark.parametrize(
    ("pipe", "text"),
    [
        pytest.param(
            WALL,
            "The CPU binds: preparing a batch of 256 takes 64 ms, so the accelerator, which needs 11.74 "
            "ms, is busy "
            "18.3 % of each step and waits for the rest. 44 workers instead of 8 would keep up, but that "
            "meets other "
            "limits: a typical host has 16 physical cores for each NVIDIA A100 80GB SXM; reading would take "
            f"10.9 GB/s, and the drive gives 7 GB/s. {LESS}",
            id="too few workers",
        ),
        pytest.param(
            KITS.replace(workers=1),
            "The CPU binds: preparing a batch of 7 takes 1288 ms, so the accelerator, which needs 636 ms, "
            "is busy "
            "49.4 % of each step and waits for the rest. 3 workers instead of 1 would keep up.",
            id="a few more workers",
        ),
        pytest.param(
            WALL.replace(worker_rate="100 img/s", assumptions=PUBLISHED),
            "The CPU binds: preparing a batch of 256 takes 342 ms, so the accelerator, which needs 103.6 "
            "ms, is busy "
            "30.3 % of each step and waits for the rest. No number of workers keeps up. A typical host has "
            "16 cores: together its workers reach at most 18.1 times what one does, and it would take "
            "24.7 times. More of them still help: up to 2.41 times what they prepare now. " + LESS,
            id="no number of workers",
        ),
        pytest.param(
            WALL.replace(cpu_throughput="2 GB/s"),
            "The CPU binds: preparing a batch of 256 takes 64 ms, so the accelerator, which needs 11.74 "
            "ms, is busy "
            "18.3 % of each step and waits for the rest. To keep it fed, the CPU would have to supply 10.9 "
            "GB/s, and "
            f"it supplies 2 GB/s. {LESS}",
            id="a CPU given in bytes",
        ),
        pytest.param(
            WALL.replace(cpu_throughput="4000 img/s"),
            "The CPU binds: preparing a batch of 256 takes 64 ms, so the accelerator, which needs 11.74 "
            "ms, is busy "
            "18.3 % of each step and waits for the rest. To keep it fed, the CPU would have to supply "
            "21800 img/s, and "
            f"it supplies 4000 img/s. {LESS}",
            id="a CPU given in images",
        ),
        pytest.param(
            KITS.replace(storage=Storage.EBS_gp3_max),
            "Storage binds: reading a batch of 7 takes 978.7 ms, so the accelerator, which needs 636 ms, "
            "is busy "
            "65.0 % of each step and waits for the rest. To keep it fed, storage would have to deliver "
            "1.613 GB/s, and "
            "it delivers 1.049 GB/s: store fewer bytes for each sample, keep them in memory, or use a "
            "faster drive.",
            id="the storage wall of KiTS19",
        ),
        pytest.param(
            KITS.replace(storage=Storage.EBS_gp3_max, cached_fraction=0.138),
            "Storage binds: reading a batch of 7 takes 843.6 ms, so the accelerator, which needs 636 ms, "
            "is busy 75.4 % of each step and waits for the rest. Memory serves 13.8 % of the reads. To keep "
            "it fed, storage would have to deliver 1.391 GB/s, and it delivers 1.049 GB/s: store fewer bytes "
            "for each sample, keep more of them in memory, or use a faster drive.",
            id="a storage wall behind a page cache",
        ),
        pytest.param(
            WALL.replace(cpu_throughput="2 GB/s", storage="20 GB/s", cached_fraction=0.5),
            "The CPU binds: preparing a batch of 256 takes 64 ms, so the accelerator, which needs 11.74 "
            "ms, is busy 18.3 % of each step and waits for the rest. To keep it fed, the CPU would have to "
            f"supply 10.9 GB/s, and it supplies 2 GB/s. {LESS}",
            id="a CPU given in bytes prepares what memory serves too",
        ),
        pytest.param(
            WALL.replace(workers=64, link="8 GB/s", transfer_size="602112 B"),
            "The link binds: copying a batch of 256 takes 19.27 ms, so the accelerator, which needs 11.74 "
            "ms, is busy "
            "60.9 % of each step and waits for the rest. To keep it fed, 13.13 GB/s would have to cross "
            "the link, and "
            "8 GB/s do: send fewer bytes for each sample, for example as uint8.",
            id="a narrow link",
        ),
        pytest.param(
            WALL.replace(batch_size=64, phase="training"),
            "The accelerator binds: it needs 20.06 ms for a batch of 64, and the CPU has prepared it in 16 "
            "ms. Most of "
            "its step is fixed overhead: a larger batch spreads that over more samples. From batch 88 on "
            "the CPU would "
            "bind.",
            id="overhead, and a crossover ahead",
        ),
        pytest.param(
            WALL.replace(cpu_throughput="50 GB/s", batch_size=512),
            "The accelerator binds: it needs 18.47 ms for a batch of 512, and the CPU has prepared it in "
            "5.12 ms. Most "
            "of its step is arithmetic: lower precision or a faster accelerator would shorten it. The "
            "accelerator would "
            "have to be 3.61 times as fast before the CPU binds.",
            id="DALI for nothing",
        ),
        pytest.param(
            WALL.replace(cpu_throughput="50 GB/s", batch_size=512, device_input_time="0.1 ms"),
            "The accelerator binds: it needs 69.67 ms for a batch of 512, and the CPU has prepared it in "
            "5.12 ms. Most "
            "of its step is input work that was moved onto it: some may be better left to the CPU. The "
            "accelerator "
            "would have to be 13.6 times as fast before the CPU binds.",
            id="DALI with its price",
        ),
        pytest.param(
            KITS,
            "The accelerator binds: it needs 636 ms for a batch of 7, and the CPU has prepared it in 172.1 "
            "ms. Its speed "
            "is a measured one. The accelerator would have to be 3.7 times as fast before the CPU binds.",
            id="KiTS19 on a good drive",
        ),
        pytest.param(
            KITS.replace(workers=200, storage="8 GB/s", link="1.7 GB/s", transfer_size=KITS.size),
            "The accelerator binds: it needs 636 ms for a batch of 7, and the link has copied it in 603.6 "
            "ms. Its speed "
            "is a measured one. The accelerator would have to be 1.05 times as fast before the link binds.",
            id="a link that is next",
        ),
        pytest.param(
            WALL.replace(overlap=False),
            "Nothing overlaps, so all stages add up to 75.74 ms, and the accelerator is busy 15.5 % of "
            "that. Prefetch "
            "batches, so that the slowest resource alone sets the step: that would be 64 ms.",
            id="one after the other",
        ),
        pytest.param(
            KNOWN.replace(accelerators=8, workers=200),
            "The 8 accelerators bind: each needs 100 ms for a batch of 100, and the CPU has prepared one for "
            "each in 40 ms. Its speed is a measured one. The accelerator would have to be 2.5 times as fast "
            "before the CPU binds.",
            id="eight of them, fed",
        ),
        pytest.param(
            KNOWN.replace(accelerators=8),
            "The CPU binds: preparing a batch of 100 for each of the 8 accelerators takes 500 ms, so these, "
            "which need 100 ms, are busy 20.0 % of each step and wait for the rest. 80 workers instead of 16 "
            "would keep up.",
            id="eight of them, starved",
        ),
        pytest.param(
            KNOWN.replace(workers=4, cores=8),
            "The CPU binds: preparing a batch of 100 takes 250 ms, so the accelerator, which needs 100 ms, "
            "is busy 40.0 % of each step and waits for the rest. No number of workers keeps up. More workers"
            " than the 8 cores prepare no more: together they reach at most 8 times what one does, and it "
            "would take 10 times. More of them still help: up to 2 times what they prepare now. "
            f"{LESS}",
            id="too few cores",
        ),
        pytest.param(
            KNOWN.replace(read_wait="30 ms", cores=16),
            "The CPU binds: preparing a batch of 100 takes 250 ms, so the accelerator, which needs 100 ms, "
            "is busy 40.0 % of each step and waits for the rest. Its workers wait for storage: if they did "
            "not, it would take 62.5 ms. 40 workers instead of 16 would keep up.",
            id="workers that wait",
        ),
        pytest.param(
            KNOWN.replace(link="1 GB/s", transfer_size="100 KB", copy_overlaps=False),
            "The accelerator binds: it needs 110 ms for a batch of 100, and the CPU has prepared it in 62.5 "
            "ms. The copy takes 10 ms of that: from pinned memory and on a stream of its own it would "
            "overlap. Its speed is a measured one. The accelerator would have to be 1.76 times as fast "
            "before the CPU binds.",
            id="a copy in turn",
        ),
        pytest.param(
            KNOWN.replace(step_overhead="150 ms"),
            "The accelerator binds: it needs 250 ms for a batch of 100, and the CPU has prepared it in 62.5 "
            "ms. Most of its step is fixed overhead: a larger batch spreads that over more samples. The "
            "accelerator would have to be 4 times as fast before the CPU binds.",
            id="a costly step",
        ),
        pytest.param(
            KNOWN.replace(link="0.5 GB/s", transfer_size="1 MB", accelerators=2, workers=64),
            "The link binds: copying a batch of 100 for each of the 2 accelerators takes 200 ms, so these, "
            "which need 100 ms, are busy 50.0 % of each step and wait for the rest. To keep them fed, 1 GB/s "
            "would have to cross the link, and 0.5 GB/s do: send fewer bytes for each sample, for example as "
            "uint8.",
            id="a link of its own for each",
        ),
    ],
)
def test_it_says_what_a_person_would(pipe, text):
    assert explain(pipe) == text


def test_memory_traffic_is_named_where_it_takes_most_of_the_step():
    bare = WALL.assumptions.replace(overhead_per_layer="0 ms", overhead_per_step="0 ms")
    slow = WALL.hardware.replace(memory_bandwidth="1 GB/s")
    text = explain(WALL.replace(hardware=slow, assumptions=bare, batch_size=8))
    assert "Most of its step is memory traffic: a larger batch does more arithmetic for each byte." in text


def test_a_tie_is_called_one():
    own = WALL.solve(batch_size=64).resource_times["accelerator"].m_as("s")
    tied = WALL.replace(batch_size=64, cpu_throughput=Q_(64 / own, "img/s"), workers=1)
    later = explain(tied)
    assert "From batch 65 on the CPU would bind." in later
    always = WALL.replace(assumptions=PUBLISHED, cpu_throughput="2470 img/s")
    assert explain(always).endswith("They take equally long: with any less supply, the CPU binds.")


def test_a_batch_that_does_not_fit_is_said_first():
    text = explain(WALL.replace(batch_size=4096, phase="training"))
    assert text.startswith(
        "The step needs about 179.8 GB of memory, and NVIDIA A100 80GB SXM has 80 GB. Use a batch of at "
        "most 1817. The CPU binds"
    )


def test_an_explanation_is_of_one_point():
    with pytest.raises(InputError) as caught:
        explain(WALL.replace(batch_size=[1, 2]))
    assert str(caught.value) == (
        "explain looks at one point, got several values of batch_size. Pass one value of each."
    )


def test_a_worker_is_counted_in_the_singular_and_accelerators_in_the_plural():
    few = KNOWN.replace(workers=1, cpu_time="1 ms")
    assert str(workers_needed(few)) == "1 worker is enough at batch 100."
    starved = explain(KNOWN.replace(accelerators=2, storage="1 MB/s"))
    assert "To keep them fed, storage would have to deliver" in starved


def test_a_factor_of_thousands_is_not_said():
    idle = KNOWN.replace(cpu_time=None, cpu_throughput="1e9 img/s")
    assert "would have to be more than a hundred times as fast" in explain(idle)
