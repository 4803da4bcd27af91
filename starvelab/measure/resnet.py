"""ResNet-50 as torchvision has it (v1.5: the stride stands in the 3 x 3 convolution), for timing only.

References
----------
He et al., Deep residual learning for image recognition, CVPR 2016, Table 1.
"""

from __future__ import annotations

from torch import Tensor, nn

# Blocks and inner channels of the four groups of layers.
GROUPS = ((3, 64), (4, 128), (6, 256), (3, 512))
EXPANSION = 4


class Bottleneck(nn.Module):
    """Three convolutions and a way round them."""

    def __init__(self, before: int, inner: int, stride: int) -> None:
        super().__init__()
        after = inner * EXPANSION
        self.body = nn.Sequential(
            *_convolution(before, inner, 1),
            nn.ReLU(inplace=True),
            *_convolution(inner, inner, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(inner, after, 1),
        )
        same = before == after and stride == 1
        self.way_round = nn.Identity() if same else nn.Sequential(*_convolution(before, after, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways, where it is positive."""
        return nn.functional.relu(self.body(x) + self.way_round(x))


def resnet50(*, classes: int = 1000) -> nn.Sequential:
    """The network: 25.6 million parameters with a thousand classes."""
    layers: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for group, (blocks, inner) in enumerate(GROUPS):
        for block in range(blocks):
            layers.append(Bottleneck(channels, inner, stride=2 if block == 0 and group > 0 else 1))
            channels = inner * EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def _convolution(before: int, after: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
    return convolution, nn.BatchNorm2d(after)
