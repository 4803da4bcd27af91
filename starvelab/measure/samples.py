"""Stored samples to prepare: photo-like images, or three small given datasets."""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm.auto import tqdm

from ..errors import InputError, UnknownNameError, install_hint, requiring
from ..host import cache_folder, has_processes, whole_file
from ..model.parts import Samples
from ..units import Q_, Quantity, positive_int
from .transforms import Transform, as_jpeg

if TYPE_CHECKING:
    from PIL.Image import Image

if not has_processes():
    tqdm.monitor_interval = 0  # a thread would watch over the bars, and cannot be started

COUNT = 8  # different items of each


@dataclass(frozen=True)
class Kind:
    """Generated images of one kind: shape in pixels, JPEG quality, noise, and how many are generated."""

    width: int
    height: int
    quality: int
    noise: float
    count: int


# The noise, as a share of the full range, brings each to its size: what costs bytes in a photograph is
# what no neighbor predicts. Sizes differ by a few percent between versions of the encoder.
KINDS = {
    "100 KB": Kind(500, 375, 90, 0.085, 32),
    "500 KB": Kind(1152, 864, 91, 0.082, 16),
    "5 MB": Kind(2560, 2048, 97, 0.130, 4),
}


@dataclass(frozen=True)
class StoredSource:
    """Stored samples, each a file or bytes in memory, under the name that reports call them by."""

    name: str
    contents: tuple[Path | bytes, ...]
    noun: str = "images"  # empty where the name says what they are

    def __len__(self) -> int:
        return len(self.contents)

    def __repr__(self) -> str:
        noun = f"{self.noun} of " if self.noun else ""
        return f"{len(self)} {noun}{self.name}, {self.mean_size.m_as('KB'):.1f} KB on average"

    @property
    def label(self) -> str:
        """What they are, in a sentence."""
        return f"{self.name} {self.noun}".strip()

    def read(self, index: int) -> bytes:
        """The stored bytes of one sample; indices go round."""
        content = self.contents[index % len(self.contents)]
        return content if isinstance(content, bytes) else content.read_bytes()

    @cached_property
    def mean_size(self) -> Quantity:
        """Stored bytes of a sample [data], on average."""
        sizes = [len(one) if isinstance(one, bytes) else one.stat().st_size for one in self.contents]
        return Q_(float(np.mean(sizes)), "B")


def photos(size: str = "100 KB", *, count: int | None = None) -> StoredSource:
    """Return photo-like JPEGs of about that size, made on first use and saved.

    Parameters
    ----------
    size : {"100 KB", "500 KB", "5 MB"}
        An ImageNet photograph, the walkthrough's photograph, a medical image.
    count : int, optional
        How many different ones; by default 32, 16 and 4.

    Raises
    ------
    InputError
    """
    kind = KINDS.get(size)
    if kind is None:
        raise InputError(f"photos makes images of {', '.join(KINDS)}, got {size!r:.80}. Pass one of these.")
    wanted = kind.count if count is None else int(positive_int(count, "count"))
    home = cache_folder() / f"photos-{size.replace(' ', '')}-v1"
    paths = [home / f"{number:03d}.jpg" for number in range(wanted)]
    contents: list[Path | bytes] = [*paths]
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    for number in tqdm(missing, desc=f"Making images of {size}", unit="image", disable=not missing):
        photo = as_jpeg(_photo(kind, seed=number), kind.quality)
        contents[number] = _saved(photo, paths[number])
    return StoredSource(f"about {size}", tuple(contents))


def _saved(photo: bytes, path: Path) -> Path | bytes:
    """Write a photograph into the cache; where that cannot be done, it stays in memory."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:  # two kernels may make the same image at once
            part.write_bytes(photo)
    except OSError:
        return photo
    return path


def _photo(kind: Kind, *, seed: int) -> Image:
    """Soft shapes at several scales, as photographs have them, with noise on top."""
    with requiring("A photo", install_hint("notebooks")):
        from PIL import Image  # loaded here: images of your own need no generator

    rng = np.random.default_rng(seed)
    shape = (kind.height, kind.width)
    canvas = np.zeros((*shape, 3), dtype=np.float32)
    for cells in (3, 8, 21, 55):
        coarse = rng.uniform(0, 255, (cells, cells, 3)).astype(np.uint8)
        smooth = Image.fromarray(coarse).resize((kind.width, kind.height), Image.Resampling.BICUBIC)
        canvas += np.asarray(smooth, dtype=np.float32) / cells
    canvas *= 255 / canvas.max()
    # Photographs of one size in pixels differ in bytes.
    noise = 255 * kind.noise * rng.uniform(0.5, 1.5)
    canvas += rng.normal(0, noise, shape)[..., None].astype(np.float32)
    return Image.fromarray(canvas.clip(0, 255).astype(np.uint8))


# Three small datasets for whoever brings none: each makes, decodes and transforms its items.


def _recording(rng: np.random.Generator) -> bytes:
    time = np.arange(4 * 16_000) / 16_000
    sound = np.sin(2 * np.pi * rng.uniform(100, 800) * time) + 0.05 * rng.normal(size=time.size)
    return zlib.compress((8000 * sound).astype(np.int16).tobytes())


def _unpack_audio(raw: bytes) -> np.ndarray:
    return np.frombuffer(zlib.decompress(raw), np.int16).astype(np.float32) / np.float32(32768)


def _spectrogram(sound: np.ndarray) -> np.ndarray:
    # Windows of 25 ms every 10 ms at 16 kHz.
    windows = np.lib.stride_tricks.sliding_window_view(sound, 400)[::160]
    return np.log1p(np.abs(np.fft.rfft(windows * np.hanning(400)))).astype(np.float32)


def _table(rng: np.random.Generator) -> bytes:
    text = io.StringIO()
    np.savetxt(text, rng.normal(size=(256, 40)), delimiter=",", fmt="%.5f")
    return text.getvalue().encode()


def _parse_table(raw: bytes) -> np.ndarray:
    return np.loadtxt(io.BytesIO(raw), delimiter=",", dtype=np.float32)


def _standardize(block: np.ndarray) -> np.ndarray:
    return np.asarray((block - block.mean(axis=0)) / (block.std(axis=0) + 1e-6))


def _volume(rng: np.random.Generator) -> bytes:
    smooth = rng.normal(size=(32, 32, 32)).cumsum(axis=0).cumsum(axis=1)
    return zlib.compress(smooth.astype(np.int16).tobytes())


def _unpack_volume(raw: bytes) -> np.ndarray:
    return np.frombuffer(zlib.decompress(raw), np.int16).reshape(32, 32, 32)


def _cut_and_turn(volume: np.ndarray) -> np.ndarray:
    part = np.rot90(volume[4:28, 4:28, 4:28], axes=(1, 2)).astype(np.float32)
    return np.ascontiguousarray((part - part.mean()) / (part.std() + 1e-6))


GIVEN = {
    "recordings": (_recording, _unpack_audio, _spectrogram),
    "tables": (_table, _parse_table, _standardize),
    "volumes": (_volume, _unpack_volume, _cut_and_turn),
}


def given_samples(name: str) -> Samples:
    """One of the given datasets, with its transforms: recordings, tables or volumes."""
    if name not in GIVEN:
        raise UnknownNameError(
            f"There is a dataset of {', '.join(GIVEN)}, got {name!r:.80}. Choose one, or bring your own."
        )
    make, decode, transform = GIVEN[name]
    rng = np.random.default_rng(0)
    return Samples(
        source=StoredSource(name, tuple(make(rng) for _ in range(COUNT)), noun=""),
        transforms=[Transform("decode", decode, part="decode"), Transform("transform", transform)],
    )
