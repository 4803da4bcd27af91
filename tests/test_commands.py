"""`starvelab` on the command line: each command loads what it needs, and nothing else."""

from __future__ import annotations

import sys

import pytest

from starvelab import commands


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_needs_no_nbgrader(monkeypatch, capsys, arguments):
    monkeypatch.setattr(sys, "argv", ["starvelab", *arguments])
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    commands.main()
    assert "starvelab doctor train.py [arguments]" in capsys.readouterr().out


def test_doctor_needs_no_nbgrader(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["starvelab", "doctor", "--help"])
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 0
    assert "usage: starvelab doctor [-h] [--report PAGE] [--probe] script" in capsys.readouterr().out


def test_the_status_of_the_script_is_that_of_the_command(monkeypatch, tmp_path):
    path = tmp_path / "train.py"
    path.write_text("raise SystemExit(4)", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["starvelab", "doctor", str(path)])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 4


def test_the_commands_for_instructors_say_what_they_need(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["starvelab", "grade"])
    for name in [name for name in sys.modules if name.startswith("starvelab.grading.commands")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nbgrader.converters", None)
    with pytest.raises(SystemExit, match=r"needs nbgrader.*pip install 'starvelab\[grade\]'"):
        commands.main()
