"""Thirty training jobs of two to four ranks, which exchange their gradients by gloo.

    python rank_jobs.py JOB [--steps 50]       spawns its ranks, or is one of those that torchrun started

Reading and training sleep, so that two cores are enough for four ranks; decoding computes, in one rank.
"""

import argparse
import os
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

QUICK, STEP, SLOW = 1, 40, 120  # milliseconds
READS, STEPS = 0.4, 0.1  # by how much of them they differ, between the least and the most


@dataclass(frozen=True)
class Job:
    """What each rank takes for a batch and for a step [ms], and what is right: who holds up whom."""

    right: str  # "rank 1", or one of "several", "none", "hidden" and "apart"
    data: tuple[int, ...]
    step: tuple[int, ...] = ()  # `STEP` each
    start: str = "spawn"  # or "fork", or "torchrun"
    workers: int = 0
    computes: bool = False  # the slowest data is decoded, and not read
    model: bool = False  # DistributedDataParallel, and no all-reduce of the script's own
    turns: bool = False  # the ranks are late one after the other
    alone: bool = False  # they exchange nothing

    @property
    def ranks(self):
        """How many."""
        return len(self.data)


def slow(rank, ranks, other=QUICK):
    """One rank that prepares its batches slowly."""
    return tuple(SLOW if one == rank else other for one in range(ranks))


TORCHRUN = {"start": "torchrun"}
JOBS = {
    "slow reads, rank 1 of 2": Job("rank 1", slow(1, 2)),
    "slow reads, rank 0 of 2": Job("rank 0", slow(0, 2), **TORCHRUN),
    "slow reads, rank 2 of 3": Job("rank 2", slow(2, 3)),
    "slow reads, rank 1 of 3": Job("rank 1", slow(1, 3), **TORCHRUN),
    "slow reads, rank 0 of 4": Job("rank 0", slow(0, 4)),
    "slow reads, rank 3 of 4": Job("rank 3", slow(3, 4), **TORCHRUN),
    "slow reads, rank 1 of 2, forked": Job("rank 1", slow(1, 2), start="fork"),
    "slow reads, rank 2 of 4, forked": Job("rank 2", slow(2, 4), start="fork"),
    "a slow worker, rank 0 of 2": Job("rank 0", slow(0, 2), workers=1),
    "a slow worker, rank 1 of 3": Job("rank 1", slow(1, 3), workers=1, **TORCHRUN),
    "slow decoding, rank 1 of 2": Job("rank 1", slow(1, 2), computes=True),
    "slow decoding, rank 0 of 3": Job("rank 0", slow(0, 3), computes=True, **TORCHRUN),
    "a model, rank 1 of 2": Job("rank 1", slow(1, 2), model=True),
    "a model, rank 0 of 3": Job("rank 0", slow(0, 3), model=True, **TORCHRUN),
    "one waits more than the other": Job("rank 1", slow(1, 2, 40)),
    "all wait, 2 ranks": Job("several", (SLOW,) * 2),
    "all wait, 3 ranks": Job("several", (SLOW,) * 3, **TORCHRUN),
    "all wait, 4 ranks, forked": Job("several", (SLOW,) * 4, start="fork"),
    "two of four wait": Job("several", (SLOW, QUICK, SLOW, QUICK), **TORCHRUN),
    "late by turns, 2 ranks": Job("several", (SLOW,) * 2, turns=True),
    "late by turns, 3 ranks": Job("several", (SLOW,) * 3, turns=True, **TORCHRUN),
    "nothing waits, 2 ranks": Job("none", (QUICK,) * 2, (SLOW,) * 2, **TORCHRUN),
    "nothing waits, 4 ranks": Job("none", (QUICK,) * 4, (SLOW,) * 4, workers=1),
    "a slow step, rank 1 of 2": Job("none", (QUICK,) * 2, (SLOW, 2 * SLOW)),
    "a slow step, rank 0 of 3": Job("none", (QUICK,) * 3, (2 * SLOW, SLOW, SLOW), **TORCHRUN),
    "a slow step, rank 2 of 4, forked": Job("none", (QUICK,) * 4, (SLOW, SLOW, 2 * SLOW, SLOW), start="fork"),
    "hidden by a slow step, 2 ranks": Job("hidden", (QUICK, 80), (2 * SLOW, STEP)),
    "hidden by a slow step, 3 ranks": Job("hidden", (QUICK, 80, QUICK), (2 * SLOW, STEP, STEP), **TORCHRUN),
    "nothing exchanged, 2 ranks": Job("apart", slow(1, 2), alone=True),
    "nothing exchanged, 3 ranks": Job("apart", slow(0, 3), alone=True, **TORCHRUN),
}


def spread(milliseconds, random_, part):
    """Seconds that differ as those of real work do."""
    return milliseconds / 1e3 * (1 + part * (random_.random() - 0.5))


class Items(Dataset):
    """Items that take a while to read or to decode."""

    def __init__(self, job, rank, count):
        self.job, self.rank, self.count = job, rank, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        job, quick = self.job, self.job.turns and index % self.job.ranks != self.rank
        seconds = spread(QUICK if quick else job.data[self.rank], random.Random(index * 4 + self.rank), READS)
        if job.computes and job.data[self.rank] == SLOW:
            end = time.thread_time() + seconds / 2
            while time.thread_time() < end:
                sum(range(1000))
        else:
            time.sleep(seconds)
        return torch.ones(4)


def train(rank, name, steps, path):
    """Be one rank of a job."""
    job = JOBS[name]
    torch.set_num_threads(1)
    where = {"init_method": f"file://{path}", "world_size": job.ranks, "rank": rank} if path else {}
    dist.init_process_group("gloo", **where)
    model, random_ = torch.nn.Linear(4, 4), random.Random(rank)
    if job.model:
        model = torch.nn.parallel.DistributedDataParallel(model)
    step = (job.step or (STEP,) * job.ranks)[rank]
    for batch in DataLoader(Items(job, rank, steps), 1, num_workers=job.workers):
        time.sleep(spread(step, random_, STEPS))
        if job.model:
            model(batch).sum().backward()
        elif not job.alone:
            dist.all_reduce(torch.ones(4))
    dist.barrier()
    dist.destroy_process_group()


def main():
    """Run one job, or one rank of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--steps", type=int, default=50)
    asked = parser.parse_args()
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]), asked.job, asked.steps, "")
        return
    job = JOBS[asked.job]
    with tempfile.TemporaryDirectory() as folder:
        given = (asked.job, asked.steps, str(Path(folder) / "ranks"))
        mp.start_processes(train, given, job.ranks, start_method=job.start)


if __name__ == "__main__":
    main()
