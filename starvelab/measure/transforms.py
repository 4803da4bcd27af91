"""Transforms: what a worker does to a sample, such as decoding, cropping and normalizing photographs."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from .. import runtime
from ..errors import InputError, install_hint, requiring
from ..units import Q_, Quantity
from .batches import PARTS, Sample
from .quality import LoadMeter, Quality

if TYPE_CHECKING:
    from PIL.Image import Image

# ImageNet's mean and deviation of the three channels, from torchvision's reference training scripts.
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)[:, None, None]
DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)[:, None, None]


@dataclass(frozen=True)
class Transform:
    """One thing that a worker does to a sample.

    Parameters
    ----------
    name : str
    function : callable
        Takes the result of the transform before it; the first takes the stored bytes.
    part : {"decode", "transform"}
        Which rung of the caching ladder it belongs to.
    """

    name: str
    function: Callable[[Sample], Sample]
    part: str = "transform"

    def __post_init__(self) -> None:
        if self.part not in PARTS[1:3]:
            raise InputError(
                f"The part of a transform must be decode or transform, got {self.part!r:.80}. "
                "Pass one of these."
            )
        if not callable(self.function):
            raise InputError(
                f"A transform needs a function of a sample, got {self.function!r:.80}. "
                "Pass the function without calling it."
            )


# Pillow is imported where it is used: a pipeline of other transforms does not need it.


def decode(raw: bytes) -> Image:
    """The pixels of a stored image."""
    with requiring("To decode an image", install_hint("notebooks")):
        from PIL import Image

    return Image.open(io.BytesIO(raw)).convert("RGB")


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the image, 8 to 100 % of its area, at a fixed size: usual for ImageNet."""

    side: int = 224

    def __call__(self, image: Image) -> Image:
        """One random crop."""
        from PIL.Image import Resampling

        width, height = image.size
        share, ratio = random.uniform(0.08, 1.0), random.uniform(3 / 4, 4 / 3)
        wide = min(width, (share * width * height * ratio) ** 0.5)
        high = min(height, (share * width * height / ratio) ** 0.5)
        left, top = random.uniform(0, width - wide), random.uniform(0, height - high)
        box = (left, top, left + wide, top + high)
        return image.resize((self.side, self.side), Resampling.BILINEAR, box=box)


def flip(image: Image) -> Image:
    """Mirror the image, half of the time."""
    from PIL import ImageOps

    return ImageOps.mirror(image) if random.random() < 0.5 else image


def jitter(image: Image) -> Image:
    """Change brightness, contrast and color a little, at random."""
    from PIL import ImageEnhance

    for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = enhance(image).enhance(random.uniform(0.6, 1.4))
    return image


def to_array(image: Image) -> np.ndarray:
    """Channels first, as uint8: one byte a value."""
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def normalize(array: np.ndarray) -> np.ndarray:
    """Float32 with mean 0 and deviation 1: four bytes a value."""
    return (array.astype(np.float32) / 255 - MEAN) / DEVIATION


def photo_transforms(*, side: int = 224, send: str = "float32") -> tuple[Transform, ...]:
    """Return these: decode, random resized crop, flip, color jitter, array, and normalize for float32.

    Parameters
    ----------
    side : int
        Pixels of the square that the model sees.
    send : {"float32", "uint8"}
        What leaves the worker. With uint8 the accelerator normalizes.

    Raises
    ------
    InputError
        If `send` is neither.
    """
    if send not in ("float32", "uint8"):
        raise InputError(f"send must be float32 or uint8, got {send!r:.80}. Pass one of these.")
    transforms = (
        Transform("decode", decode, part="decode"),
        Transform("crop", RandomResizedCrop(side)),
        Transform("flip", flip),
        Transform("jitter", jitter),
        Transform("to array", to_array),
    )
    return (*transforms, Transform("normalize", normalize)) if send == "float32" else transforms


def as_jpeg(image: Image, quality: int) -> bytes:
    """The bytes of an image's file at a quality from 0 to 100."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def jpeg_size(raw: bytes) -> tuple[int, int]:
    """Width and height of the image in a file [pixels]."""
    from PIL import Image

    with Image.open(io.BytesIO(raw)) as image:
        return image.size


class DecodeTimes(dict[str, Quantity]):
    """The median time [time] of each file, and the `quality` of the rounds in which they were timed."""

    quality: Quality


def decode_times(files: Mapping[str, bytes], rounds: int = 9) -> DecodeTimes:
    """Time [time] to turn each file into pixels: the median of a few rounds, in which each has its turn."""
    from PIL import Image

    taken: dict[str, list[float]] = {name: [] for name in files}
    meter = LoadMeter()
    for _ in range(rounds):
        for name, raw in files.items():
            start = perf_counter()
            with Image.open(io.BytesIO(raw)) as image:
                pixels = image.convert("RGB")
            taken[name].append(perf_counter() - start)
            # Freeing a picture takes time of its own: here, and not inside the next file's.
            del image, pixels
    times = DecodeTimes({name: Q_(1e3 * median(tries), "ms") for name, tries in taken.items()})
    # Of the middle half: the first round also loads what the later ones use.
    varies = max(
        float(np.subtract(*np.quantile(each, (0.75, 0.25))) / median(each)) for each in taken.values()
    )
    times.quality = Quality(meter.background_load(), varies, rounds)
    if runtime.current().clock == "simulated":
        times.quality = Quality(0.0, 0.0, rounds)
    return times
