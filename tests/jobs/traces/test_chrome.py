"""The events of a trace, one by one: the same as those of the whole file, in memory that does not grow."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from starvelab.errors import InputError
from starvelab.jobs import kineto, read_trace
from tests.jobs.traces.builder import Training, train, write


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_events_are_those_of_the_file(tmp_path, monkeypatch, name, chunk):
    monkeypatch.setattr(kineto, "CHUNK", chunk)
    path = train(Training(rank=3), 2, wait=1, step=5).write(tmp_path / name)
    opened = gzip.open if name.endswith("gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        whole = json.load(file)
    first, *events = kineto.events(path)
    assert events == whole["traceEvents"]
    assert first["beside"]["distributedInfo"]["rank"] == 3


def test_a_bare_list_is_a_trace_as_well(tmp_path):
    events = train(Training(), 12, wait=1, step=1).events
    assert read_trace(write(tmp_path / "trace.json", events)).batches == 12


def test_what_json_does_not_allow_and_profilers_write(tmp_path):
    events = train(Training(), 12, wait=1, step=1).events
    events[3]["name"] = "aten::mm MARK"
    text = json.dumps({"traceEvents": events}).replace(
        "MARK", "\t\x01 \udcff".encode("utf-8", "surrogatepass").decode("latin1")
    )
    path = tmp_path / "trace.json"
    path.write_bytes(text.replace('"dur": 1,', '"dur": NaN,').encode("latin1"))
    with path.open("ab") as file:
        file.write(b', "traceName": "C:\\Users"}')  # after the events, and never read
    assert read_trace(path).batches == 12


def test_a_trace_does_not_stand_in_memory_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(kineto, "CHUNK", 1 << 12)
    events = train(Training(), 10, wait=1, step=1).events * 40
    path = write(tmp_path / "trace.json", {"traceEvents": events})
    tracemalloc.start()
    count = sum(1 for _ in kineto.events(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == len(events) + 1
    # Other threads of the process may take some, too.
    assert path.stat().st_size > 10 * peak


WHOLE = b'{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": "k"}, {"ph": "M"}]}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"A trace must hold events, and .*trace.json is empty. Let the profiler write it again"),
        (b"not JSON at all", r"and .*trace.json is neither: it does not begin like JSON. Pass one of these"),
        (b"\x00\x01\x02\x03 a report of Nsight", "is neither: it does not begin like JSON"),
        (b'{"schemaVersion": 1}', "is neither: it has no traceEvents"),
        (b'{"traceEvents": {}}', "is neither: its traceEvents are no list"),
        (b'{"traceEvents": [1, 2]}', "is neither: its list holds something else than events"),
        (b'{"a" 1}', "is neither: it is no JSON"),
        (b"[1, 2, 3]", "is neither: its list holds something else than events"),
        (
            b'{"traceEvents": []}',
            "A trace must hold events, and .*trace.json holds none. Let the profiler run",
        ),
        (
            b'[{"ph": "X", "cat": "blink", "ts": 1, "dur": 1}]',
            "holds none of its operations, kernels or marks",
        ),
        (WHOLE[:60], "A trace must be whole, and .*trace.json ends or breaks off after 0 events"),
        (WHOLE[:82], "A trace must be whole, and .*trace.json ends or breaks off after 1 events"),
        (
            gzip.compress(WHOLE * 1000, mtime=0)[:60],
            "A compressed trace must be whole, and .*trace.json is not:",
        ),
        (gzip.compress(WHOLE * 1000, mtime=0)[:-3], "A compressed trace must be whole"),
    ],
)
def test_files_that_are_no_traces(tmp_path, content, message):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_trace(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(
        InputError, match=r"read_trace reads a file, and there is none at .*nowhere. Check the"
    ):
        read_trace(tmp_path / "nowhere")


def test_a_folder_without_traces(tmp_path):
    with pytest.raises(InputError, match=r"must hold files that end in .json, .json.gz, .sqlite, and"):
        read_trace(tmp_path)
