"""`read_trace`: what a profiler's trace says about a training job, in the words of `watch`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from starvelab.errors import InputError

from ..finding.from_times import finding_of
from ..finding.job import JobFinding
from ..shares import share_of, without_interruptions
from . import kineto
from .gpu_spans import steps_of, use_of
from .timeline import HostThread, Timeline

SUFFIXES = (".json", ".json.gz")
MIN_BATCHES = 2  # a trace holds few steps: their spread must do
MIN_KEPT = 2  # batches that remain if the first and the last are left out


def read_trace(path: str | os.PathLike[str], *more: str | os.PathLike[str]) -> JobFinding:
    """Read what a profiler recorded of a training job.

    Parameters
    ----------
    path, *more : path
        A trace that PyTorch's profiler wrote with `export_chrome_trace` (.json, .json.gz). Of a distributed
        training: the traces of its ranks, or the folder that holds them.

    Returns
    -------
    JobFinding
        Of several ranks, that of the one which waits most; `ranks` holds all.

    Raises
    ------
    InputError
        If a file is missing, empty, damaged, or no such trace.

    Notes
    -----
    The trace is read event by event, so its size does not matter. Waits are those for PyTorch's DataLoader,
    in the thread of the training loop.
    """
    found: dict[int, JobFinding] = {}
    for file in _files([Path(path), *map(Path, more)]):
        for timeline in kineto.timelines(file):
            rank = timeline.rank if timeline.rank is not None else len(found)
            while rank in found:  # two traces of one rank, or of none
                rank += 1
            found[rank] = _finding(timeline)
    # Where some rank has a GPU, its stall decides.
    worst = max(found, key=lambda rank: (found[rank].gpu.stall or 0.0, found[rank].waits.host_wait))
    if len(found) == 1:
        return found[worst]
    return found[worst].replace(rank=worst, found=dict(sorted(found.items())))


def _files(paths: list[Path]) -> list[Path]:
    files = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
            if not inside:
                raise InputError(
                    f"A folder of traces must hold files that end in {', '.join(SUFFIXES)}, and {path} holds "
                    "none. Pass the folder that the profiler wrote into."
                )
            files += inside
        elif not path.is_file():
            raise InputError(f"read_trace reads a file, and there is none at {path}. Check the path.")
        elif not path.stat().st_size:
            raise InputError(
                f"A trace must hold events, and {path} is empty. Let the profiler write it again: it does so "
                "when the program leaves its `with` block."
            )
        else:
            files.append(path)
    return files


def _finding(timeline: Timeline) -> JobFinding:
    """Return what the trace of one process says."""
    loop = timeline.loop()
    batches = batches_of(loop)
    waits = (batches.waits[:, 1] - batches.waits[:, 0]) / 1e6
    lengths = (batches.stretches[:, 1] - batches.stretches[:, 0]) / 1e6
    ordinary = without_interruptions(lengths - waits)
    host = share_of(waits, lengths, ordinary)
    known = ordinary & _recorded(timeline, batches.waits)
    if batches.delivered:
        use = use_of(timeline, batches.waits[known], batches.stretches[ordinary])
    else:
        use = use_of(timeline, np.empty((0, 2)), _whole(timeline))
    stall = None
    if use is not None and batches.delivered:
        idle = np.zeros(len(waits))
        idle[known] = use[1] / 1e6
        stall = share_of(idle, lengths, known)
    return finding_of(
        waits,
        lengths,
        ordinary,
        host,
        stall=stall,
        counts=host,
        first_waits=(batches.first / 1e6).tolist(),
        batches=batches.delivered,
        rank=timeline.rank,
        workers=0 if loop.waits and loop.alone == len(loop.waits) else None,
        use=use[0] if use else None,
        min_batches=MIN_BATCHES,
        steps=steps_of(timeline, batches.waits[ordinary], batches.stretches[ordinary]),
        source="trace",
    )


def _recorded(timeline: Timeline, waits: np.ndarray) -> np.ndarray:
    """Return whether the work of the GPU is in the trace at each wait: what it had before is not recorded."""
    starts = [min(work.starts) for work in timeline.gpus.values() if len(work.starts)]
    recorded = waits[:, 1] > min(starts, default=-np.inf)
    return recorded if recorded.sum() >= MIN_BATCHES else np.ones(len(waits), dtype=bool)


def _whole(timeline: Timeline) -> np.ndarray:
    """Return as one stretch what lies from the first piece of work of any GPU to the end of the last."""
    gpus = [work for work in timeline.gpus.values() if len(work.starts)]
    if not gpus:
        return np.empty((0, 2))
    return np.array([[min(min(work.starts) for work in gpus), max(max(work.ends) for work in gpus)]])


@dataclass(frozen=True)
class Batches:
    """Which stretches of a trace are batches: a wait, and what follows it up to the next wait [us]."""

    waits: np.ndarray  # start and end of the wait for each batch that counts
    stretches: np.ndarray  # from the start of that wait to the start of the next
    first: np.ndarray  # waits for the first batch of a pass, which do not count
    delivered: int


def batches_of(thread: HostThread) -> Batches:
    """Return the batches of a training loop.

    The step after the last wait has no end in the trace unless the profiler marked steps. A first batch, with
    the start of the workers, does not count: that of the trace, unless the marks say that the training began
    earlier, and every one before which the loop did nothing, since there a pass ended.
    """
    waits = thread.merged_waits()
    if not len(waits):
        return Batches(waits, waits, np.empty(0), 0)
    ends = [*waits[1:, 0], max((end for _, _, end in thread.steps), default=-np.inf)]
    stretches = np.column_stack([waits[:, 0], ends])
    counts = stretches[:, 1] > waits[:, 1]
    begins = _begins(thread, waits)
    # The `next` that ends a pass comes back without a batch.
    ends_pass = np.append(begins[1:], False)
    if np.sum(counts & ~begins & ~ends_pass) >= MIN_KEPT:
        first = (waits[:, 1] - waits[:, 0])[begins]
        counts &= ~begins & ~ends_pass
    else:
        first = np.empty(0)
    return Batches(waits[counts], stretches[counts], first, len(waits) - int(ends_pass.sum()))


def _begins(thread: HostThread, waits: np.ndarray) -> np.ndarray:
    """Return whether each wait is for the first batch of a pass."""
    begins = np.zeros(len(waits), dtype=bool)
    # With a schedule the profiler starts in the middle of a training; step 0 is its very beginning.
    begins[0] = not thread.steps or min(number for number, _, _ in thread.steps) == 0
    operations = np.sort(np.array(thread.operations))
    between = np.searchsorted(operations, waits[1:, 0]) - np.searchsorted(operations, waits[:-1, 1])
    # A program whose steps are not PyTorch's has no operations anywhere.
    if len(between) and np.mean(between > 0) > 0.5:
        begins[1:] = between == 0
    return begins
