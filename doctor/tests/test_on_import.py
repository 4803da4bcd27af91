"""A script under `starvelab-doctor` finds what it would find alone: no library that it did not load."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from starvelab_doctor.watching.on_import import on_import

pytest.importorskip("torch")

SCRIPT = """
    import sys
    print(sorted({"numpy", "torch", "pint", "starvelab"} & set(sys.modules)))
    import inspect, torch
    print(type(torch.__spec__.loader).__name__, "def compile" in inspect.getsource(torch))
    for batch in torch.utils.data.DataLoader(list(range(80)), 2):
        pass
"""


@pytest.mark.programs
@pytest.mark.parametrize("command", [["starvelab_doctor"], ["starvelab", "doctor"]], ids=" ".join)
def test_a_script_finds_neither_numpy_nor_pytorch_at_its_first_line(command, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(dedent(SCRIPT), encoding="utf-8")
    command = [sys.executable, "-m", *command, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "SourceFileLoader True"]
    assert "starvelab-doctor: list at train.py:6, 40 batches" in done.stderr


def test_it_begins_once_at_the_import_and_not_before(tmp_path, monkeypatch):
    (tmp_path / "module_to_wait_for.py").write_text("value = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    begun = []

    def begin():
        begun.append(sys.modules["module_to_wait_for"].value)

    with on_import(begin, "module_to_wait_for"):
        assert begun == []
        import module_to_wait_for  # type: ignore[import-not-found]

        assert begun == [1]
    with on_import(begin, "module_to_wait_for"):
        assert begun == [1, 1]
    monkeypatch.delitem(sys.modules, "module_to_wait_for")
    import module_to_wait_for

    assert begun == [module_to_wait_for.value] * 2


def test_nothing_is_left_where_nothing_was_imported():
    before = [*sys.meta_path]
    with on_import(lambda: None, "no_module_at_all"), pytest.raises(ModuleNotFoundError):
        import no_module_at_all  # type: ignore[import-not-found] # noqa: F401
    with on_import(lambda: None, "another_module"):
        pass
    assert sys.meta_path == before


@pytest.mark.programs
def test_a_script_of_a_trial_finds_neither(tmp_path):
    (tmp_path / "work").mkdir()
    text = dedent(SCRIPT).strip().splitlines()[:2]
    (tmp_path / "train.py").write_text("\n".join([*text, "raise SystemExit(1)"]), encoding="utf-8")
    plan = {
        "folder": str(tmp_path),
        "work": str(tmp_path / "work"),
        "original": str(tmp_path),
        "module": False,
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-m", "starvelab_doctor.trials.start", "plan.json", str(tmp_path / "train.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 1), done.stderr
