"""What the training script of an exercise calls: parts that do real work.

While a script is read, another object does the work that counts, and counts it. A grader keeps that object in
a process that the script cannot reach, so that no count can be changed by the script.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from . import transforms

if TYPE_CHECKING:
    from PIL.Image import Image

BLUR_RADIUS = 2  # pixels
LABELS = json.dumps({f"{number:05}.jpg": number % 1000 for number in range(20_000)})
# Any: takes the name of a part and plain data, and returns plain data.
Work: TypeAlias = Callable[..., Any]
_work: ContextVar[Work | None] = ContextVar("starvelab_parts", default=None)


@contextmanager
def done_by(work: Work) -> Iterator[None]:
    """Let another do what counts: it is called with "labels", "decode" or "blur", and what these take."""
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)


def read_labels() -> dict[str, int]:
    """The label of each image, from a file of twenty thousand lines: some milliseconds each time."""
    work = _work.get()
    labels: dict[str, int] = json.loads(LABELS if work is None else work("labels"))
    return labels


def decode(raw: bytes) -> Image:
    """The pixels of a stored image."""
    from PIL import Image

    work = _work.get()
    return transforms.decode(raw) if work is None else Image.fromarray(work("decode", raw))


def crop(image: Image) -> Image:
    """A random part of the image, as 224 x 224 pixels."""
    return transforms.RandomResizedCrop(224)(image)


def blur(image: Image) -> Image:
    """The image, a little softer."""
    from PIL import Image, ImageFilter

    if (work := _work.get()) is not None:
        return Image.fromarray(work("blur", np.asarray(image)))
    return image.filter(ImageFilter.GaussianBlur(BLUR_RADIUS))


def to_array(image: Image) -> np.ndarray:
    """Channels first, as uint8: one byte a value."""
    return transforms.to_array(image)


def normalize(array: np.ndarray) -> np.ndarray:
    """Float32 with mean 0 and deviation 1: four bytes a value."""
    return transforms.normalize(array)
