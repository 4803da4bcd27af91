"""A loop that waits for launches beside processes that burn CPU: how much longer it takes, not fitted.

Launching is dispatching many small operations of PyTorch from one thread. The CPU in use is what the system
counts meanwhile, with everything else on the machine.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from statistics import median

import psutil
import torch
from tabulate import tabulate

from starvelab.model.rates import slowdown

from .report import machine, number, options
from .results import save


def burn() -> None:
    """Keep a hardware thread busy."""
    while True:
        sum(range(10_000))


def launch_bound(seconds: float) -> tuple[float, float]:
    """The time of a step of 500 small operations [s], and the share of the CPU in use meanwhile."""
    small = torch.zeros(8)
    psutil.cpu_percent()
    steps, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for _ in range(500):
            small.add_(1.0)
        steps += 1
    return (time.perf_counter() - begun) / steps, psutil.cpu_percent() / 100


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, rounds=(5, 1), seconds=(1.5, 0.05), burners=(3, 1)).parse_args(arguments)
    torch.set_num_threads(1)
    found: dict[int, list[tuple[float, float]]] = {}
    for _ in range(asked.rounds):
        for count in range(asked.burners + 1):
            started = [multiprocessing.Process(target=burn, daemon=True) for _ in range(count)]
            for process in started:
                process.start()
            time.sleep(min(0.3, asked.seconds))
            found.setdefault(count, []).append(launch_bound(asked.seconds))
            for process in started:
                process.kill()
                process.join()
    step, use = ({n: median(run[i] for run in runs) for n, runs in found.items()} for i in (0, 1))
    rows = []
    for count in found:
        predicted = float(slowdown(use[count]) / slowdown(use[0]))
        rows.append([count, f"{use[count]:.0%}", f"{predicted:.2f}", f"{step[count] / step[0]:.2f}"])
    print(machine())
    print(
        tabulate(rows, headers=["burners", "CPU in use", "predicted, times alone", "measured, times alone"])
    )
    last = max(found)
    save(
        "busy",
        f"launches beside {last} burners",
        f"{number(step[last] / step[0])} times as long",
        f"{number(float(slowdown(use[last]) / slowdown(use[0])))} times (predicted)",
    )


if __name__ == "__main__":
    main()
