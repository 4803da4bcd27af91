"""What a grade depends on: what of it has changed, by notebook."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from grader.tests.a_course import TINY
from starvelab_grader import plugins
from starvelab_grader.autograde.definition import Definition
from starvelab_grader.commands import COMMANDS
from starvelab_grader.files import PACKAGE, REASONS, changed, package_fingerprint

SAME = dict.fromkeys(REASONS, "same")


def test_a_notebook_is_graded_again_for_whatever_changed():
    before = {"one": SAME, "two": SAME}
    assert changed(before, before) == {}
    for kind in REASONS:
        assert changed(before, {"one": SAME, "two": SAME | {kind: "other"}}) == {"two": kind}
    assert changed(before, {"one": SAME}) == {}, "a notebook that was dropped is not graded"
    assert changed({"one": SAME}, before) == {"two": "assignment"}, "one that was added is"


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A copy of the grader, with a copy of a package that extends it beside it."""
    for folder in (PACKAGE, plugins.packages()["starvelab"][0]):
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    copies = {"starvelab": (tmp_path / "starvelab", ("lesson/show",))}
    monkeypatch.setattr("starvelab_grader.files.packages", lambda: copies)
    return tmp_path / PACKAGE.name


def test_facts_and_what_computes_with_them_are_part_of_what_a_grade_depends_on(package):
    before = package_fingerprint.__wrapped__(package)
    assert before == package_fingerprint(), "wherever it is installed"
    for name in (
        "starvelab/model/data/hardware.toml",
        "starvelab/units.txt",
        "starvelab/lesson/checks.py",
        "starvelab_grader/sandbox/shell.py",
        "starvelab_grader/submissions/reference.py",
    ):
        path = package.parent / name
        content = path.read_bytes()
        path.write_bytes(content + b"\n# other\n")
        assert package_fingerprint.__wrapped__(package) != before, name
        path.write_bytes(content)
    for name in (
        "starvelab/lesson/show/plots.py",
        "starvelab_grader/report/class_report.py",
        "starvelab_grader/commands/grade.py",
    ):
        path = package.parent / name
        path.write_bytes((path.read_bytes() if path.exists() else b"") + b"\n# other\n")
    assert package_fingerprint.__wrapped__(package) == before, "what only shows or reports changes no grade"


def test_points_checks_and_the_instructors_code_concern_their_notebook(released_course):
    definition = released_course.definition

    def differing(**parts: object) -> dict[str, str]:
        return changed(definition.inputs, dataclasses.replace(definition, **parts).inputs)

    def with_cell(notebook: str, name: str, **fields: object) -> dict:
        cells = [
            dataclasses.replace(cell, **fields) if cell.name == name else cell
            for cell in definition.cells[notebook]
        ]
        return {**definition.cells, notebook: cells}

    def with_text(name: str, before: bytes, after: bytes) -> dict:
        assert before in definition.source[name]
        return {**definition.source, name: definition.source[name].replace(before, after)}

    assert differing() == {}
    assert differing(cells=with_cell("two", "value-test", points=0.0)) == {"two": "assignment"}
    assert differing(cells=with_cell("one", "double-test", source="check(1, 1)")) == {"one": "assignment"}
    assert differing(source=with_text("two.ipynb", b"answer = 42", b"answer = 6 * 7")) == {
        "two": "assignment"
    }
    assert differing(source=with_text("one.ipynb", b"# One", b"# First")) == {}, "a word of the text"
    everything = {"one": "assignment", "two": "assignment"}
    assert differing(source={**definition.source, "data.csv": b"1"}) == everything
    slow = Config({"IsolatedExecute": {"timeout": 5.0}})
    assert differing(settings=slow) == {"one": "settings", "two": "settings"}
    other = Config(released_course.config)
    for name in [f"{command.capitalize()}App" for command in COMMANDS] + ["Canvas", "Moodle"]:
        other[name] = Config(roster="roster.csv")
    course = CourseDirectory(config=other)
    assert Definition.of(course, other, TINY).inputs == definition.inputs, "of commands"
