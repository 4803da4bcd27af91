"""Three small datasets that are no photographs, for whoever brings none: made in memory, always the same."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable

import numpy as np

from ..errors import UnknownNameError
from ..model.parts import Samples
from .samples import MemorySource
from .transforms import Transform

COUNT = 8  # different items of each


def unpack_audio(raw: bytes) -> np.ndarray:
    """Samples of a recording, from a compressed file."""
    sound: np.ndarray = np.frombuffer(zlib.decompress(raw), np.int16).astype(np.float32)
    return sound / np.float32(32768)


def spectrogram(sound: np.ndarray) -> np.ndarray:
    """Energy by time and frequency, of windows of 25 ms every 10 ms at 16 kHz."""
    windows = np.lib.stride_tricks.sliding_window_view(sound, 400)[::160]
    energy: np.ndarray = np.log1p(np.abs(np.fft.rfft(windows * np.hanning(400))))
    return energy.astype(np.float32)


def parse_table(raw: bytes) -> np.ndarray:
    """Numbers of a block of rows, from text with commas."""
    return np.loadtxt(io.BytesIO(raw), delimiter=",", dtype=np.float32)


def standardize(block: np.ndarray) -> np.ndarray:
    """Each column with mean 0 and deviation 1."""
    block = block - block.mean(axis=0)
    scaled: np.ndarray = block / (block.std(axis=0) + 1e-6)
    return scaled


def unpack_volume(raw: bytes) -> np.ndarray:
    """Voxels of a scan, from a compressed file."""
    return np.frombuffer(zlib.decompress(raw), np.int16).reshape(32, 32, 32)


def cut_and_turn(volume: np.ndarray) -> np.ndarray:
    """The middle of a scan, seen from above, with a contrast of its own."""
    part = np.rot90(volume[4:28, 4:28, 4:28], axes=(1, 2)).astype(np.float32)
    return np.ascontiguousarray((part - part.mean()) / (part.std() + 1e-6))


def _recording(rng: np.random.Generator) -> bytes:
    time = np.arange(4 * 16_000) / 16_000
    sound = np.sin(2 * np.pi * rng.uniform(100, 800) * time) + 0.05 * rng.normal(size=time.size)
    return zlib.compress((8000 * sound).astype(np.int16).tobytes())


def _table(rng: np.random.Generator) -> bytes:
    text = io.StringIO()
    np.savetxt(text, rng.normal(size=(256, 40)), delimiter=",", fmt="%.5f")
    return text.getvalue().encode()


def _volume(rng: np.random.Generator) -> bytes:
    smooth = rng.normal(size=(32, 32, 32)).cumsum(axis=0).cumsum(axis=1)
    return zlib.compress(smooth.astype(np.int16).tobytes())


# By name: how an item is made, decoded and transformed.
GIVEN: dict[str, tuple[Callable[[np.random.Generator], bytes], Callable, Callable]] = {
    "recordings": (_recording, unpack_audio, spectrogram),
    "tables": (_table, parse_table, standardize),
    "volumes": (_volume, unpack_volume, cut_and_turn),
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
        source=MemorySource(name, tuple(make(rng) for _ in range(COUNT))),
        transforms=[Transform("decode", decode, part="decode"), Transform("transform", transform)],
    )
