"""Ranks of a gloo job on this machine: what a step takes, whose queue is empty, who waits at the barrier.

Each rank is a process with a loader and a training loop, whose work is sleeping, so that two cores are enough
for four of them; the barrier is an all-reduce. Steps are predicted from the sleeps alone.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from tabulate import tabulate

from starvelab import Q_, Accelerator, Pipeline, Ranks, Samples

from .report import machine, number, options
from .results import save

STEP, PREPARE, QUEUE, WARM_UP = 0.1, 0.05, 4, 5
# Ranks, the spread of their steps, and how many times as slowly the last one prepares.
CASES = ((2, 0.5, 1.0), (3, 0.5, 1.0), (4, 0.5, 1.0), (4, 0.2, 1.0), (3, 0.0, 3.0), (4, 0.2, 4.0))


class Rank(NamedTuple):
    """What one rank saw of a step on average: its length and its waits [s], and batches that were ready."""

    rank: int
    step: float
    input_wait: float
    barrier: float
    queue: float


def sleeps(spread: float, steps: int, rank: int) -> np.ndarray:
    """Times of steps with exactly that distribution, in a random order of the rank's own [s]."""
    sigma = np.sqrt(np.log1p(spread**2))
    normal = [NormalDist().inv_cdf((i + 0.5) / steps) for i in range(steps)]
    times = np.exp(sigma * np.array(normal))
    return np.random.default_rng(rank).permutation(STEP * times / times.mean())


def train(rank: int, case: tuple[int, float, float], steps: int, path: str, found: Any) -> None:
    """Be one rank of the job."""
    ranks, spread, slow = case
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=ranks)
    batches: queue.Queue[int] = queue.Queue(maxsize=QUEUE)

    def load() -> None:
        while True:
            time.sleep(PREPARE * (slow if rank == ranks - 1 else 1))
            batches.put(0)

    threading.Thread(target=load, daemon=True).start()
    times, gradient, sums = sleeps(spread, steps, rank), torch.zeros(1), np.zeros(3)
    begun = 0.0
    for step in range(-WARM_UP, steps):
        if step == 0:
            begun, sums = time.perf_counter(), np.zeros(3)
        ready, asked = batches.qsize(), time.perf_counter()
        batches.get()
        received = time.perf_counter()
        time.sleep(times[step % steps])
        done = time.perf_counter()
        dist.all_reduce(gradient)
        sums += (received - asked, time.perf_counter() - done, ready)
    found.put(Rank(rank, (time.perf_counter() - begun) / steps, *(sums / steps)))
    dist.barrier()
    dist.destroy_process_group()


def run(case: tuple[int, float, float], steps: int) -> list[Rank]:
    """What each rank of a job saw."""
    found: Any = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(case, steps, str(Path(folder) / "ranks"), found), nprocs=case[0])
    return sorted(found.get() for _ in range(case[0]))


def predicted(case: tuple[int, float, float]) -> Pipeline:
    """The job as a pipeline."""
    ranks, spread, slow = case
    hardware = Accelerator(rate=Q_(STEP, "s"), ranks=Ranks(ranks, spread, slow))
    return Pipeline(hardware=hardware, batch_size=1, dataset=Samples(cpu_time=Q_(PREPARE, "s")), workers=1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, steps=(200, 3), cases=(CASES, CASES[:1]))
    asked = parser.parse_args(arguments)
    rows, worst = [], 0.0
    for case in asked.cases:
        found = run(case, asked.steps)
        expected, step = predicted(case).solve().step_time.m_as("ms"), 1e3 * found[0].step
        error = expected / step - 1
        worst = max(worst, abs(error))
        seen = ", ".join(f"{1e3 * one.barrier:.0f} ms, {one.queue:.1f}" for one in found)
        rows.append([*case, f"{expected:.1f} ms", f"{step:.1f} ms", f"{error:+.1%}", seen])
    print(machine())
    headers = [
        "ranks",
        "spread",
        "slow",
        "predicted",
        "measured",
        "off by",
        "each: at the barrier, batches ready",
    ]
    print(tabulate(rows, headers=headers))
    save(
        "ranks",
        f"a step of {len(rows)} gloo jobs of 2 to 4 ranks",
        f"off by {number(100 * worst, 2)} % at most",
    )


if __name__ == "__main__":
    main()
