"""Several ranks of one job: each writes what it found, and one of them makes one report of all.

Ranks that average their gradients have one pace, so each waits in its step for the one that is last.
What the job waits for data is the longest wait of each step, and not what any rank waits itself.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from starvelab.host import whole_file
from starvelab.measure.verdict import SLIGHT
from starvelab.tables import percent

from ..finding.job import JobFinding
from ..shares import MIN_BATCHES, share_of, without_interruptions

PATIENCE = 20.0  # seconds that the report waits for the ranks that end later
HIDDEN = 0.5  # seconds by which a second of waiting makes a step longer: below that the waits are hidden
SPREAD = 0.02  # of a step, by which waits have to differ for that to be known
NOISE = 0.005  # of a step, by which it differs at least
ONE_PACE = 0.1  # by so much the rates of ranks may differ that wait for each other
APART = 0.1  # share of the time by which a rank waits more than another that it holds up


@dataclass(frozen=True)
class RankLoop:
    """A loop of one rank: its place, what was found, and the wait for each batch and its step [s]."""

    name: str
    finding: JobFinding
    waits: np.ndarray
    steps: np.ndarray


def write(folder: Path, rank: int, loops: Sequence[RankLoop]) -> None:
    """Leave what a rank found for the one that reports."""
    with whole_file(folder / f"{rank}.rank") as part:
        part.write_bytes(pickle.dumps(list(loops)))


def read(folder: Path, count: int = 0, patience: float = PATIENCE) -> dict[int, list[RankLoop]]:
    """Return what the ranks left in a folder, when so many have or it took too long."""
    end = time.monotonic() + patience
    while len(files := sorted(folder.glob("*.rank"))) < count and time.monotonic() < end:
        time.sleep(0.05)
    return {int(file.stem): pickle.loads(file.read_bytes()) for file in files}


def own_rank() -> int | None:
    """Return the number of this process in a distributed training; None where there is none."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    text = os.environ.get("RANK", "")  # of torchrun and others
    return int(text) if text.isdigit() else None


def local_ranks() -> tuple[Path, int, int, int] | None:
    """Return the folder of the ranks of torchrun, this rank, its local one, their number; None without."""
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT")
    if not all(os.environ.get(name, "").isdigit() for name in names):
        return None
    rank, local, count, port = (int(os.environ[name]) for name in names)
    if count < 2:
        return None
    # The ranks have their parent in common. Nobody else may write what is read here.
    folder = Path(tempfile.gettempdir()) / f"starvelab-{os.getuid()}-{os.getppid()}-{port}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return (folder, rank, local, count) if folder.stat().st_uid == os.getuid() else None


def merge(ranks: Mapping[int, Sequence[RankLoop]]) -> list[tuple[str, JobFinding]]:
    """Return what was found of each loop of the job, by all its ranks."""
    names: dict[str, dict[int, RankLoop]] = {}
    for rank, loops in ranks.items():
        for loop in loops:  # of several loops of one name in a rank it is the first one
            names.setdefault(loop.name, {}).setdefault(rank, loop)
    return [(name, _of_all(loops)) for name, loops in names.items()]


def _of_all(loops: Mapping[int, RankLoop]) -> JobFinding:
    found = {rank: loop.finding.replace(rank=rank) for rank, loop in sorted(loops.items())}
    worst = max(found, key=lambda rank: (found[rank].gpu.stall or 0.0, found[rank].waits.host_wait))
    if len(found) == 1:
        return found[worst]
    count = min(len(loop.waits) for loop in loops.values())
    if not _one_pace(found) or count < MIN_BATCHES:
        return found[worst].replace(found=found, together=held_up(loops))
    waits = np.max([loop.waits[:count] for loop in loops.values()], axis=0)
    lengths = np.median([(loop.waits + loop.steps)[:count] for loop in loops.values()], axis=0)
    waits = np.minimum(waits, lengths)
    ordinary = without_interruptions(lengths - waits)
    cost, error = _cost(waits[ordinary], lengths[ordinary])
    hidden, certain = cost + 2 * error < HIDDEN, cost - 2 * error > HIDDEN
    waits *= min(max(cost, 0.0), 1.0) if hidden else 1.0
    share = share_of(waits, lengths, ordinary, max(found[worst].loader.workers or 1, 1))
    together = held_up(loops, share.value, hidden=hidden, certain=certain)
    waited = {"host_wait": share.value, "interval": share.interval}
    return found[worst].replace(found=found, together=together, **waited)


def _cost(waits: np.ndarray, lengths: np.ndarray) -> tuple[float, float]:
    """Return how much longer a step is for each second of the longest wait in it, and the error of that.

    A rank that waits for data, and then for the step of another rank, waits as one that holds up the others.
    Only that its longer waits make no step longer tells the two apart.
    """
    spread = waits - waits.mean()
    known = float(np.sum(spread**2))
    if known <= len(waits) * (SPREAD * lengths.mean()) ** 2 or len(waits) < MIN_BATCHES:
        return 1.0, 1.0
    cost = float(np.sum(spread * lengths)) / known
    rest = lengths - lengths.mean() - cost * spread
    noise = max(float(np.sum(rest**2)) / (len(rest) - 2), (NOISE * lengths.mean()) ** 2)
    return cost, float(np.sqrt(noise / known))


def _one_pace(found: Mapping[int, JobFinding]) -> bool:
    rates = [one.waits.batch_rate.m_as("1/s") for one in found.values()]
    return bool(min(rates) > (1 - ONE_PACE) * max(rates) > 0)


def held_up(
    loops: Mapping[int, RankLoop], job: float = 0.0, *, hidden: bool = False, certain: bool = True
) -> str:
    """Say which rank holds up the others, and what each waits; the job waits so much of its time.

    The waits are `hidden` behind the step of another rank, or it is `certain` that they are not.
    """
    waits = {rank: loop.finding.waits.host_wait for rank, loop in sorted(loops.items())}
    each = "; ".join(f"rank {rank} waits {percent(wait)}" for rank, wait in waits.items())
    if not _one_pace({rank: loop.finding for rank, loop in loops.items()}):
        return f"The ranks go at different rates, so they do not wait for each other: {each}."
    *_, second, longest = sorted(waits.values())
    if longest < SLIGHT and job < SLIGHT:
        return f"No rank waits for data: {each}. Their waits do not tell which computes longest."
    if hidden:
        return (
            "What the ranks wait for data hides behind another rank's step, or what they exchange: steps "
            f"with longer waits take no longer. {each[0].upper()}{each[1:]}."
        )
    if longest - second >= APART:
        last = max(waits, key=waits.__getitem__)
        unless = "" if certain else ", unless another step takes as long, which the times do not tell"
        return f"Rank {last} holds up the others, which wait for it in their step{unless}: {each}."
    return f"No single rank holds up the others: {each}."


def watched_rank(
    function: Callable[..., object], folder: Path, make: Callable[[], Any], rank: int, *arguments: object
) -> object:
    """Run the function of a rank that `torch.multiprocessing` started, under a doctor of its own."""
    with make().watching() as doctor:
        try:
            return function(rank, *arguments)
        finally:
            with suppress(OSError):  # the folder may be full, or gone: that is no error of the job
                write(folder, rank, doctor.rank_loops())


@contextmanager
def spawned(make: Callable[[], Any]) -> Iterator[Path]:
    """Let the ranks that a script spawns meanwhile write what they found into the folder that is given."""
    from unittest.mock import patch  # loaded here: only `starvelab-doctor` replaces anything

    import torch.multiprocessing as processes

    module = sys.modules["torch.multiprocessing.spawn"]  # its function has the same name
    original = processes.start_processes
    folder, process = Path(tempfile.mkdtemp(prefix="starvelab-ranks-")), os.getpid()

    def start(function: Callable[..., object], *how: Any, **more: Any) -> object:
        return original(partial(watched_rank, function, folder, make), *how, **more)

    name = original.__name__
    try:
        with patch.object(module, name, start), patch.object(processes, name, start):
            yield folder
    finally:
        if os.getpid() == process:  # a forked process leaves it to the one that began
            shutil.rmtree(folder, ignore_errors=True)
