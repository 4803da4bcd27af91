"""The model beside this machine's own loaders: three of them, four data sets, one, two and four workers.

Of each loader and data set only one worker is calibrated. How several get in each other's way is the median
of the other data sets' under the same loader, so that no row is predicted with a constant fitted to itself.
The rows with one worker repeat what was calibrated: their error is the drift between two runs. A run that
other programs disturbed is repeated once, whatever came out of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from statistics import median

from tabulate import tabulate
from tqdm import tqdm

from starvelab import Pipeline, Samples
from starvelab.measure import photo_transforms, photos

from .report import machine, options

LOADERS = ("threads", "processes", "torch")
WORKERS = (1, 2, 4)


def data_sets() -> Iterator[tuple[str, Pipeline]]:
    """Pipelines that keep an accelerator waiting, whatever the workers do, each when asked for."""
    base = Pipeline(dataset=Samples(source=photos("100 KB")), batch_size=32, hardware="1 ms")
    yield "100 KB", base
    yield "100 KB as uint8", base.replace({"dataset.transforms": photo_transforms(send="uint8")})
    for size, batch_size in (("500 KB", 16), ("5 MB", 4)):
        yield size, base.replace(dataset=Samples(source=photos(size)), batch_size=batch_size)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(
        __doc__,
        seconds=("2 s", "0.2 s"),
        loaders=(LOADERS, LOADERS[:1]),
        workers=(WORKERS, WORKERS[:1]),
        sets=(4, 2),
    )
    parser.add_argument("--seconds", help="of each run (default %(default)s)")
    asked = parser.parse_args(arguments)
    sets = dict(islice(data_sets(), asked.sets))
    rows, errors, simulated = [], {n: [] for n in asked.workers}, {n: [] for n in asked.workers}
    with tqdm(total=len(asked.loaders) * len(sets) * (2 + len(asked.workers)), unit="run") as bar:
        for loader in asked.loaders:
            alone = {}
            for name, pipe in sets.items():
                kind = pipe.replace({"workers.kind": loader})
                alone[name] = kind.calibrated(seconds=asked.seconds, progress=False)
                bar.update(2)
            for name, calibrated in alone.items():
                bar.set_description(f"{loader}, {name}")
                others = [one.assumptions.contention for other, one in alone.items() if other != name]
                assumed = calibrated.assumptions.replace(contention=median(others))
                for workers in asked.workers:
                    pipe = calibrated.replace(workers=workers, assumptions=assumed)
                    found = pipe.measure(seconds=asked.seconds, repeat=True, progress=False).throughput
                    solved, played = pipe.solve().throughput, pipe.simulate().throughput
                    off = [(rate / found).m_as("") - 1 for rate in (solved, played)]
                    errors[workers].append(abs(off[0]))
                    simulated[workers].append(abs(off[1]))
                    shown = [f"{rate:.4g~}" for rate in (found, solved)]
                    rows.append([loader, name, workers, *shown, *(f"{error:+.1%}" for error in off)])
                    bar.update()
    print(machine())
    headers = ["loader", "data set", "workers", "measured", "model", "off by", "simulation off by"]
    print(tabulate(rows, headers=headers))
    for name, found in (("model", errors), ("simulation", simulated)):
        every = [error for each in found.values() for error in each]
        print(f"{name}: median error {median(every):.1%}, worst {max(every):.1%}")
        if several := [error for workers in asked.workers[1:] for error in found[workers]]:
            print(f"  with several workers: median {median(several):.1%}, worst {max(several):.1%}")


if __name__ == "__main__":
    main()
