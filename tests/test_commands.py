"""`starvelab` on the command line: each command loads what it needs, and nothing else."""

import importlib
import os
import sys
from importlib.metadata import version

import pytest
from traitlets.config import Application

from starvelab import commands
from starvelab.errors import install_hint

# What a command needs, and the extra that brings it.
NEEDS = dict.fromkeys(commands.COMMANDS, ("starvelab_grader", "grade")) | {
    "lab": ("jupyterlab", "lab"),
    **dict.fromkeys(commands.DOCTOR, ("starvelab_doctor", "doctor")),
}
each_command = pytest.mark.parametrize("command", sorted(NEEDS))


@pytest.fixture(autouse=True)
def application():
    """A command of the grader is one for the process."""
    yield
    if Application.initialized():
        type(Application.instance()).clear_instance()


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """What would take this process's place runs in it."""

    def execute(_: str, program: list[str]) -> None:
        sys.exit(importlib.import_module(f"{program[2]}.doctor").main(program[3:]))

    monkeypatch.setattr(os, "execv", execute)


def status(*arguments: str) -> object:
    """Run `starvelab` in this process; its exit status, or the text that it ends with."""
    try:
        commands.main(arguments)
    except SystemExit as ended:
        return ended.code
    return 0


@pytest.fixture
def without(monkeypatch):
    """Make a package one that is not installed."""

    def block(package: str) -> None:
        for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, name, None)

    return block


@pytest.mark.needs("starvelab_doctor")
def test_the_help_names_each_command_and_the_version_is_that_of_the_package(capsys, without):
    without("starvelab_grader")
    for arguments in ([], ["-h"], ["--help"]):
        assert status(*arguments) == 0
        printed = capsys.readouterr().out
        assert (
            "  grade     Grade the submissions of a class: safely, in parallel, and nothing twice." in printed
        )
        assert all(f"\n  {name} " in printed for name in commands.COMMANDS)
    for command, option in (("lab", "--folder"), ("doctor", "--probe"), ("compare", "before")):
        without("torch")
        without("jupyterlab")
        for words in ([command, "--help"], ["help", command]):
            assert status(*words) == 0
            assert option in capsys.readouterr().out
    assert status("help") == 0
    assert "starvelab help doctor" in capsys.readouterr().out
    assert status("--version") == 0
    assert capsys.readouterr().out == f"starvelab {version('starvelab')}\n"


@pytest.mark.parametrize(("typed", "said"), [
    (["graed", "a"], "starvelab has no command 'graed'. Did you mean grade?"),
    (["help", "docter"], "starvelab has no command 'docter'. Did you mean doctor?"),
    (["Lab", "a"], "starvelab has no command 'Lab'. Did you mean lab?"),
    (["verify", "a"], "starvelab has no command 'verify'. There is: lab, doctor, compare, release, collect"),
    pytest.param(
        ["grade", "a", "--wrokers=4"], "this command has no option 'wrokers'. Did you mean workers?",
        marks=pytest.mark.needs("starvelab_grader"),
    ),
])  # fmt: skip
def test_a_misspelt_command_or_option_is_an_error_that_names_the_nearest(capsys, typed, said):
    assert status(*typed) == 2
    assert said in capsys.readouterr().err


def test_the_commands_of_the_grader_are_those_that_it_has(capsys):
    grader = pytest.importorskip("starvelab_grader.commands")
    assert commands.COMMANDS.items() - grader.COMMANDS.items() == {
        (name, commands.COMMANDS[name]) for name in ("lab", "doctor", "compare")
    }
    grader.main([])
    printed = capsys.readouterr().out
    assert all(f"\n  {name:<12}{about}" in printed for name, about in grader.COMMANDS.items())
    with pytest.raises(SystemExit):
        grader.main(["graed"])
    assert "invalid choice: 'graed'" in capsys.readouterr().err
    options = {"collect": "--roster", "release": "--log-level", "grade": "--only", "mark": "--no-browser"}
    for command, option in (options | {"feedback": "--only", "return": "--column"}).items():
        assert status(command, "--help") == 0
        printed = capsys.readouterr().out
        assert f"\n{option}" in printed
        assert f"starvelab-grader {command} " in printed
        type(Application.instance()).clear_instance()


@each_command
def test_a_command_without_what_it_needs_says_how_to_install_it(capsys, without, command, tmp_path):
    package, extra = NEEDS[command]
    without(package)
    script = tmp_path / "train.py"
    script.touch()
    ended = status(command, str(script))
    said = ended if isinstance(ended, str) else capsys.readouterr().err
    assert ended
    assert f"starvelab {command} " in said
    assert said.strip().endswith(f" Install it: {install_hint(extra).partition(': ')[2]}")


def test_an_older_script_is_told_what_to_import():
    with pytest.raises(ImportError, match="install starvelab-doctor, and write starvelab_doctor in"):
        importlib.import_module("starvelab.jobs")


@pytest.mark.needs("starvelab_doctor")
def test_the_status_of_the_script_is_that_of_the_command(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("raise SystemExit(4)", encoding="utf-8")
    assert status("doctor", str(path)) == 4
