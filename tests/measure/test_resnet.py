"""The network is the published one: its size and its work are those of the paper and of torchvision.

He et al. 2016, Table 1, gives 3.8 x 10^9 multiply-adds for the original; torchvision's version, with the
stride in the 3 x 3 convolution, has 25,557,032 parameters and 4.089 GMAC (its table of ResNet50_Weights).
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from starvelab.measure.resnet import resnet50  # noqa: E402


@pytest.fixture(scope="module")
def network():
    with torch.device("meta"):  # shapes without memory
        return resnet50()


def test_it_has_the_parameters_of_resnet_50(network):
    assert sum(each.numel() for each in network.parameters()) == 25_557_032


def test_it_has_53_convolutions_and_one_linear_layer(network):
    kinds = [type(module).__name__ for module in network.modules()]
    assert (kinds.count("Conv2d"), kinds.count("BatchNorm2d"), kinds.count("Linear")) == (53, 53, 1)


def test_it_does_the_work_of_resnet_50(network):
    counter = FlopCounterMode(display=False)
    with counter:
        out = network(torch.empty(1, 3, 224, 224, device="meta"))
    assert out.shape == (1, 1000)
    assert counter.get_total_flops() / 2 / 1e9 == pytest.approx(4.089, abs=5e-4)


def test_the_stride_stands_in_the_middle_convolution(network):
    strided = [m.kernel_size[0] for m in network.modules() if getattr(m, "stride", None) == (2, 2)]
    # The stem; then in each of three groups the 3 x 3 and the way round.
    assert strided == [7, 3, 1, 3, 1, 3, 1]


def test_it_can_have_other_classes():
    with torch.device("meta"):
        assert list(resnet50(classes=10).parameters())[-1].shape == (10,)
