"""The trace that the package writes itself is read like one of the profiler's."""

from __future__ import annotations

import pytest

from starvelab import InputError
from starvelab.jobs import read_trace
from starvelab.jobs.examples import example_trace


def read(tmp_path, **times):
    return read_trace(example_trace(tmp_path / "trace.json", **times))


def test_as_it_is_the_gpu_pays_for_pageable_copies(tmp_path):
    found = read(tmp_path)
    assert found.batches == 12
    assert found.verdict == "not input-bound"
    assert found.gpu.cause == "pageable copies"
    assert found.gpu.copying == pytest.approx(22 / (2 + 22 + 30), abs=0.02)


def test_pinned_copies_run_beside_the_kernels(tmp_path):
    before, found = read(tmp_path), read(tmp_path, pinned=True)
    assert found.gpu.copying == pytest.approx(0, abs=0.001)
    assert found.gpu.cause in ("waiting for data", "nothing")
    assert found.batch_rate / before.batch_rate == pytest.approx(54 / 32, rel=0.03)


@pytest.mark.parametrize(
    ("times", "cause", "starved"),
    [
        ({"wait": "40 ms", "copy_time": "0 ms"}, "waiting for data", "starved"),
        ({"launch_gap": "5 ms", "copy_time": "0 ms"}, "launch gaps", "not starved"),
    ],
    ids=["waits", "gaps"],
)
def test_what_is_set_is_what_is_found(tmp_path, times, cause, starved):
    found = read(tmp_path, **times)
    assert found.gpu.cause == cause
    assert found.gpu.verdict.endswith(f"idle and {starved}")


def test_a_time_without_unit_is_rejected(tmp_path):
    with pytest.raises(InputError, match="wait needs a unit, got the bare int 2"):
        read(tmp_path, wait=2)
