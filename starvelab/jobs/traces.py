"""`read_trace`: what a profiler's trace says about a training job, in the words of `watch`.

Exports of Nsight Systems are read here: `nsys export --type sqlite report.nsys-rep`. Their waits are ranges
that the program marked with NVTX: what `torch.autograd.profiler.emit_nvtx` writes for a DataLoader, or marks
of its own whose name speaks of loading or fetching data.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from ..errors import InputError
from ..measure.verdict import share_of, without_interruptions
from . import kineto
from .finding import JobFinding
from .gpu_use import steps_of, use_of
from .timeline import COPY, KERNEL, PAGEABLE, HostThread, Timeline
from .times import finding_of

SUFFIXES = (".json", ".json.gz", ".sqlite")
REPORT = ".nsys-rep"
MIN_BATCHES = 2  # a trace holds few steps: their spread must do
MIN_KEPT = 2  # batches that remain if the first and the last are left out
MAGIC = b"SQLite format 3\x00"
WAIT = re.compile(
    r"dataloader|data.?(load|wait|fetch)|(load|next|get|fetch|wait).?(the.?)?(batch|data)", re.IGNORECASE
)
STEP = re.compile(r"^(profiler)?.?(train(ing)?)?.?(step|iter(ation)?)\W*(\d+)?$", re.IGNORECASE)
# The number that Nsight Systems has for pageable memory, where its table of names is missing.
PAGEABLE_MEMORY = 0


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
        for timeline in sqlite_timelines(file) if is_sqlite(file) else kineto.timelines(file):
            rank = timeline.rank if timeline.rank is not None else len(found)
            while rank in found:  # two traces of one rank, or of none
                rank += 1
            found[rank] = _finding(timeline)
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
            if not inside and (reports := sorted(path.glob(f"*{REPORT}"))):
                raise _not_exported(reports[0])
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
        elif path.suffix == REPORT:
            raise _not_exported(path)
        else:
            files.append(path)
    return files


def _not_exported(report: Path) -> InputError:
    return InputError(
        f"read_trace reads an export of Nsight Systems, and {report} is the report itself. Export it: "
        f"nsys export --type sqlite {quote(str(report))}"
    )


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
        gpu=use[0] if use else None,
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


def is_sqlite(path: Path) -> bool:
    """True for a database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def sqlite_timelines(path: Path) -> list[Timeline]:
    """Return the timeline of an export of Nsight Systems."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return [_Export(database, path).timeline()]
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"An export of Nsight Systems must be a whole database, and {path} is not: {error}. Export it "
            "again with nsys export --type sqlite."
        ) from error


class _Export:
    """The tables of one export."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self.database, self.path = database, path
        rows = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        self.tables = {name for (name,) in rows}

    def timeline(self) -> Timeline:
        """Return the waits, and what the GPU did."""
        if "NVTX_EVENTS" not in self.tables:
            raise InputError(
                f"read_trace needs marks of NVTX in an export of Nsight Systems, and {self.path} has no "
                "table of them. Profile with nsys profile --trace=cuda,nvtx, and run the training in "
                "torch.autograd.profiler.emit_nvtx()."
            )
        timeline = Timeline()
        for start, end, text, thread in self._ranges():
            if WAIT.search(text):
                timeline.thread(thread).add_wait(text, start / 1e3, end / 1e3)
            elif step := STEP.match(text):
                timeline.thread(thread).steps.append((int(step[6] or -1), start / 1e3, end / 1e3))
            else:
                timeline.thread(thread).operations.append(start / 1e3)
        if not any(thread.waits for thread in timeline.threads.values()):
            raise InputError(
                f"No mark of NVTX in {self.path} speaks of loading data. Run the training in "
                "torch.autograd.profiler.emit_nvtx(), or mark the wait with "
                'torch.cuda.nvtx.range("data loading").'
            )
        self._kernels(timeline)
        self._copies(timeline)
        for start, correlation in self._rows("CUPTI_ACTIVITY_KIND_RUNTIME", "start, correlationId"):
            timeline.launches[0].append(correlation)
            timeline.launches[1].append(start / 1e3)
        return timeline

    def _rows(self, table: str, columns: str) -> Iterator[tuple[Any, ...]]:  # Any: whatever a column holds
        if table in self.tables:
            yield from self.database.execute(f"SELECT {columns} FROM {table}")

    def _ranges(self) -> Iterator[tuple[int, int, str, int]]:
        # A text stands in the mark itself or, if it was registered, in the table of texts.
        strings = "StringIds" in self.tables
        text = "COALESCE(n.text, s.value)" if strings else "n.text"
        join = "LEFT JOIN StringIds s ON n.textId = s.id" if strings else ""
        for start, end, named, thread in self.database.execute(
            f"SELECT n.start, n.end, {text}, n.globalTid FROM NVTX_EVENTS n {join} "
            "WHERE n.end > n.start"  # a mark without an end is no range
        ):
            if named is not None:
                yield start, end, named, thread

    def _kernels(self, timeline: Timeline) -> None:
        for kind in ("KERNEL", "MEMSET"):
            table = f"CUPTI_ACTIVITY_KIND_{kind}"
            for start, end, device, correlation in self._rows(table, "start, end, deviceId, correlationId"):
                timeline.gpu(device).add(start / 1e3, end / 1e3, KERNEL, correlation)

    def _copies(self, timeline: Timeline) -> None:
        pageable = {
            number
            for number, name in self._rows("ENUM_CUDA_MEM_KIND", "id, name")
            if "PAGEABLE" in name.upper()
        } or {PAGEABLE_MEMORY}
        columns = "start, end, deviceId, correlationId, srcKind, dstKind"
        copies = self._rows("CUPTI_ACTIVITY_KIND_MEMCPY", columns)
        for start, end, device, correlation, source, target in copies:
            kind = PAGEABLE if source in pageable or target in pageable else COPY
            timeline.gpu(device).add(start / 1e3, end / 1e3, kind, correlation)
