"""Between which throughputs a prediction lies, if each value is what one of its sources says."""

import re
from itertools import cycle, islice, product
from random import Random

import pytest

from starvelab import (
    PUBLISHED,
    Datasets,
    Framework,
    Hardware,
    InputError,
    Links,
    MissingValueError,
    Models,
    Pipeline,
    Storage,
)
from tests.cases import WALL

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, assumptions=PUBLISHED)
OFF = 1 + PUBLISHED.model_error


def ends(pipe):
    """The throughputs [img/s] that the sources of its values allow, without the model's own error."""
    low, high = (end.m_as("img/s") for end in pipe.solve().ranges.throughput)
    off = 1 + pipe.assumptions.model_error
    return low * off, high / off


def images(pipe):
    return pipe.solve().throughput.m_as("img/s")


def test_a_prediction_that_the_cpu_binds_is_as_uncertain_as_the_rate_of_its_workers():
    # Eight workers prepare 1090 images a second if one prepares 145.6; its sources say 102.5 to 206.8.
    assert images(PIPE) == pytest.approx(1090, abs=1)
    # Most loaders that were predicted from fewer workers take 0.86 to 1.18 times as long as was predicted.
    crowded = (1 + 0.157 * 7 / 16) / (1 + 0.43 * 7 / 16)
    slow, fast = 102.5 / 145.6 / 1.18 * crowded, 206.8 / 145.6 / 0.86
    assert ends(PIPE) == pytest.approx((images(PIPE) * slow, images(PIPE) * fast))
    # One worker shares nothing, and what all of them supply together was measured with all of them.
    assert ends(PIPE.replace(workers=1)) == pytest.approx((102.5, 206.8))
    assert ends(PIPE.replace(workers="1000 img/s")) == pytest.approx((1000, 1000))


def test_what_is_given_is_taken_as_given():
    one = PIPE.replace(workers=1)
    given = (
        one.replace({"workers.rate": "145.6 img/s"}),
        one.replace(assumptions=PUBLISHED.replace(worker_rate="145.6 img/s")),
    )
    for pipe in (*given, WALL):  # the tutorial has one value for everything
        assert ends(pipe) == pytest.approx((images(pipe), images(pipe)))


def test_the_accelerators_rate_is_that_of_any_framework_unless_one_is_named():
    fed = PIPE.replace(workers="1e5 img/s")
    # MXNet at batch 256; its 3411 were measured at 512.
    assert (*ends(fed), images(fed)) == pytest.approx((1582, 3380, 2470), abs=1)
    low, high = ends(fed.replace({"hardware.rate": Framework("MXNet")}))
    assert 3100 < low < high < 3411
    assert ends(fed.replace({"hardware.rate": "2000 img/s"})) == pytest.approx((2000, 2000))


def test_the_resource_that_binds_may_be_another_at_each_end():
    # 10 GB/s are 20,000 images of 500 KB; 14 GB/s are more than the accelerator takes.
    low, high = ends(WALL.replace(storage=Storage.NVMe_Gen5, workers=64))
    assert (low, high) == pytest.approx((20_000, 21_800), rel=1e-3)


@pytest.mark.parametrize(
    "drive", [Storage.HDD, Storage.NVMe_Gen3, Storage.S3_connection], ids=lambda drive: drive.path
)
def test_whatever_lies_between_the_sources_comes_out_between_the_ends(drive):
    random = Random(drive.path)
    pipe = PIPE.replace(
        {"storage.count": 4}, dataset=Datasets.ImageNet, storage=drive, link=Links.PCIe4_x16, workers=16
    )
    low, high = ends(pipe)
    assert low <= images(pipe) <= high
    for _ in range(3):
        changed = pipe
        for field in ("storage", "link", "dataset"):
            entry = getattr(pipe, field).of
            values = {
                name: fact.low + random.random() * (fact.high - fact.low)
                for name, fact in entry.facts.items()
                if fact.low is not None
            }
            changed = changed.replace(**{field: entry.replace(**values)})
        assert low * (1 - 1e-9) <= images(changed) <= high * (1 + 1e-9)


def test_a_step_shows_its_range_where_its_assumptions_have_ranges():
    assert "1090 img/s (80 % range 491.5 to 2142 img/s): the workers bind" in repr(PIPE.solve())
    assert "img/s: the drive binds" in repr(WALL.solve(storage=Storage.NVMe_Gen5, workers=64))
    # Also where no source disagrees the model may be wrong.
    assert "145.6 img/s (80 % range 122.4 to 173.3 img/s): the workers bind" in repr(
        PIPE.solve({"workers.rate": "145.6 img/s"}, workers=1)
    )


def test_of_a_sweep_each_point_has_its_range():
    swept = PIPE.replace(link=Links.PCIe4_x16).solve(batch_size=[1, 64, 512], workers=[4, 16, 64])
    for batch, workers, low, high, idle, busy in zip(
        [1, 64, 512], [4, 16, 64], *swept.ranges.throughput, *swept.ranges.utilization, strict=True
    ):
        one = PIPE.solve(link=Links.PCIe4_x16, batch_size=batch, workers=workers)
        assert [end.m_as("img/s") for end in one.ranges.throughput] == pytest.approx(
            [low.m_as("img/s"), high.m_as("img/s")]
        )
        assert one.ranges.utilization == pytest.approx((idle, busy))
        assert idle <= one.utilization <= busy


def test_ranges_print_as_a_table_of_one_step_and_of_many():
    ranges = PIPE.solve({"workers.rate": "145.6 img/s"}, workers=1).ranges
    assert repr(ranges).startswith("80 % range\nquantity")
    assert re.search(r"throughput +122.4 img/s +173.3 img/s\nutilization +[\d.]+ % +[\d.]+ %$", repr(ranges))
    many = PIPE.solve(workers=[1, 2])
    assert len(re.findall(r"\[[\d.]+, [\d.]+\]", repr(many.ranges))) == 4
    assert many.spoken_range == ""


def test_an_accelerator_is_busiest_where_it_is_slow_itself():
    low, high = PIPE.solve().ranges.utilization
    # MXNet, whose work alone is faster than its 3411 img/s, behind 585; at the other end an older PyTorch.
    assert 0.9 * 585 / 3410.52 / OFF < low < 585 / 3410.52 / OFF
    assert high == 1


def test_a_data_set_that_comes_with_a_model_has_the_range_of_one_that_is_named():
    unet = PIPE.replace(model=Models.UNet3D, batch_size=2, workers=2)
    assert ends(unet) == ends(unet.replace(dataset=Datasets.KiTS19))


def test_a_sweep_has_columns_for_the_range_where_the_assumptions_have_ranges():
    table = PIPE.sweep(workers=[4, 8])
    lows = [ends(PIPE.replace(workers=n))[0] / OFF for n in (4, 8)]
    assert table["lowest_throughput"].m_as("img/s") == pytest.approx(lows)
    assert "Lowest and highest throughput claim to hold the truth in 80 % of the cases." in repr(table)
    assert "lowest_throughput" not in WALL.sweep(workers=[4, 8]).columns


@pytest.mark.parametrize("phase", ["training", "forward"])
@pytest.mark.parametrize("precision", ["bf16", "tf32", "fp32"])
@pytest.mark.parametrize("path", ["A100", "H200", "L40S"])
def test_a_rate_that_is_extrapolated_is_no_more_certain_than_the_one_it_comes_from(path, precision, phase):
    pipe = PIPE.replace(
        {"hardware.precision": precision},
        hardware=getattr(Hardware.Cloud, path),
        phase=phase,
        workers="1e6 img/s",
    )
    low, high = (end.m_as("img/s") for end in pipe.solve().ranges.throughput)
    assert high > 1.1 * low
    if precision == "bf16":  # half precision has one range by either name
        half = pipe.solve({"hardware.precision": "fp16"}).ranges.throughput
        assert [end.m_as("img/s") for end in half] == [low, high]


def test_each_range_holds_its_point_whatever_binds():
    # The corners of the utilization are not those of the throughput: a slower accelerator is busier.
    supplies = cycle(
        (
            {"workers": "500 img/s"},
            {"workers": 8, "storage": Storage.HDD},
            {"workers": 64, "storage": Storage.NVMe_Gen5, "link": Hardware.Cloud.A100},
            {"workers": "1e6 img/s"},
            {"workers": 64, "batch_size": 4},
        )
    )
    solved = 0
    # Every third of them, so that the next one meets another supply.
    for phase, model, hardware in islice(product(("forward", "training"), Models, Hardware), 0, None, 3):
        parts = {"model": model, "hardware": hardware, "phase": phase, **next(supplies)}
        try:
            step = Pipeline(**parts, assumptions=PUBLISHED).solve()
        except (InputError, MissingValueError):  # no rate was measured, or the samples are not ImageNet's
            continue
        solved += 1
        low, high = step.ranges.throughput
        assert low <= step.throughput <= high, parts
        low, high = step.ranges.utilization
        assert low <= step.utilization <= high, parts
    assert solved > 50
