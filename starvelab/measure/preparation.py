"""What a worker does to a sample, transform by transform, with a place to cache between any two.

It knows the transforms' functions and the clock; not who calls it, in which thread or process.
"""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from ..errors import InputError

# The parts of an input pipeline in the order in which a sample meets them, and so the rungs of its ladder.
PARTS = ("read", "decode", "transform", "collate", "copy", "compute")
# The parts that a worker does to single samples, which are the ones a transform can belong to.
SAMPLE_PARTS = PARTS[:3]

# What one cached rung of one worker may hold, in samples and in bytes: sizes vary, so one would not do.
CACHED_SAMPLES = 12
CACHED_BYTES = 96e6

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
        Takes what the transform before returned; the first takes the stored bytes.
    part : {"decode", "transform"}
        Which rung of the caching ladder it belongs to.
    """

    name: str
    function: Callable[[Any], Any]
    part: str = "transform"

    def __post_init__(self) -> None:
        if self.part not in SAMPLE_PARTS[1:]:
            raise InputError(
                f"The part of a transform must be decode or transform, got {self.part!r:.80}. "
                "Pass one of these."
            )
        if not callable(self.function):
            raise InputError(
                f"A transform needs a function of a sample, got {self.function!r:.80}. "
                "Pass the function without calling it."
            )


def decode(raw: bytes) -> Image.Image:
    """A JPEG as pixels."""
    image = Image.open(io.BytesIO(raw))
    return image.convert("RGB")


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the image, 8 to 100 % of its area, at a fixed size: usual for ImageNet."""

    side: int = 224

    def __call__(self, image: Image.Image) -> Image.Image:
        """The crop."""
        width, height = image.size
        share, ratio = random.uniform(0.08, 1.0), random.uniform(3 / 4, 4 / 3)
        wide = min(width, (share * width * height * ratio) ** 0.5)
        high = min(height, (share * width * height / ratio) ** 0.5)
        left, top = random.uniform(0, width - wide), random.uniform(0, height - high)
        box = (left, top, left + wide, top + high)
        return image.resize((self.side, self.side), Image.Resampling.BILINEAR, box=box)


def flip(image: Image.Image) -> Image.Image:
    """Mirrored, half of the time."""
    return ImageOps.mirror(image) if random.random() < 0.5 else image


def jitter(image: Image.Image) -> Image.Image:
    """Brightness, contrast and color moved a little."""
    for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = enhance(image).enhance(random.uniform(0.6, 1.4))
    return image


def to_array(image: Image.Image) -> np.ndarray:
    """Channels first, as uint8: one byte a value."""
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def normalize(array: np.ndarray) -> np.ndarray:
    """Float32 with mean 0 and deviation 1: four bytes a value."""
    return (array.astype(np.float32) / 255 - MEAN) / DEVIATION


def photo_transforms(*, side: int = 224, send: str = "float32") -> tuple[Transform, ...]:
    """Decode, random resized crop, flip, color jitter, array, and normalize where float32 is sent.

    Parameters
    ----------
    side : int
        Pixels of the square that the model sees.
    send : {"float32", "uint8"}
        What leaves the worker. With uint8 the accelerator normalizes.

    Raises
    ------
    InputError
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


@dataclass(frozen=True)
class Work:
    """What a worker did for one batch: when, what came from its cache, and the seconds of each transform."""

    start: float
    end: float
    rung: int
    seconds: dict[str, float]


@dataclass
class Preparer:
    """Makes batches, each transform timed; keeps a few samples of each rung that was asked for.

    Parameters
    ----------
    samples : Samples
    transforms : sequence of Transform
    batch_size : int
    storage : callable
        Takes the bytes read, and returns when a slower storage would have delivered them.
    """

    samples: Any
    transforms: Sequence[Transform]
    batch_size: int
    storage: Callable[[int], None]
    _kept: dict[int, list[Any]] = field(default_factory=dict)

    def no_seconds(self) -> dict[str, float]:
        """Nothing spent yet on any transform."""
        return dict.fromkeys(("read", *(transform.name for transform in self.transforms), "collate"), 0.0)

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Any:
        """One sample; the first `rung` parts (read, decode, transform) come from the cache."""
        if rung:
            value = self._from_cache(index, rung)
        else:
            before = time.perf_counter()
            value = self.samples.read(index)
            self.storage(len(value))
            seconds["read"] += time.perf_counter() - before
        for transform in self.transforms:
            if SAMPLE_PARTS.index(transform.part) < rung:
                continue
            before = time.perf_counter()
            value = self._apply(transform, value, index)
            seconds[transform.name] += time.perf_counter() - before
        return value

    def batch(self, number: int, rung: int = 0, out: np.ndarray | None = None) -> tuple[np.ndarray, Work]:
        """Batch `number`, written into `out` where there is one."""
        seconds = self.no_seconds()
        start = time.monotonic()
        for position in range(self.batch_size):
            value = self.sample(number * self.batch_size + position, rung, seconds)
            before = time.perf_counter()
            if out is None:
                out = np.empty((self.batch_size, *value.shape), value.dtype)
            if value.shape != out.shape[1:] or value.dtype != out.dtype:
                raise InputError(
                    f"All samples of a batch must have one shape and type, got {value.dtype} {value.shape} "
                    f"after {out.dtype} {out.shape[1:]}. Let the last transform bring them to one size."
                )
            out[position] = value
            seconds["collate"] += time.perf_counter() - before
        return out, Work(start, time.monotonic(), rung, seconds)

    def _apply(self, transform: Transform, value: Any, index: int) -> Any:
        try:
            return transform.function(value)
        except Exception as error:
            where = self.samples.path(index) if hasattr(self.samples, "path") else f"sample {index}"
            raise InputError(
                f"Transform {transform.name!r} failed on {where}: {type(error).__name__}: {error}. "
                "Try the function on that sample by itself."
            ) from error

    def _from_cache(self, index: int, rung: int) -> Any:
        if rung not in self._kept:
            self._kept[rung] = self._fill(rung)
        kept = self._kept[rung]
        return kept[index % len(kept)]

    def _fill(self, rung: int) -> list[Any]:
        kept, held = [], 0
        for index in range(min(CACHED_SAMPLES, max(len(self.samples), 1))):
            value = self.samples.read(index)
            for transform in self.transforms:
                if SAMPLE_PARTS.index(transform.part) < rung:
                    value = self._apply(transform, value, index)
            kept.append(value)
            held += weight(value)
            if held > CACHED_BYTES:
                break
        return kept


def weight(value: Any) -> int:
    """Bytes that a sample or a batch takes in memory, as far as can be told."""
    if isinstance(value, Image.Image):
        return value.width * value.height * len(value.getbands())
    if isinstance(value, Mapping):
        return sum(weight(each) for each in value.values())
    if isinstance(value, list | tuple):
        return sum(weight(each) for each in value)
    return len(value) if isinstance(value, bytes) else getattr(value, "nbytes", 0)
