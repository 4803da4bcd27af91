"""What of the notebooks' causes can only be measured: decoding, work by pixels, and threads under one lock.

Writes `tests/notebooks/measured.json`, which `tests/test_causes.py` reads. A photo is saved in several sizes
and qualities, and the time of each file is fitted as ``pixels_time * pixels + bytes_time * bytes``. Threads
run loops in Python, which hold the lock, and Fourier transforms, which do not.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from time import perf_counter

import numpy as np
from PIL import Image, ImageFilter

from starvelab.measure import photos
from starvelab.measure.transforms import as_jpeg, decode_times, jpeg_size

from .report import REPOSITORY, machine, options

FILE = REPOSITORY / "tests" / "notebooks" / "measured.json"
SIZES = ("100 KB", "500 KB", "5 MB")


def shortest(work: Callable[[], object], rounds: int) -> float:
    """Return the least seconds of some rounds: what else the machine does only makes one longer."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def gain_of_two_threads(loops: int, transforms: int, rounds: int) -> float:
    """Return how many times as much two threads do as one, of so many Python loops and Fourier transforms."""
    signal = np.random.default_rng(0).standard_normal(1 << 16)

    def work(_: object = None) -> None:
        for _ in range(loops):
            total = 0
            for number in range(40_000):
                total += number & 7
        for _ in range(transforms):
            np.fft.fft(signal)

    with ThreadPoolExecutor(2) as pool:
        alone = shortest(work, rounds)
        together = shortest(lambda: list(pool.map(work, range(2))), rounds)
    return round(2 * alone / together, 2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write, except of the smallest case."""
    asked = options(__doc__, rounds=(15, 1), kinds=(SIZES, SIZES[:1])).parse_args(arguments)
    photo = Image.open(BytesIO(photos("500 KB").read(0))).convert("RGB")
    files = {
        f"{share:g} of the width, quality {quality}": as_jpeg(
            photo.resize((int(photo.width * share), int(photo.height * share))), quality
        )
        for share in (1, 0.7, 0.5, 0.35)
        for quality in (20, 50, 80, 95)
    }
    times = np.array([one.m_as("ms") for one in decode_times(files, rounds=asked.rounds).values()])
    pixels = np.array([width * height / 1e6 for width, height in map(jpeg_size, files.values())])
    sizes = np.array([len(raw) / 1e5 for raw in files.values()])
    both = np.column_stack([pixels, sizes])
    fit, *_ = np.linalg.lstsq(both, times, rcond=None)
    left = np.sum((times - both @ fit) ** 2) / np.sum((times - times.mean()) ** 2)
    kinds = {size: photos(size).read(0) for size in asked.kinds}
    shares = {}
    for name, raw in kinds.items():
        width, height = jpeg_size(raw)
        of_bytes = fit[1] * len(raw) / 1e5
        shares[name] = round(float(of_bytes / (of_bytes + fit[0] * width * height / 1e6)), 3)
    found = {
        "decoding": {
            "ms for a million pixels": round(float(fit[0]), 3),
            "ms for 100 KB": round(float(fit[1]), 3),
            "share explained": round(float(1 - left), 4),
            "share of the bytes": shares,
        },
        "blur": {
            f"{share:g} of the width": round(
                1e3 * shortest(lambda one=one: one.filter(ImageFilter.GaussianBlur(4)), asked.rounds), 2
            )
            for share in (1, 0.5, 0.25)
            for one in [photo.resize((int(photo.width * share), int(photo.height * share)))]
        },
        "two threads": {
            "Python loops": gain_of_two_threads(12, 0, asked.rounds),
            "Fourier transforms": gain_of_two_threads(0, 12, asked.rounds),
        },
        "machine": machine(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    print(json.dumps(found, indent=2))
    if asked.kinds == SIZES:
        FILE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
