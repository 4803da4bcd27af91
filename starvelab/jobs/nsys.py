"""Exports of Nsight Systems to SQLite: `nsys export --type sqlite report.nsys-rep`.

Waits are ranges that the program marked with NVTX: what `torch.autograd.profiler.emit_nvtx` writes for a
DataLoader, or marks of its own whose name speaks of loading or fetching data.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ..errors import InputError
from .timeline import COPY, KERNEL, PAGEABLE, Timeline

MAGIC = b"SQLite format 3\x00"
WAIT = re.compile(
    r"dataloader|data.?(load|wait|fetch)|(load|next|get|fetch|wait).?(the.?)?(batch|data)", re.IGNORECASE
)
STEP = re.compile(r"^(profiler)?.?(train(ing)?)?.?(step|iter(ation)?)\W*(\d+)?$", re.IGNORECASE)
PAGEABLE_MEMORY = (
    0  # the number that Nsight Systems has for pageable memory, where its table of names is missing
)


def is_sqlite(path: Path) -> bool:
    """True for a database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def timelines(path: Path) -> list[Timeline]:
    """Return the timeline of an export.

    Raises
    ------
    InputError
        If the database is no export of Nsight Systems, or holds no marks of waits.
    """
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
                timeline.thread(thread).waits.append((start / 1e3, end / 1e3))
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
        columns = "start, end, deviceId, correlationId, srcKind, dstKind, bytes"
        for start, end, device, correlation, source, target, size in self._rows(
            "CUPTI_ACTIVITY_KIND_MEMCPY", columns
        ):
            slow = source in pageable or target in pageable
            kind = PAGEABLE if slow else COPY
            timeline.pageable_bytes += size if slow else 0
            timeline.gpu(device).add(start / 1e3, end / 1e3, kind, correlation)
