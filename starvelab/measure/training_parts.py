"""What the training script of an exercise calls: parts that do real work, which can be counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from . import transforms

if TYPE_CHECKING:
    from PIL.Image import Image

BLUR_RADIUS = 2  # pixels
_LABELS = json.dumps({f"{number:05}.jpg": number % 1000 for number in range(20_000)})
_counter: ContextVar[Counter[str] | None] = ContextVar("starvelab_parts", default=None)


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count pixels that are decoded, blurred and cropped meanwhile, and how often labels are read."""
    counter: Counter[str] = Counter()
    token = _counter.set(counter)
    try:
        yield counter
    finally:
        _counter.reset(token)


def _count(what: str, number: int) -> None:
    if (counter := _counter.get()) is not None:
        counter[what] += number


def _pixels(image: Image) -> int:
    return int(image.size[0] * image.size[1])


def read_labels() -> dict[str, int]:
    """The label of each image, from a file of twenty thousand lines: some milliseconds each time."""
    _count("label reads", 1)
    labels: dict[str, int] = json.loads(_LABELS)
    return labels


def decode(raw: bytes) -> Image:
    """The pixels of a stored image."""
    image = transforms.decode(raw)
    _count("decoded pixels", _pixels(image))
    return image


def crop(image: Image) -> Image:
    """A random part of the image, as 224 x 224 pixels."""
    _count("cropped pixels", _pixels(image))
    return transforms.RandomResizedCrop(224)(image)


def blur(image: Image) -> Image:
    """The image, a little softer."""
    from PIL import ImageFilter

    _count("blurred pixels", _pixels(image))
    return image.filter(ImageFilter.GaussianBlur(BLUR_RADIUS))


def to_array(image: Image) -> np.ndarray:
    """Channels first, as uint8: one byte a value."""
    return transforms.to_array(image)


def normalize(array: np.ndarray) -> np.ndarray:
    """Float32 with mean 0 and deviation 1: four bytes a value."""
    _count("normalized values", array.size)
    return transforms.normalize(array)
