"""Time and peak memory of `import starvelab` beside `import mlsysim`, in fresh interpreters that take turns.

The memory of an interpreter that imports nothing is printed beside them: it is part of every figure.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

from .report import NOT_MEASURED, REPOSITORY, machine, number, options, ratios, spread, turns
from .results import save

# What else is installed beside a package is none of it: pint loads dask, which the grader brings.
_CODE = """
import json, re, sys, time
sys.modules["dask"] = None
start = time.perf_counter()
{statement}
seconds = time.perf_counter() - start
try:
    status = open("/proc/self/status").read()
    kilobytes = int(re.search(r"VmHWM:\\s*(\\d+)", status).group(1))
except (OSError, AttributeError):
    import resource
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
print(json.dumps([seconds, kilobytes / 1e3]))
"""


def measure(python: str, statement: str) -> tuple[float, float]:
    """Seconds and megabytes of one import in a fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [python, "-c", _CODE.format(statement=statement)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, variable="STARVELAB_MLSYSIM_0_3", rounds=(15, 1)).parse_args(arguments)
    sides = {"nothing": (sys.executable, "pass"), "starvelab": (sys.executable, "import starvelab")}
    if asked.mlsysim:
        sides["mlsysim"] = (asked.mlsysim, "import mlsysim")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for turn in range(asked.rounds + 1):
        for name, side in sides.items():
            figures = measure(*side)
            if turn:  # the first turn fills the caches of files and bytecode
                found[name].append(figures)
    print(machine())
    print(turns(asked.rounds))
    for name, figures in found.items():
        seconds, megabytes = zip(*figures, strict=True)
        took = "" if name == "nothing" else f"{spread([1e3 * s for s in seconds])} ms, "
        print(f"{name:<10} {took}peak {spread(megabytes)} MB")
    if asked.mlsysim:
        for what, i in (("time", 0), ("memory", 1)):
            ours, theirs = ([figures[i] for figures in found[name]] for name in ("starvelab", "mlsysim"))
            print(f"{what}: mlsysim takes {spread(ratios(ours, theirs))} times as much")
            unit, better = ("s", "times faster") if what == "time" else ("MB", "times less")
            save(
                f"import-{what}",
                f"import: {what}",
                f"{number(statistics.median(ours), 2)} {unit}",
                f"{number(statistics.median(theirs))} {unit} (mlsysim 0.3.0)",
                f"{number(statistics.median(ratios(ours, theirs)), 2)} {better}",
            )
    else:
        print(NOT_MEASURED.format("0.3.0"))


if __name__ == "__main__":
    main()
