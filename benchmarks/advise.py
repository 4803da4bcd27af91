"""Whether `advise` names the best number of workers and what it brings: twelve planted jobs on this machine.

Each job is watched with the workers that it has and with a probe, and `advise` says how many it should have.
Then it runs with every number of workers of a sweep. The items of some jobs wait, as for storage, those of
others compute, which the cores limit, and the training step waits as for a GPU, or computes itself.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from tabulate import tabulate
from torch.utils.data import DataLoader, Dataset

from starvelab.measure.measurement import LoadMeter
from starvelab_doctor import WorkerAdvice, advise, watch

from .report import machine, options

DISTURBED = 0.1  # share of the cores that others used, above which a run is repeated
BEST, RIGHT = 0.05, 0.15  # what the advised number may lack of the best, and what its throughput may be off
Value = TypeVar("Value")
TEXT = b"starvation " * 4000  # compressing it is the work of the CPU


@dataclass(frozen=True)
class Job:
    """A planted job; times in milliseconds."""

    name: str
    wait: float  # of an item
    compute: float  # of an item, on one core
    batch: int
    step: float  # what a training step waits
    workers: int  # that it has
    step_compute: float = 0.0
    side: int = 16  # of an item's image, in pixels


JOBS = (
    Job("slow storage, one worker", 4, 0, 8, 5, 1),
    Job("slow storage, two workers", 2, 0, 16, 10, 2),
    Job("slow storage, no workers", 10, 0, 4, 8, 0),
    Job("decoding, no workers", 0, 2, 8, 10, 0),
    Job("decoding, one worker", 0, 2, 8, 4, 1),
    Job("decoding, beside a step that computes", 0, 1, 8, 2, 1, step_compute=8),
    Job("storage and decoding, one worker", 3, 1, 8, 6, 1),
    Job("storage and decoding, two workers", 1, 1, 16, 12, 2),
    Job("large batches", 1, 0.2, 16, 10, 1, side=224),
    Job("storage, a long step", 5, 0, 32, 40, 1),
    Job("decoding, a long step", 0, 0.5, 32, 20, 0),
    Job("enough workers", 1, 0, 8, 30, 2),
)


def compute(rounds: int) -> None:
    """Work of the CPU."""
    for _ in range(rounds):
        zlib.compress(TEXT, 1)


ENOUGH = 20  # batches that are watched, however busy the machine is


def rounds_of(milliseconds: float) -> int:
    """How many rounds of work take so long on one core that nothing else uses."""
    if not milliseconds:
        return 0
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        compute(20)
        taken.append((time.perf_counter() - begun) / 20)
    return max(1, round(milliseconds / 1e3 / min(taken)))


class Items(Dataset):
    """Items that wait and compute."""

    def __init__(self, job: Job) -> None:
        self.wait, self.rounds, self.side = job.wait / 1e3, rounds_of(job.compute), job.side

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.wait:
            time.sleep(self.wait)
        compute(self.rounds)
        return torch.from_numpy(np.full((3, self.side, self.side), index % 7, np.float32))


class Running:
    """A job whose work is calibrated, so that each of its runs does the same."""

    def __init__(self, job: Job) -> None:
        self.job, self.items, self.rounds = job, Items(job), rounds_of(job.step_compute)

    def loader(self, workers: int) -> DataLoader:
        """Its loader."""
        return DataLoader(self.items, self.job.batch, num_workers=workers)

    def step(self) -> None:
        """Train."""
        time.sleep(self.job.step / 1e3)
        compute(self.rounds)

    def advice(self, seconds: float) -> tuple[float, WorkerAdvice]:
        """What `advise` says of the job as it is, and the share of the cores that others used meanwhile."""
        meter = LoadMeter()
        watched = watch(self.loader(self.job.workers), probe=True, progress=False)
        end = time.perf_counter() + seconds
        for count, _ in enumerate(watched):
            self.step()
            if time.perf_counter() > end and count >= ENOUGH:
                load = meter.background_load()  # while the workers are alive, so that they are not the others
                break
        return load, advise(watched.result)

    def throughput(self, workers: int, seconds: float) -> tuple[float, float]:
        """Samples a second, without what was prepared while the workers started, and the load of others."""
        batches = iter(self.loader(workers))
        for _ in islice(batches, 3 * workers + 2):
            self.step()
        meter = LoadMeter()
        begun, count = time.perf_counter(), 0
        for _ in batches:
            self.step()
            count += 1
            now = time.perf_counter()
            # Workers deliver in bursts: their number of batches makes a turn.
            if now - begun > seconds and count % max(workers, 1) == 0:
                break
        return meter.background_load(), count * self.job.batch / (now - begun)


def undisturbed(measure: Callable[[], tuple[float, Value]]) -> Value:
    """What is measured; where other programs disturbed it, the calmest of three, whatever came out of it."""
    tries: list[tuple[float, Value]] = []
    while len(tries) < 3 and (not tries or tries[-1][0] > DISTURBED):
        tries.append(measure())
    return min(tries, key=lambda one: one[0])[1]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(
        __doc__,
        rounds=(1, 1),
        seconds=((4, 2), (1, 0.2)),
        first=(1, 1),
        last=(len(JOBS), 1),
        sweep=((0, 1, 2, 3, 4, 6, 8), (0, 1)),
    )
    parser.add_argument("--first", type=int, help="number of the first job (default 1)")
    parser.add_argument("--last", type=int, help="number of the last job")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="This DataLoader will create")  # more workers than cores
    rows, best, right = [], 0, 0
    for job in JOBS[asked.first - 1 : asked.last]:
        running = Running(job)
        advice = undisturbed(partial(running.advice, asked.seconds[0] * asked.rounds))
        advised = advice.best
        sweep = {
            workers: undisturbed(partial(running.throughput, workers, asked.seconds[1] * asked.rounds))
            for workers in sorted({*asked.sweep, advised.workers})
        }
        reached, most = sweep[advised.workers], max(sweep.values())
        off = advised.throughput.m_as("img/s") / reached - 1
        is_best, is_right = reached >= (1 - BEST) * most, abs(off) <= RIGHT
        best, right = best + is_best, right + is_right
        promised, now = (one.throughput.m_as("img/s") for one in (advised, advice.now))
        rates = [f"{rate:.0f} img/s" for rate in (now, promised, reached)]
        fastest = max(sweep, key=sweep.__getitem__)
        of_best = f"{reached / most:.0%}"
        rows.append([job.name, job.workers, advised.workers, fastest, of_best, *rates, f"{off:+.0%}"])
        cpu, depth = advice.finding.machine.prepare_cpu, advice.finding.loader.queue_depth
        print(f"{job.name}: {advice.summary} CPU {cpu}, ready {depth}", flush=True)
        print("  sweep:", {workers: round(rate) for workers, rate in sweep.items()}, flush=True)
    print(machine())
    headers = ["job", "has", "advised", "best", "of the best", "now", "predicted", "measured", "off by"]
    print(tabulate(rows, headers=headers))
    print(f"advised within {BEST:.0%} of the best: {best} of {len(rows)}")
    print(f"predicted within {RIGHT:.0%}: {right} of {len(rows)}")


if __name__ == "__main__":
    main()
