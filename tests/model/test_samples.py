"""What a sample is: its data set, its stored bytes, and its bytes on the link."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
)
from starvelab.model.assumptions import KINDS, loader_kinds
from tests.rejected import message
from tests.strategies import pipelines, workers

UNET = Pipeline(model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=7, assumptions=PUBLISHED)
RATED = {"model": None, "hardware.of": None, "hardware.rate": "99 img/s"}
RESNET = UNET.replace(model=Models.ResNet50, batch_size=256)


def test_a_u_net_reads_volumes_and_not_jpegs():
    assert UNET.size.m_as("MB") == pytest.approx(146.6)
    # 184 ms for each of seven volumes, on eight workers of a host with 16 cores.
    assert UNET.solve().stage_times["transform"].m_as("ms") == pytest.approx(
        7 * 184 / PUBLISHED.speedup(8, 16)
    )
    assert UNET.solve().resource_times == UNET.solve(dataset=Datasets.KiTS19).resource_times


def test_the_data_set_of_imagenet_does_not_take_the_threads_of_a_pool_away():
    """Eight A100 with 80 threads fell from 18,014 to 10,618 images a second."""
    pool = RESNET.replace({"hardware.count": 8, "workers.kind": "pool"}, workers=80)
    named = pool.solve(dataset=Datasets.ImageNet)
    assert named.throughput.m_as("img/s") == pytest.approx(18_014, rel=1e-3)
    assert named.resource_times == pool.solve().resource_times
    assert named.ranges.throughput == pool.solve().ranges.throughput
    slower = Datasets.ImageNet.replace(preparation_time="20 ms")
    assert pool.solve(dataset=slower).throughput < 0.4 * named.throughput


@settings(max_examples=60)
@given(
    st.sampled_from([TUTORIAL, PUBLISHED]),
    st.sampled_from([None, *KINDS]),
    pipelines(model=st.just(Models.ResNet50), dataset=st.just(Samples()), workers=workers),
)
def test_a_data_set_of_the_size_and_cost_that_are_assumed_anyway_changes_nothing(assumed, loader, pipe):
    pipe = pipe.replace({"workers.kind": loader}, assumptions=assumed)
    own = None if loader is None else loader_kinds()[loader].worker_rate
    rate = assumed.worker_rate if own is None else Q_(own, "img/s")
    cost = Q_("1 img") / rate if own is not None or assumed is PUBLISHED else assumed.sample_size / rate
    if own is not None and assumed is TUTORIAL:
        pipe = pipe.replace({"dataset.size": "114.66 KB"})  # on which a pool was measured
    named = Datasets.ImageNet
    if assumed is TUTORIAL:
        named = named.replace(
            sample_size=pipe.size, preparation_time=0.9 * cost.to("ms"), collation_time=0.1 * cost.to("ms")
        )
    before, after = pipe.solve(), pipe.solve(dataset=named)
    for resource, time in before.resource_times.items():
        assert after.resource_times[resource].m_as("ms") == pytest.approx(time.m_as("ms"), rel=1e-3)
    assert before.note == after.note


def test_a_data_set_does_not_take_away_what_the_user_assumes():
    mine = PUBLISHED.replace(worker_rate="50 img/s", sample_size="300 KB")
    for pipe in (
        RESNET.replace(assumptions=mine),
        RESNET.replace({"workers.kind": "pool"}, assumptions=mine),
    ):
        assert of_a_sample(pipe) == pytest.approx(20)
        named = pipe.replace(dataset=Datasets.ImageNet)
        assert (of_a_sample(named), named.size.m_as("KB")) == pytest.approx((20, 300))
    given = Datasets.ImageNet.replace(preparation_time="9 ms", collation_time="1 ms", sample_size="1 MB")
    both = RESNET.replace(assumptions=mine, dataset=given)
    assert (of_a_sample(both), both.size.m_as("MB")) == pytest.approx((10, 1))


def of_a_sample(pipe):
    """CPU time of one sample on one worker [ms]."""
    return pipe.solve({"workers.cores": 1}, workers=1, batch_size=1).stage_times["transform"].m_as("ms")


def test_of_a_larger_image_the_decoding_goes_with_its_bytes():
    decoding, all_of_it = 4.76, 6.48 + 0.38875
    for size, measured in ((20, 111), (500, 114.66), (5000, 114.66)):
        expected = 1000 / 145.6 * (1 + decoding / all_of_it * (size / measured - 1))
        assert of_a_sample(RESNET.replace({"dataset.size": f"{size} KB"})) == pytest.approx(expected)
        named = RESNET.replace({"dataset.size": f"{size} KB"}, dataset=Datasets.ImageNet)
        assert of_a_sample(named) == pytest.approx(expected, rel=1e-3)
        pool = RESNET.replace({"dataset.size": f"{size} KB", "workers.kind": "pool"})
        assert of_a_sample(pool) == pytest.approx(expected * 145.6 / 247)
    # Both sizes that sources give for ImageNet are its own.
    assert of_a_sample(RESNET.replace({"dataset.size": "111 KB"})) == of_a_sample(RESNET)
    assert RESNET.solve({"dataset.size": "111 KB"}).note == ""
    # A hundredth more is not called another size.
    assert RESNET.solve({"dataset.size": "115 KB"}).note == ""
    changed = RESNET.replace(dataset=Datasets.ImageNet.replace(sample_size="5 MB"))
    assert of_a_sample(changed) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("ends", [0, 1])
def test_the_ends_of_a_range_go_with_the_bytes_too(ends):
    scans = RESNET.replace({"dataset.size": "5 MB"}, workers=4)
    times = scans.solve().throughput / RESNET.solve(workers=4).throughput
    small, large = (p.solve(workers=4).ranges.throughput[ends] for p in (RESNET, scans))
    assert (large / small).m_as("") == pytest.approx(times.m_as(""))


PASS = " Pass Samples(cpu_time=...) for your own."
CARRIED = "The rate of a worker was {} on samples of {}, and is carried over to those of {}." + PASS
EXTRAPOLATED = CARRIED.format("measured", "114.7 KB", "5 MB")


@pytest.mark.parametrize(("pipe", "said"), [
    (RESNET.replace({"dataset.size": "5 MB"}), EXTRAPOLATED),
    (RESNET.replace({"dataset.size": "5 MB"}, dataset=Datasets.ImageNet), EXTRAPOLATED),
    (RESNET.replace(dataset=Datasets.ImageNet.replace(sample_size="5 MB")), EXTRAPOLATED),
    (RESNET.replace({"dataset.size": "5 MB"}, **RATED, dataset=Datasets.ImageNet), EXTRAPOLATED),
    (RESNET.replace(dataset=Datasets.Medical5MB), EXTRAPOLATED),
    (RESNET.replace({"dataset.size": "5 MB", "workers.kind": "pool"}), EXTRAPOLATED),
    (RESNET.replace(assumptions=PUBLISHED.replace(sample_size="5 MB")), EXTRAPOLATED),
    (RESNET.replace({"dataset.size": Q_([100, 5000], "KB")}),
     CARRIED.format("measured", "114.7 KB", "other sizes")),
    (UNET.replace({"dataset.size": "5 MB"}), CARRIED.format("measured", "146.6 MB", "5 MB")),
    (UNET.replace({"workers.kind": "pool"}),
     "A thread of a pool is taken to prepare what was measured of a worker process." + PASS),
    (RESNET.replace({"dataset.size": "300 KB"}, **RATED), CARRIED.format("measured", "114.7 KB", "300 KB")),
    (RESNET.replace(**RATED, dataset=Datasets.Cosmoflow), CARRIED.format("measured", "114.7 KB", "2.828 MB")),
    (RESNET.replace({"dataset.size": "5 MB"}, assumptions=TUTORIAL),
     CARRIED.format("assumed", "500 KB", "5 MB")),
], ids=str)  # fmt: skip
def test_a_result_says_on_what_its_worker_was_measured(pipe, said):
    assert pipe.solve().note.endswith(said)
    assert pipe.shape or pipe.explain().endswith(said)


def test_whatever_is_asked_of_a_pipeline_says_so_too():
    pipe = RESNET.replace({"dataset.size": "5 MB"})
    table = pipe.sweep(workers=[1, 2])
    assert f"{EXTRAPOLATED}</p>" in pipe.solve()._repr_html_()
    assert f"{EXTRAPOLATED}</p>" in table._repr_html_()
    tables = (pipe.bill(price="1 USD/h"), pipe.epochs(samples=1000), table)
    for shown in (pipe.workers_needed(), *tables):
        assert EXTRAPOLATED in str(shown)


@pytest.mark.parametrize("given", [
    {"dataset.cpu_time": "20 ms"},
    {"workers.rate": "50 img/s"},
    {"workers": "5000 img/s"},
    {"assumptions": PUBLISHED.replace(worker_rate="50 img/s")},
    {"assumptions": TUTORIAL.replace(worker_rate="250 MB/s")},
    {"dataset": Datasets.Medical5MB.replace(preparation_time="20 ms")},
], ids=str)  # fmt: skip
def test_a_rate_that_is_given_is_taken_as_it_is_at_any_size(given):
    step = RESNET.solve({"dataset.size": "5 MB", **given}, batch_size=1, workers=given.get("workers", 1))
    assert "measured" not in step.note
    assert step.stage_times["transform"].m_as("ms") == pytest.approx(20 if "workers" not in given else 0.2)


def test_a_model_and_a_data_set_must_belong_together():
    assert message(InputError, UNET.replace, dataset=Datasets.ImageNet) == (
        "model and dataset must belong together, got 3D U-Net (MLPerf, KiTS19), which takes 2097152 numbers "
        "a sample, and ImageNet-1k, which gives 150528. Pass one that fits, or your own with "
        ".replace(decoded_elements=...)."
    )
    with pytest.raises(InputError, match=r"^dataset must be an entry of Datasets, got Models.ResNet50\."):
        RESNET.replace(dataset=Models.ResNet50)


@pytest.mark.parametrize("samples", [*Datasets], ids=lambda entry: entry.path)
def test_a_model_takes_no_samples_of_another_content(samples):
    # A data set that lists no `decoded_elements` fits by its content alone.
    for model, content in (
        (Models.ResNet50, "images"),
        (Models.UNet3D, "volumes"),
        (Models.GPT2_small, "text"),
    ):
        describe = partial(Pipeline, model=model, dataset=samples, hardware=Hardware.Cloud.A100, batch_size=2)
        if samples.content == content:
            assert describe().solve().feasible
        else:
            assert message(InputError, describe).startswith("model and dataset must belong together, got ")
    assert message(InputError, RESNET.replace, dataset=Datasets.LibriSpeech) == (
        "model and dataset must belong together, got ResNet-50, which takes images, and LibriSpeech, 960 h, "
        'which gives audio. Pass one that fits, or your own with .replace(content="images").'
    )
    assert RESNET.solve(dataset=samples.replace(content="images", decoded_elements=150528)).feasible


@pytest.mark.parametrize(("dtype", "size"), [(None, 602112), ("uint8", 150528), ("float16", 301056)])
def test_decoded_numbers_cross_the_link_in_their_type(dtype, size):
    pipe = RESNET.replace({"dataset.transfer": dtype}, link=Links.PCIe4_x16)
    assert pipe.transferred.m_as("B") == pytest.approx(size)
    for stored in ("100 KB", "5 MB"):  # whatever the size of the file
        copied = pipe.solve({"dataset.size": stored}).stage_times["copy"]
        assert copied.m_as("ms") == pytest.approx(256 * size / 26e9 * 1e3)


def test_a_result_says_that_its_samples_are_not_the_models():
    said = (
        "The samples of 500 KB are those of the assumptions: pass dataset=Datasets.KiTS19 for those of "
        "3D U-Net (MLPerf, KiTS19)."
    )
    tutorial = Pipeline(model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=7)
    assert repr(tutorial.solve()).endswith(said)
    assert f"{said}</p>" in tutorial.solve()._repr_html_()
    for known in (
        UNET,
        tutorial.replace(dataset=Datasets.KiTS19),
        tutorial.replace({"dataset.size": "500 KB"}),
        tutorial.replace(model=Models.ResNet50, batch_size=256),
    ):
        assert known.solve().note == ""


def test_an_answer_says_that_it_takes_a_core_for_each_worker_where_nobody_named_them():
    # Scaling was linear without a word: up to six times what was measured.
    said = "Each worker is taken to have a core to itself: pass Workers(cores=...), as a host has them."
    many = RESNET.replace(**RATED, assumptions=PUBLISHED)
    assert said in many.solve(workers=8).note
    assert said in many.replace(workers=8).explain()
    for told in (
        {"workers.cores": 16},
        {"workers.count": 2},
        {"workers.kind": "processes", "workers.cores": 4},
    ):
        assert said not in many.solve(told).note
    assert said not in many.solve(workers="800 img/s").note
    assert said not in many.solve(hardware=Hardware.Cloud.A100).note  # the catalogue knows its host
    assert said not in many.solve(assumptions=TUTORIAL).note  # whose workers share nothing
    bound = many.replace(workers=8, hardware="1e6 img/s")
    wide, narrow = (bound.solve({"workers.cores": n}).ranges.throughput[0] for n in (None, 64))
    assert wide < 0.6 * narrow


def test_the_loops_own_time_is_left_out_with_a_word_where_storage_feeds_short_steps():
    cosmoflow = Pipeline(
        dataset=Samples(size="2.83 MB"), batch_size=1, storage="50 GB/s", workers="1e6 img/s",
        hardware="3.5 ms", assumptions=PUBLISHED,
    )  # fmt: skip
    said = "The loop's own time in a step is left out"
    assert said in cosmoflow.solve().note
    assert said not in cosmoflow.solve({"hardware.host.time": "1.3 ms"}).note
    assert said not in cosmoflow.solve(storage="0.1 GB/s").note
    assert said not in cosmoflow.solve(hardware="350 ms").note
    assert said not in cosmoflow.solve(assumptions=TUTORIAL).note
