"""`read_trace`: what a profiler's trace says about a training job, in the words of `watch`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import InputError
from ...units import Q_
from ..finding import JobFinding
from ..waits import share_of, without_interruptions
from . import kineto, nsys
from .batches import batches_of
from .gpu import use_of
from .steps import steps_of
from .timeline import Timeline

SUFFIXES = (".json", ".json.gz", ".sqlite")
MIN_BATCHES = 2  # a trace holds few steps: their spread must do


def read_trace(path: str | os.PathLike[str], *more: str | os.PathLike[str]) -> JobFinding:
    """Read what a profiler recorded of a training job.

    Parameters
    ----------
    path, *more : path
        A trace that PyTorch's profiler wrote with `export_chrome_trace` (.json, .json.gz), or the export of a
        report of Nsight Systems (`nsys export --type sqlite`). Of a distributed training: the traces of its
        ranks, or the folder that holds them.

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
        for timeline in nsys.timelines(file) if nsys.is_sqlite(file) else kineto.timelines(file):
            rank = timeline.rank if timeline.rank is not None else len(found)
            while rank in found:  # two traces of one rank, or of none
                rank += 1
            found[rank] = finding_of(timeline)
    # Where some rank has a GPU, its stall decides.
    worst = max(found, key=lambda rank: (found[rank].stall or 0.0, found[rank].host_wait))
    if len(found) == 1:
        return found[worst]
    return replace(found[worst], rank=worst, ranks=dict(sorted(found.items())))


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


def finding_of(timeline: Timeline) -> JobFinding:
    """What the trace of one process says."""
    batches = batches_of(timeline.loop())
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
    total = float(lengths[ordinary].sum())
    middle, high, highest = 1e3 * np.percentile(waits, [50, 95, 99]) if len(waits) else (0.0, 0.0, 0.0)
    return JobFinding(
        host_wait=host.value,
        interval=host.interval,
        stall=stall.value if stall else None,
        stall_interval=stall.interval if stall else None,
        gpu=use[0] if use else None,
        batches=batches.delivered,
        counted=host.counted,
        min_batches=MIN_BATCHES,
        wait_p50=Q_(float(middle), "ms"),
        wait_p95=Q_(float(high), "ms"),
        wait_p99=Q_(float(highest), "ms"),
        batch_rate=Q_(host.counted / total if total else 0.0, "1/s"),
        first_waits=tuple(Q_(float(wait) / 1e3, "ms") for wait in batches.first),
        interruptions=host.interruptions,
        interrupted=Q_(host.interrupted, "s"),
        steps=steps_of(timeline, batches.waits[ordinary], batches.stretches[ordinary]),
        source="trace",
    )


def _recorded(timeline: Timeline, waits: np.ndarray) -> np.ndarray:
    """Whether the work of the GPU is in the trace at each wait.

    What the GPU does in the first wait was launched before the profiler began, and is not recorded.
    """
    starts = [min(work.starts) for work in timeline.gpus.values() if len(work.starts)]
    recorded = waits[:, 1] > min(starts, default=-np.inf)
    return recorded if recorded.sum() >= MIN_BATCHES else np.ones(len(waits), dtype=bool)


def _whole(timeline: Timeline) -> np.ndarray:
    """From the first piece of work of any GPU to the end of the last, as one stretch."""
    gpus = [work for work in timeline.gpus.values() if len(work.starts)]
    if not gpus:
        return np.empty((0, 2))
    return np.array([[min(min(work.starts) for work in gpus), max(max(work.ends) for work in gpus)]])
