"""Exports of Nsight Systems: a database with the tables that `nsys export --type sqlite` writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from starvelab.errors import InputError
from starvelab.jobs import read_trace

WAIT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__, seq = 0, op_id = 12"
MS = 1_000_000  # nanoseconds


def export(path, *, wait, step, mark=WAIT, registered=False, copy=0, batches=12, kinds=True):
    """A training whose loop waits for its GPU in each step."""
    with closing(sqlite3.connect(path)) as database:
        run = database.execute
        run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        run(
            "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, "
            "text TEXT, globalTid INTEGER, textId INTEGER)"
        )
        run(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, "
            "deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER)"
        )
        run(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, "
            "deviceId INTEGER NOT NULL, correlationId INTEGER, bytes INTEGER NOT NULL, "
            "copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER)"
        )
        run(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, "
            "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL)"
        )
        if kinds:
            run("CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT)")
            run("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable')")
        run("INSERT INTO StringIds VALUES (77, ?)", (mark,))
        now = 5_000 * MS
        run("INSERT INTO NVTX_EVENTS VALUES (?, NULL, 34, 'a mark', 1, NULL)", (now,))
        for number in range(batches):
            named = (None, 1, 77) if registered else (mark, 1, None)
            run("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, ?)", (now, now + wait * MS, *named))
            now += wait * MS
            run("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'aten::conv2d', 1, NULL)", (now, now + 10))
            if copy:
                run(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, ?, 1000, 1, 0, 2)",
                    (now, now + copy * MS, 2 * number),
                )
                now += copy * MS
            run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 1, ?, 77)", (now, now, 2 * number + 1))
            run(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?)",
                (now, now + step * MS, 2 * number + 1),
            )
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
    assert found.gpu.pageable_bytes == 12_000


def database(path, *tables):
    with closing(sqlite3.connect(path)) as opened:
        for table in tables:
            opened.execute(f"CREATE TABLE {table} (start, end, text, textId, globalTid)")
        opened.commit()
    return path


def test_an_export_without_marks(tmp_path):
    with pytest.raises(
        InputError, match=r"needs marks of NVTX in an export of Nsight Systems, and .* has no"
    ):
        read_trace(database(tmp_path / "a.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL"))


def test_marks_that_speak_of_something_else(tmp_path):
    path = export(tmp_path / "a.sqlite", wait=1, step=1, mark="optimizer")
    with pytest.raises(
        InputError, match=r"No mark of NVTX in .* speaks of loading data. Run the training in"
    ):
        read_trace(path)


def test_a_damaged_export(tmp_path):
    path = export(tmp_path / "a.sqlite", wait=1, step=1, batches=400)
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(InputError, match="An export of Nsight Systems must be a whole database, and"):
        read_trace(path)
