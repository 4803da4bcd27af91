"""Each benchmark runs: its smallest case, for those that start no browser and no class."""

import io
import json
import os
import re
import subprocess
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import import_module
from types import SimpleNamespace
from unittest import mock

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import report, results
from starvelab.runtime import Runtime

doctor = pytest.importorskip("starvelab_doctor.doctor")
run_script = pytest.importorskip("starvelab_doctor.script").run_script
pytest.importorskip("starvelab_grader")

pytestmark = [pytest.mark.long, pytest.mark.programs]

# `python -m benchmarks --smallest NAME` runs these by hand.
BROWSER, CLASS, RANKS = {"moving", "repaint"}, {"grading", "stock"}, {"rank_jobs", "ranks"}
ELSEWHERE = {"validation", "zoo"}  # tests/test_published.py and doctor/tests/test_zoo.py run them
HERE = benchmarks.names().keys() - BROWSER - CLASS - RANKS - ELSEWHERE
KEPT = {".csv", ".json", ".md", ".svg", ".toml"}  # what benchmarks write and Git keeps
# To load PyTorch takes longest of a small job: these run theirs here.
JOBS = {"memory"}


def in_this_process(command, *, cwd=".", **_):
    """Run a script, or doctor on one, as the processes do that a benchmark starts."""
    words = [str(word) for word in command]
    out, err, ignored = io.StringIO(), io.StringIO(), warnings.catch_warnings(action="ignore")
    with redirect_stdout(out), redirect_stderr(err), chdir(cwd), ignored:
        if "doctor" in words:
            status = doctor.main(words[words.index("doctor") + 1 :])
        else:
            status = run_script(words[1], words[2:])
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.sandbox] * (name == "defects")) for name in sorted(HERE)]
)
def test_the_smallest_case_of_a_benchmark_runs_and_keeps_nothing(name, capfd, monkeypatch, tmp_path):
    folders = (report.REPOSITORY / name for name in ("benchmarks", "docs", "doctor", "starvelab", "tests"))
    paths = (path for folder in folders for path in folder.rglob("*") if path.suffix in KEPT)
    kept = {path: path.read_bytes() for path in paths}
    module = import_module(f"benchmarks.{name}")
    if name == "defects":
        monkeypatch.setattr(module, "RESULTS", tmp_path / "defects.json")
    if name in JOBS:
        monkeypatch.setattr(subprocess, "run", in_this_process)
    # What a benchmark measures is computed: of the measuring itself there are tests in tests/measure.
    with mock.patch.dict(os.environ, Runtime(clock="simulated").environment()):
        assert not module.main(["--smallest"])
    assert re.search(r"\d", capfd.readouterr().out)
    assert [path for path, content in kept.items() if path.read_bytes() != content] == []


@pytest.mark.parametrize(("arguments", "kept"), [(["--smallest"], ["old"]), ([], ["old", "new"])])
def test_a_record_keeps_what_a_usual_run_measures_and_nothing_of_the_smallest(arguments, kept, tmp_path):
    file = tmp_path / "measured.json"
    file.write_text('{"old": {}}', encoding="utf-8")
    parser = report.options("", jobs=(["old", "new"], ["new"]))
    report.Record(file, tmp_path / "page.md", "a benchmark").run(
        parser,
        arguments,
        ["old", "new"],
        measure=lambda *_: {},
        row=lambda *_: [],
        table=lambda _: "",
    )
    assert list(json.loads(file.read_text(encoding="utf-8"))) == kept


@pytest.fixture
def started(monkeypatch) -> list[tuple[str, ...]]:
    """What would be started: the module, its options, and whether its results are kept."""
    seen = []

    def run(command, *, env, **_):
        seen.append((*command[2:], "kept" if results.SAVE in env else "not kept"))
        return SimpleNamespace(returncode=int("solve" in command[2]))

    monkeypatch.setattr(benchmarks.subprocess, "run", run)
    monkeypatch.delenv(results.SAVE, raising=False)
    return seen


def test_only_those_that_are_named_run(started, capsys):
    assert benchmarks.main(["imports", "watch"]) == 0
    assert started == [("benchmarks.imports", "kept"), ("benchmarks.watch", "kept")]
    assert benchmarks.main(["solve", "--smallest"]) == 1
    assert started[2:] == [("benchmarks.solve", "--smallest", "not kept")]
    assert "not finished: solve" in capsys.readouterr().out


def test_without_a_name_the_usual_ones_run(started):
    benchmarks.main([])
    assert [module.partition(".")[2] for module, _ in started] == list(benchmarks.USUAL)


@pytest.mark.parametrize(("name", "said"), [
    ("importz", "benchmarks has no benchmark 'importz'. Did you mean imports? --help names them all."),
    ("nonsense", "benchmarks has no benchmark 'nonsense'. There is: imports, solve, simulate, notebook"),
])  # fmt: skip
def test_an_unknown_name_is_an_error_that_names_what_there_is(started, capsys, name, said):
    with pytest.raises(SystemExit, match=r"^2$"):
        benchmarks.main(["imports", name])
    assert said in capsys.readouterr().err
    assert started == []
