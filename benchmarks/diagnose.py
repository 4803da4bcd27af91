"""Whether `diagnose` names the bottleneck that was planted, and how soon, with the other cores busy.

Six plants (a slow storage, small files behind a latency, dear decoding, a dear transform, a slow link, a slow
accelerator) under three loaders. One process for each core but one spins beside them, for all of them.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice

from PIL import Image, ImageFilter
from tabulate import tabulate
from tqdm import tqdm

from starvelab import Drive, Pipeline, Requests, Samples
from starvelab.measure import Transform, photo_transforms, photos, usable_cores

from .report import machine, options
from .results import save

LOADERS = ("threads", "processes", "torch")


def blur(image: Image.Image) -> Image.Image:
    """A dear transform: on the whole image, before anything is cut away."""
    for _ in range(3):
        image = image.filter(ImageFilter.GaussianBlur(6))
    return image


def plants() -> Iterator[tuple[str, str, Pipeline]]:
    """What is planted, the part that should be named, and the pipeline, each when asked for."""
    base = Pipeline(dataset=Samples(source=photos("100 KB")), batch_size=8, workers=2, hardware="5 ms")
    yield "a slow storage", "read", base.replace(storage="10 MB/s")
    yield "small files", "read", base.replace(storage=Drive("1 GB/s", requests=Requests("30 ms")))
    yield "large images", "decode", base.replace(dataset=Samples(source=photos("5 MB")), batch_size=2)
    decode, *rest = photo_transforms()
    blurred = (decode, Transform("blur", blur), *rest)
    yield "a dear transform", "transform", base.replace({"dataset.transforms": blurred})
    yield "a slow link", "copy", base.replace(link="40 MB/s")
    yield "a slow accelerator", "compute", base.replace(hardware="100 ms")


def spin() -> None:
    """Keep a core busy."""
    while True:
        pass


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """That many cores kept busy meanwhile."""
    context = multiprocessing.get_context("spawn")
    spinners = [context.Process(target=spin, daemon=True) for _ in range(cores)]
    for spinner in spinners:
        spinner.start()
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.terminate()
            spinner.join()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, budget=("8 s", "1 s"), quiet=(False, True), cases=(None, 1))
    parser.add_argument("--quiet", action="store_true", help="leave the other cores alone")
    parser.add_argument("--budget", help="of each diagnosis (default %(default)s)")
    asked = parser.parse_args(arguments)
    others = max(1, min(usable_cores(), os.cpu_count() or 1) - 1)
    cases = [*islice(((loader, *plant) for loader in LOADERS for plant in plants()), asked.cases)]
    rows, right, longest = [], 0, 0.0
    with nullcontext() if asked.quiet else busy(others):
        for loader, name, part, pipe in tqdm(cases, unit="case"):
            start = time.monotonic()
            timed = pipe.replace({"workers.kind": loader})
            found = timed.diagnose(budget=asked.budget, progress=False)
            took = time.monotonic() - start
            named = found.bottleneck == part
            right, longest = right + named, max(longest, took)
            evidence = f"{found.evidence[found.bottleneck]:.1f~}"
            sure = "yes" if found.confident else "no"
            rows.append([loader, name, part, found.bottleneck, evidence, sure, f"{took:.1f} s"])
    print(machine())
    print("other cores idle" if asked.quiet else f"{others} other core(s) kept busy")
    print(tabulate(rows, headers=["loader", "planted", "part", "named", "adds to a batch", "sure", "took"]))
    print(f"{right} of {len(cases)} named, the slowest in {longest:.1f} s")
    if not asked.quiet:
        save(
            "diagnose",
            "`diagnose`, the other core kept busy",
            f"{right} of {len(cases)} planted bottlenecks named, in {longest:.1f} s at most",
        )


if __name__ == "__main__":
    main()
