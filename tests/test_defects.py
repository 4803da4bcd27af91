"""The runner of the planted defects, without planting any: `python -m benchmarks.defects` does that."""

import subprocess
from dataclasses import replace

import pytest

from benchmarks import defects
from benchmarks.defects import Defect, Result
from tests.rejected import message

DOUBLE = Defect("double", "double.py", "2 * x", "3 * x", "Twice is three times.", ("test_double.py",))


@pytest.fixture
def root(tmp_path):
    """A repository with one function and its test."""
    (tmp_path / "double.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "test_double.py").touch()
    return tmp_path


@pytest.mark.parametrize(("change", "said"), [
    ({"file": "gone.py"}, "gone.py is not there. Correct `file` in defects.toml."),
    ({"text": "4 * x"}, "its text must stand once in double.py, and stands there 0 times. Correct"),
    ({"text": "x"}, "its text must stand once in double.py, and stands there 2 times. Correct"),
    ({"tests": ("tests/gone.py",)}, "tests/gone.py is not there. Correct `tests` in defects.toml."),
    ({"tests": ("test_double.py::test_gone[2]",)}, "test_double.py::test_gone[2] is not there. Correct"),
])  # fmt: skip
def test_an_entry_that_no_longer_fits_the_repository_says_what_to_correct(root, change, said):
    assert replace(DOUBLE, **change).stale(root).startswith(said)
    assert DOUBLE.stale(root) == ""
    DOUBLE.plant(root)
    assert (root / "double.py").read_text() == "def double(x):\n    return 3 * x\n"


def test_each_defect_in_the_list_has_an_id_of_its_own_and_can_be_planted_and_looked_for(tmp_path):
    entry = '[[defect]]\nid = "a"\nfile = ""\ntext = ""\nreplacement = ""\nbreaks = ""\ntests = []\n'
    (tmp_path / "two.toml").write_text(2 * entry)
    said = message(ValueError, defects.load, tmp_path / "two.toml")
    assert said == "An id names one defect, and a came twice. Rename one of them."
    assert [f"{one.id}: {why}" for one in defects.load() if (why := one.stale(defects.REPOSITORY))] == []


@pytest.mark.parametrize(("status", "printed", "first"), [
    (0, "3 passed", ""),
    (1, "FIRST FAILURE test_a.py::test_b[x - y]\n1 failed", "test_a.py::test_b[x - y]"),
    (2, "FIRST FAILURE test_a.py\n1 error", "test_a.py"),
    *((status, "no such option", None) for status in (1, 4, 5, -9)),
])  # fmt: skip
def test_the_first_failure_is_that_of_pytest_and_tests_that_could_not_run_decide_nothing(
    monkeypatch, tmp_path, status, printed, first
):
    done = subprocess.CompletedProcess([], status, stdout=printed)
    monkeypatch.setattr(defects, "inside", lambda root, command: done)
    if first is None:
        said = message(RuntimeError, defects.first_failure, tmp_path, ["test_a.py"])
        assert said == "pytest could not run test_a.py:\nno such option"
    else:
        assert defects.first_failure(tmp_path, ["test_a.py"]) == first


def test_results_hold_for_the_files_that_they_were_found_with(tmp_path):
    path, results = tmp_path / "results.json", {"double": Result("found", "test_double.py::test_two", 1.5)}
    assert defects.saved(path, "now") == {}
    defects.save(path, "now", results)
    assert defects.saved(path, "now") == results
    assert defects.saved(path, "later") == {}


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "there is no bwrap on the PATH. Install bubblewrap"),
    (["--only", "nothing-like"], "no defect of defects.toml has an id that begins with 'nothing-like'"),
])  # fmt: skip
def test_without_bubblewrap_or_a_known_name_nothing_is_planted(monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(defects.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit):
        defects.main(arguments)
    assert said in capsys.readouterr().err
