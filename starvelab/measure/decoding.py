"""What decoding a JPEG costs on one core."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from ..units import Q_, Quantity

if TYPE_CHECKING:
    from PIL.Image import Image


def as_jpeg(image: Image, quality: int) -> bytes:
    """The bytes of an image's file at a quality from 0 to 100."""
    file = BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def jpeg_size(raw: bytes) -> tuple[int, int]:
    """Width and height of the image in a file [pixels]."""
    from PIL import Image

    with Image.open(BytesIO(raw)) as image:
        return image.size


def decode_times(files: Mapping[str, bytes], rounds: int = 9) -> dict[str, Quantity]:
    """Time [time] to turn each file into pixels: the median of a few rounds, in which each has its turn.

    Parameters
    ----------
    files : mapping of str to bytes
        What stands in each file, by a name.
    rounds : int
    """
    from PIL import Image

    taken: dict[str, list[float]] = {name: [] for name in files}
    for _ in range(rounds):
        for name, raw in files.items():
            start = perf_counter()
            with Image.open(BytesIO(raw)) as image:
                pixels = image.convert("RGB")
            taken[name].append(perf_counter() - start)
            # Freeing a picture takes time of its own: here, and not inside the next file's.
            del image, pixels
    return {name: Q_(1e3 * median(tries), "ms") for name, tries in taken.items()}
