"""The model beside this machine's own loaders: three of them, four data sets, one, two and four workers.

Of each loader and data set only one worker is calibrated. How several get in each other's way is the median
of the other data sets' under the same loader, so that no row is predicted with a constant fitted to itself.
The rows with one worker repeat what was calibrated: their error is the drift between two runs. A run that
other programs disturbed is repeated once, whatever came out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from statistics import median

from tabulate import tabulate
from tqdm import tqdm

from starvelab.measure import (
    InputPipeline,
    Measurement,
    VirtualAccelerator,
    calibrate,
    compare,
    photo_transforms,
    photos,
    predict,
    run,
)

from .report import machine, options

LOADERS = ("threads", "processes", "torch")
WORKERS = (1, 2, 4)


def data_sets() -> dict[str, InputPipeline]:
    """Pipelines that keep an accelerator waiting, whatever the workers do."""
    base = InputPipeline(samples=photos("100 KB"), accelerator=VirtualAccelerator(step_time="1 ms"))
    return {
        "100 KB": base,
        "100 KB as uint8": base.replace(transforms=photo_transforms(send="uint8")),
        "500 KB": base.replace(samples=photos("500 KB"), batch_size=16),
        "5 MB": base.replace(samples=photos("5 MB"), batch_size=4),
    }


def undisturbed(pipe: InputPipeline, seconds: str) -> Measurement:
    """A run, and if it is not to be trusted the calmer one of two."""
    first = run(pipe, seconds=seconds, progress=False)
    if first.quality.trustworthy:
        return first
    again = run(pipe, seconds=seconds, progress=False)
    return min(first, again, key=lambda one: one.quality.background_load + one.quality.variation)


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
    sets = dict(islice(data_sets().items(), asked.sets))
    rows, errors, simulated = [], {n: [] for n in asked.workers}, {n: [] for n in asked.workers}
    with tqdm(total=len(asked.loaders) * len(sets) * (2 + len(asked.workers)), unit="run") as bar:
        for loader in asked.loaders:
            pipes = {name: pipe.replace(loader=loader) for name, pipe in sets.items()}
            alone = {}
            for name, pipe in pipes.items():
                alone[name] = calibrate(pipe, seconds=asked.seconds, progress=False)
                bar.update(2)
            for name in pipes:
                bar.set_description(f"{loader}, {name}")
                others = [alone[other].contention for other in pipes if other != name]
                known = alone[name].replace(contention=median(others))
                for workers in asked.workers:
                    pipe = pipes[name].replace(workers=workers)
                    found = compare(undisturbed(pipe, asked.seconds), predict(known, pipe))
                    errors[workers].append(abs(found.error))
                    simulated[workers].append(abs(found.simulated_error))
                    forecast = found.forecast
                    shown = [f"{rate:.4g~}" for rate in (found.measurement.throughput, forecast.throughput)]
                    rows.append(
                        [
                            loader,
                            name,
                            workers,
                            *shown,
                            f"{found.error:+.1%}",
                            f"{found.simulated_error:+.1%}",
                        ]
                    )
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
