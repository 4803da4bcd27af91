"""Single solves per second, and points per second of a sweep, beside mlsysim 0.1.1's solver called in a loop.

Both sides run in one process, that of mlsysim's environment: the lab's model needs numpy and pint, which
mlsysim brings. A point of the sweep is a whole pipeline for the lab, and the accelerator alone for mlsysim.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from .report import NOT_MEASURED, REPOSITORY, machine, number, options, ratios, spread, turns
from .results import save


def per_second(call: Callable[[], object], seconds: float) -> float:
    """How often a call can be made in a second."""
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        call()
        count += 1
    return count / elapsed


def ours(side: int) -> dict[str, Callable[[], object]]:
    """The lab's calls, by what they are."""
    import numpy as np

    from starvelab import Hardware, Models, Pipeline, SingleNodeModel

    solver, model, hardware = SingleNodeModel(), Models.ResNet50, Hardware.Cloud.A100
    pipeline = Pipeline(model=model, hardware=hardware)
    values = np.arange(1, side + 1)
    return {
        "single solve": lambda: solver.solve(model=model, hardware=hardware, batch_size=256),
        "pipeline solve": lambda: pipeline.solve(batch_size=256),
        "sweep": lambda: pipeline.sweep(batch_size=values, workers=values),
    }


def theirs() -> Callable[[], object] | None:
    """Their solver's call, or None where it is not installed."""
    if importlib.util.find_spec("mlsysim") is None:
        return None
    import mlsysim
    from mlsysim.core.solver import SingleNodeModel

    solver, model, hardware = SingleNodeModel(), mlsysim.Models.ResNet50, mlsysim.Hardware.Cloud.A100
    return lambda: solver.solve(model=model, hardware=hardware, batch_size=256, precision="fp16")


def run(rounds: int, side: int, seconds: float) -> None:
    """Measure in this interpreter."""
    calls, other = ours(side), theirs()
    if other is not None:
        calls["mlsysim solve"] = other
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(per_second(call, seconds))
    points = [side**2 * rate for rate in found["sweep"]]
    print(machine())
    print(turns(rounds))
    print(f"single solve     {spread(found['single solve'])} per second")
    print(f"pipeline solve   {spread(found['pipeline solve'])} per second")
    print(f"sweep            {spread([1 / rate for rate in found['sweep']])} s for {side**2:,} points,")
    print(f"                 {spread(points)} points per second")
    if other is None:
        print(NOT_MEASURED.format("0.1.1"))
        return
    base = found["mlsysim solve"]
    print(f"mlsysim solve    {spread(base)} per second")
    print("rate of the lab over that of mlsysim:")
    for name, rates in (*list(found.items())[:2], ("sweep", points)):
        print(f"  {name:<14} {spread(ratios(base, rates))}")
    _save(found, points)


def _save(found: dict[str, list[float]], points: list[float]) -> None:
    median = {name: statistics.median(rates) for name, rates in found.items()}
    base, single, pipeline = (median[f"{name} solve"] for name in ("mlsysim", "single", "pipeline"))
    save(
        "solve-accelerator",
        "one solve of the accelerator",
        f"{number(single)} a second",
        f"{number(base)} a second (mlsysim 0.1.1)",
        f"{number(single / base, 2)} times",
    )
    save(
        "solve-pipeline",
        "one solve of a whole pipeline",
        f"{number(pipeline)} a second",
        "(none)",
        f"{number(single / pipeline, 2)} times its accelerator alone",
    )
    save(
        "sweep",
        "a sweep of a million points, whole pipeline",
        f"{number(1 / median['sweep'], 2)} s",
        f"{number(base)} points a second (mlsysim 0.1.1)",
        f"{number(statistics.median(points) / base)} times",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    # The side of the sweep, which is batch sizes times workers, and the seconds of each call.
    sizes = {"rounds": (9, 1), "side": (1000, 10), "seconds": (0.3, 0.01)}
    asked = options(__doc__, variable="STARVELAB_MLSYSIM_0_1", **sizes).parse_args(arguments)
    if not asked.mlsysim:
        run(asked.rounds, asked.side, asked.seconds)
        return
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "STARVELAB_MLSYSIM_0_1": ""}
    command = [asked.mlsysim, "-m", "benchmarks.solve", *(arguments or sys.argv[1:]), "--mlsysim="]
    raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
