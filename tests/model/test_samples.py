"""What a sample is: its data set, its stored bytes, and its bytes on the link."""

from __future__ import annotations

import pytest

from starvelab import PUBLISHED, Datasets, Hardware, InputError, Links, Models, Pipeline

UNET = Pipeline(model=Models.UNet3D, hardware=Hardware.Cloud.A100, batch_size=7, assumptions=PUBLISHED)
RESNET = UNET.replace(model=Models.ResNet50, batch_size=256)


def test_a_u_net_reads_volumes_and_not_jpegs():
    assert UNET.size.m_as("MB") == pytest.approx(146.6)
    # 184 ms for each of seven volumes, on eight workers of a host with 16 cores.
    assert UNET.solve().stage_times["transform"].m_as("ms") == pytest.approx(
        7 * 184 / PUBLISHED.speedup(8, 16)
    )
    assert UNET.solve().resource_times == UNET.solve(dataset=Datasets.KiTS19).resource_times


def test_a_language_model_is_not_starved_by_bytes():
    pipe = UNET.replace(model=Models.GPT2_small, batch_size=16)
    assert pipe.size.m_as("KB") == pytest.approx(2.048)
    assert pipe.solve().bottleneck == "accelerator"


def test_the_data_set_of_imagenet_is_what_is_published_anyway():
    named = RESNET.solve(dataset=Datasets.ImageNet)
    assert named.throughput.m_as("img/s") == pytest.approx(RESNET.solve().throughput.m_as("img/s"), rel=1e-3)


def test_a_model_and_a_data_set_must_belong_together():
    with pytest.raises(InputError) as caught:
        UNET.replace(dataset=Datasets.ImageNet)
    assert str(caught.value) == (
        "model and dataset must belong together, got 3D U-Net (MLPerf, KiTS19), which takes 2097152 numbers "
        "a sample, and ImageNet-1k, which gives 150528. Pass one that fits, or your own with "
        ".replace(decoded_elements=...)."
    )
    with pytest.raises(InputError, match=r"^dataset must be an entry of Datasets, got Models.ResNet50\."):
        RESNET.replace(dataset=Models.ResNet50)


@pytest.mark.parametrize(("dtype", "size"), [(None, 602112), ("uint8", 150528), ("float16", 301056)])
def test_decoded_numbers_cross_the_link_in_their_type(dtype, size):
    pipe = RESNET.replace(link=Links.PCIe4_x16, dtype=dtype)
    assert pipe.transferred.m_as("B") == pytest.approx(size)
    assert pipe.solve().stage_times["copy"].m_as("ms") == pytest.approx(256 * size / 26e9 * 1e3)


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
        tutorial.replace(sample_size="500 KB"),
        tutorial.replace(model=Models.ResNet50),
    ):
        assert known.solve().note == ""
