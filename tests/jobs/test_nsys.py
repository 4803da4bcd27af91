"""Exports of Nsight Systems: a database with the tables that `nsys export --type sqlite` writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from starvelab.errors import InputError
from starvelab.jobs import read_trace

WAIT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__, seq = 0, op_id = 12"
MS = 1_000_000  # nanoseconds


TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE NVTX_EVENTS (
    start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
    globalTid INTEGER, textId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, correlationId INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
    nameId INTEGER NOT NULL);
"""
KINDS = """
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable');
"""


def export(path, *, wait, step, mark=WAIT, registered=False, copy=0, batches=12, kinds=True):
    """A training whose loop waits for its GPU in each step."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(TABLES + KINDS * kinds)

        def insert(table, *values):
            marks = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO {table} VALUES ({marks})", values)

        insert("StringIds", 77, mark)
        now = 5_000 * MS
        insert("NVTX_EVENTS", now, None, 34, "a mark", 1, None)
        for number in range(batches):
            named = (None, 1, 77) if registered else (mark, 1, None)
            insert("NVTX_EVENTS", now, now + wait * MS, 59, *named)
            now += wait * MS
            insert("NVTX_EVENTS", now, now + 10, 59, "aten::conv2d", 1, None)
            if copy:
                memory = 2 * number, 1000, 1, 0, 2
                insert("CUPTI_ACTIVITY_KIND_MEMCPY", now, now + copy * MS, 0, *memory)
                now += copy * MS
            insert("CUPTI_ACTIVITY_KIND_RUNTIME", now, now, 1, 2 * number + 1, 77)
            insert("CUPTI_ACTIVITY_KIND_KERNEL", now, now + step * MS, 0, 7, 2 * number + 1)
            now += step * MS
        database.commit()
    return path


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("mark", [WAIT, "data loading", "fetch batch", "dataloader"])
def test_a_starved_gpu(tmp_path, mark, registered):
    found = read_trace(export(tmp_path / "a.sqlite", wait=30, step=70, mark=mark, registered=registered))
    assert found.host_wait == pytest.approx(0.3)
    assert found.stall == pytest.approx(0.3)
    assert found.verdict == "highly input-bound"
    assert found.counted == 10


@pytest.mark.parametrize("kinds", [True, False])
def test_pageable_copies(tmp_path, kinds):
    found = read_trace(export(tmp_path / "a.sqlite", wait=1, step=69, copy=30, kinds=kinds))
    assert found.gpu.cause == "pageable copies"
    assert found.gpu.copying_pageable == pytest.approx(0.3)


@pytest.mark.parametrize(("kind", "message"), [
    ("no marks", r"needs marks of NVTX in an export of Nsight Systems, and .* has no"),
    ("other marks", r"No mark of NVTX in .* speaks of loading data. Run the training in"),
    ("damaged", "An export of Nsight Systems must be a whole database, and"),
])  # fmt: skip
def test_exports_that_cannot_be_read(tmp_path, kind, message):
    path = export(tmp_path / "a.sqlite", wait=1, step=1, mark="optimizer", batches=400)
    if kind == "no marks":
        with closing(sqlite3.connect(path)) as opened:
            opened.execute("DROP TABLE NVTX_EVENTS")
    elif kind == "damaged":
        path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(InputError, match=message):
        read_trace(path)
