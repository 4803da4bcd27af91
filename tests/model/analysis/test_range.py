"""Between which throughputs a prediction lies, if each value is what one of its sources says."""

from __future__ import annotations

from random import Random

import pytest

from starvelab import (
    PUBLISHED,
    Datasets,
    Hardware,
    InputError,
    Links,
    Models,
    Pipeline,
    Storage,
    throughput_range,
)
from tests.cases import WALL

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, assumptions=PUBLISHED)


def images(step):
    return step.throughput.m_as("img/s")


def test_a_prediction_that_the_cpu_binds_is_as_uncertain_as_the_rate_of_its_workers():
    found = throughput_range(PIPE)
    # Eight workers prepare 1090 images a second if one prepares 145.6; its sources say 102.5 to 206.8.
    assert images(found.step) == pytest.approx(1090, abs=1)
    assert images(found.lowest) == pytest.approx(images(found.step) * 102.5 / 145.6)
    assert images(found.highest) == pytest.approx(images(found.step) * 206.8 / 145.6)
    (only,) = found.disagreements
    assert only.name == "worker_rate of the assumptions"
    assert only.values == ("102.5 img/s", "206.8 img/s")
    assert "imread_benchmark" in only.origin


def test_what_the_pipeline_gives_itself_is_taken_as_given():
    found = throughput_range(PIPE.replace(worker_rate="145.6 img/s"))
    assert images(found.lowest) == images(found.step) == images(found.highest)
    assert found.disagreements == ()
    assert found.summary == "1090 img/s: no source of its values disagrees with another"


def test_a_value_that_is_replaced_in_the_assumptions_has_no_range():
    found = throughput_range(PIPE.replace(assumptions=PUBLISHED.replace(worker_rate="145.6 img/s")))
    assert found.disagreements == ()


def test_the_tutorials_assumptions_have_no_range():
    assert throughput_range(WALL).disagreements == ()


def test_the_accelerators_rate_is_that_of_any_framework_unless_one_is_named():
    fed = PIPE.replace(cpu_throughput="1e5 img/s")
    found = throughput_range(fed)
    assert (images(found.lowest), images(found.step), images(found.highest)) == pytest.approx(
        (1582, 2470, 3410.52)
    )
    assert found.disagreements[0].values == (
        "2470 img/s (PyTorch)",
        "3411 img/s (MXNet)",
        "1582 img/s (PyTorch (Lambda))",
    )
    assert throughput_range(fed.replace(framework="MXNet")).disagreements == ()
    assert throughput_range(fed.replace(accelerator_rate="2000 img/s")).disagreements == ()


def test_the_resource_that_binds_may_be_another_at_each_end():
    found = throughput_range(WALL.replace(storage=Storage.NVMe_Gen5, workers=64))
    # 10 GB/s are 20,000 images of 500 KB; 14 GB/s are more than the accelerator takes.
    assert (found.lowest.bottleneck, found.highest.bottleneck) == ("storage", "accelerator")
    assert images(found.lowest) == pytest.approx(20_000)


@pytest.mark.parametrize(
    "drive", [Storage.HDD, Storage.NVMe_Gen3, Storage.S3_connection], ids=lambda drive: drive.path
)
def test_whatever_lies_between_the_sources_comes_out_between_the_ends(drive):
    random = Random(drive.path)
    pipe = PIPE.replace(dataset=Datasets.ImageNet, storage=drive, link=Links.PCIe4_x16, workers=16, drives=4)
    found = throughput_range(pipe)
    assert images(found.lowest) <= images(found.step) <= images(found.highest)
    for _ in range(3):
        changed = pipe
        for field in ("storage", "link", "dataset"):
            values = {
                name: fact.low + random.random() * (fact.high - fact.low)
                for name, fact in getattr(pipe, field).facts.items()
                if fact.low is not None
            }
            changed = changed.replace(**{field: getattr(pipe, field).replace(**values)})
        throughput = images(changed.solve())
        assert images(found.lowest) * (1 - 1e-9) <= throughput <= images(found.highest) * (1 + 1e-9)


def test_a_range_reads_as_a_table():
    assert repr(throughput_range(PIPE)).splitlines() == [
        "767.3 to 1548 img/s, and 1090 img/s as assumed: the CPU binds at the low end, and the CPU at the "
        "high end",
        "value                                      its sources say    throughput from          to",
        "------------------------------  --------------------------  -----------------  ----------",
        "worker_rate of the assumptions  102.5 img/s or 206.8 img/s        767.3 img/s  1548 img/s",
    ]


def test_a_sweep_has_no_single_range():
    with pytest.raises(InputError) as caught:
        throughput_range(PIPE.replace(batch_size=[1, 2]))
    assert str(caught.value) == (
        "throughput_range looks at one point, got several values of batch_size. Pass one value of each."
    )
