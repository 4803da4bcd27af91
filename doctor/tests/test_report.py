"""Reports: those of all cases as they are written, and what stands in JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from doctor.tests.known_jobs import TABLE, found, job_of
from starvelab_doctor.contents import Items, contents_of, items_of
from starvelab_doctor.judging.report import json_report, text_report

# `REWRITE=1 pytest doctor/tests/test_report.py` writes it anew: read what changed.
GOLDEN = Path(__file__).with_name("reports.txt")


def test_the_reports_of_all_cases_are_those_that_were_read(monkeypatch):
    reports = []
    for case in TABLE["case"]:
        for module in ("model", "causes"):
            cores = case.get("cores", 8)
            monkeypatch.setattr(f"starvelab_doctor.judging.{module}.usable_cores", lambda n=cores, **_: n)
        reports.append(text_report([(case["name"], job_of(case))]))
    reports = "\n\n".join(reports)
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(f"{reports}\n", encoding="utf-8")
    assert f"{reports}\n" == GOLDEN.read_text(encoding="utf-8")


def test_the_report_as_json_has_its_version_and_each_remedy():
    job = found(workers=0, wait=0.03, step=0.03, cpu=0.0)
    content = json.loads(json_report([("list at train.py:2", job)]))
    assert content["version"] == 1
    (loop,) = content["loops"]
    assert (loop["loop"], loop["verdict"], loop["workers"]) == ("list at train.py:2", "highly input-bound", 0)
    assert loop["host_wait"] == pytest.approx(0.5)
    (remedy,) = loop["remedies"]
    assert (remedy["name"], remedy["gain"]) == ("workers", sorted(remedy["gain"]))


def test_texts_travel_together():
    texts = contents_of((["a review"] * 64, np.zeros(64)))
    assert (texts.objects, texts.tensors) == (65, 0)


@pytest.mark.programs
def test_items_are_looked_at_for_what_they_are_views_of(tmp_path):
    torch = pytest.importorskip("torch")
    groups = [torch.ones(64, 256) for _ in range(8)]
    assert items_of([group[3] for group in groups], False) == Items(8, False, 64.0)
    # Items of one array lie in memory, whatever else they wait for.
    assert items_of(list(groups[0][:8]), False) == Items(8, False, 1.0)
    assert items_of([(row, 1) for row in np.ones((64, 256))], False).spread == 1.0
    assert items_of([{"x": groups[0][3].clone(), "y": 1}], True) == Items(1, True, 1.0)
    np.save(tmp_path / "file.npy", np.ones((64, 100), np.float32))
    mapped = np.load(tmp_path / "file.npy", mmap_mode="r")
    assert items_of([(mapped[:, 3], 0)], False).spread == pytest.approx(99, rel=0.01)  # one column
    assert items_of([mapped[3]], False).spread == 1.0  # one row
    assert items_of([np.ones((8, 4))[2]], False).spread == 8.0
    assert items_of([7, 8], False) == Items(2, False, 1.0)
    assert items_of("no list", False) is None
