"""Stored samples to prepare: photo-like images, a folder of your own, or three small given datasets."""

from __future__ import annotations

import atexit
import io
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm.auto import tqdm

from ..errors import InputError, UnknownNameError, install_hint, requiring
from ..host import cache_folder, has_processes, whole_file
from ..model.parts import Samples
from ..units import Q_, Quantity, positive_int
from .batches import PARTS, Preparer, Sample, cached
from .transforms import Transform

if TYPE_CHECKING:
    from PIL.Image import Image

if not has_processes():
    tqdm.monitor_interval = 0  # a thread would watch over the bars, and cannot be started

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")
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


class SamplePreparer(Preparer):
    """Reads samples and transforms them; each transform is timed."""

    def __init__(
        self,
        samples: StoredSource,
        transforms: Sequence[Transform],
        batch_size: int,
        storage: Callable[[int], None],
        requests: int = 1,
    ) -> None:
        super().__init__(("read", *(transform.name for transform in transforms), "collate"), batch_size)
        self.samples, self.transforms, self.storage = samples, transforms, storage
        self.requests = requests  # open at a time
        self.fetched: dict[int, bytes] = {}  # by index, until they are asked for
        self.kept: dict[int, list[Sample]] = {}  # by rung

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One sample; the first `rung` parts (read, decode, transform) come from the cache."""
        if rung:
            if rung not in self.kept:
                self.kept[rung] = cached(lambda each: self._made(each, rung), len(self.samples))
            value = self.kept[rung][index % len(self.kept[rung])]
        else:
            before = time.perf_counter()
            value = self._fetch(index)
            seconds["read"] += time.perf_counter() - before
        for transform in self.transforms:
            if PARTS.index(transform.part) >= rung:
                before = time.perf_counter()
                value = self._apply(transform, value, index)
                seconds[transform.name] += time.perf_counter() - before
        return value

    def _read(self, index: int) -> bytes:
        value = self.samples.read(index)
        self.storage(len(value))
        return value

    def _fetch(self, index: int) -> bytes:
        """Read a sample, and beside it as many of its batch's next as requests are open."""
        if self.requests == 1:
            return self._read(index)
        if index not in self.fetched:
            end = index - index % self.batch_size + self.batch_size
            group = range(index, min(index + self.requests, end))
            with ThreadPoolExecutor(len(group)) as threads:
                self.fetched = dict(zip(group, threads.map(self._read, group), strict=True))
        return self.fetched.pop(index)

    def _made(self, index: int, rung: int) -> Sample:
        """Return what is cached of a sample on a rung."""
        value = self.samples.read(index)
        for transform in self.transforms:
            if PARTS.index(transform.part) < rung:
                value = self._apply(transform, value, index)
        return value

    def _apply(self, transform: Transform, value: Sample, index: int) -> Sample:
        try:
            return transform.function(value)
        except Exception as error:
            contents = getattr(self.samples, "contents", None) or [index]
            content = contents[index % len(contents)]
            where = content if isinstance(content, Path) else f"sample {index}"
            raise InputError(
                f"Transform {transform.name!r} failed on {where}: {type(error).__name__}: {error}. "
                "Try the function on that sample by itself."
            ) from error


def photos(size: str = "100 KB", *, count: int | None = None) -> StoredSource:
    """Photo-like JPEGs of about that size, made on first use and kept.

    Parameters
    ----------
    size : {"100 KB", "500 KB", "5 MB"}
        An ImageNet photograph, the walkthrough's photograph, a medical image.
    count : int, optional
        How many different ones; 32, 16 and 4 unless given.

    Raises
    ------
    InputError
    """
    kind = KINDS.get(size)
    if kind is None:
        raise InputError(
            f"photos makes images of {', '.join(KINDS)}, got {size!r:.80}. "
            "Pass one of these, or use folder(...) for images of your own."
        )
    wanted = kind.count if count is None else int(positive_int(count, "count"))
    name, files = f"photos-{size.replace(' ', '')}-v1", [f"{number:03d}.jpg" for number in range(wanted)]
    home = cache_folder() / name
    if not (all((home / file).exists() for file in files) or _can_be_written(home)):
        home = _temporary_folder() / name
        home.mkdir(exist_ok=True)
    paths = tuple(home / file for file in files)
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    for number in tqdm(missing, desc=f"Making images of {size}", unit="image", disable=not missing):
        with whole_file(paths[number]) as part:  # two kernels may make the same image at once
            _photo(kind, seed=number).save(part, format="JPEG", quality=kind.quality)
    return StoredSource(f"about {size}", paths)


def folder(path: str | os.PathLike[str]) -> StoredSource:
    """Images of your own: every image file in that folder and those below.

    Raises
    ------
    InputError
        If there is no such folder, or no image in it.
    """
    home = Path(path).expanduser()
    if not home.is_dir():
        raise InputError(f"folder needs a folder of images, and {home} is none. Pass the path of one.")
    paths = tuple(sorted(p for p in home.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file()))
    if not paths:
        raise InputError(
            f"folder needs at least one image, and {home} has none. It looks for {', '.join(SUFFIXES)}."
        )
    return StoredSource(str(home), paths)


def _can_be_written(home: Path) -> bool:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(home, os.W_OK)


@cache
def _temporary_folder() -> Path:
    """Where images go if the cache cannot be written; it ends with this process."""
    home = Path(tempfile.mkdtemp(prefix="starvelab-images-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


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
