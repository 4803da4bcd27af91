"""The learner's model: kept as text, read where it is whole, and never run but by its owner."""

import inspect
import subprocess
import sys

import pytest

from starvelab import Q_, InputError, runtime
from starvelab.lesson.class_report import sections
from starvelab.lesson.my_model import FILE, HEADER, PARTS, my_model, save_part, stand_in_for_the_file
from starvelab.units import Quantity
from starvelab.widgets import pack, report
from tests.rejected import message

STEP = 'def step_time(batch_size):\n    return Q_(1, "ms") * batch_size'
CPU = "def cpu_time(batch_size, sample_size, workers, rate):\n    return batch_size * sample_size / rate"
HOSTILE = "open('ran', 'w').close()\n" + STEP + "\n"
# What the exercises ask for, by arguments that their visible checks use.
CASES = {
    "step_time": ((1000,), Q_("31.297 ms")),
    "data_demand": ((Q_("3000 img/s"), Q_("200 KB")), Q_("0.6 GB/s")),
    "cpu_time": ((100, Q_("400 KB"), 4, Q_("100 MB/s")), Q_("100 ms")),
    "utilization": ((Q_("40 ms"), Q_("10 ms")), 0.25),
    "starved_from": ((Q_("1 ms"), Q_("0.5 ms"), Q_("5 ms")), 11),
    "how_many_workers": ((100, Q_("400 KB"), Q_("100 MB/s"), Q_("30 ms")), 14),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_labs_functions_are_what_the_exercises_ask_for():
    assert CASES.keys() == PARTS.keys()
    for name, (given, expected) in CASES.items():
        found = getattr(my_model(), name)(*given)
        if isinstance(expected, Quantity):
            found, expected = found.m_as(expected.units), expected.magnitude
        assert found == pytest.approx(expected, rel=2e-4), name


@pytest.mark.parametrize(("name", "argument", "unit"), [
    ("data_demand", "throughput", "img/s"), ("utilization", "gpu_time", "ms"),
    ("starved_from", "gpu_per_image", "ms"), ("starved_from", "gpu_overhead", "ms"),
    ("how_many_workers", "gpu_step", "ms"),
])  # fmt: skip
def test_a_bare_number_is_told_the_name_and_the_unit_of_its_argument(name, argument, unit):
    values = dict(zip(inspect.signature(PARTS[name].lab).parameters, CASES[name][0], strict=True))
    said = message(InputError, getattr(my_model(), name), *(values | {argument: 36.3}).values())
    assert said == f'{argument} needs a unit, got the bare float 36.3. Write for example Q_(36.3, "{unit}").'


def test_a_function_takes_the_place_of_its_older_text_and_of_nothing_else(folder):
    assert save_part("step_time", STEP)
    assert save_part("cpu_time", CPU)
    assert not save_part("cpu_time", CPU), "the same text changes nothing"
    path = folder / FILE
    path.write_text(path.read_text() + "\n\n# --- mine ---\nsize = 7\n")
    assert save_part("step_time", STEP.replace("1,", "2,"))
    text = path.read_text()
    assert text.startswith(HEADER)
    assert text.count("def step_time") == text.count("def cpu_time") == 1
    assert text.endswith("# --- mine ---\nsize = 7\n")
    assert my_model().step_time(3) == Q_("6 ms")


def test_the_file_runs_alone(folder):
    save_part("step_time", STEP)
    code = "from my_model import step_time; print(step_time(3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "3 ms\n"


def test_where_a_function_is_missing_or_fails_the_labs_takes_its_place_and_a_sentence_says_so(folder):
    save_part("step_time", STEP)
    save_part("cpu_time", "def cpu_time(batch_size):\n    return 1 / 0")
    model = my_model()
    assert model.utilization(Q_("40 ms"), Q_("10 ms")) == 0.25
    assert model.cpu_time(100, Q_("400 KB"), 4, Q_("100 MB/s")) == Q_("100 ms")
    said = str(model)
    assert said.startswith("From your my_model.py: step_time.\nYour cpu_time ends in TypeError: ")
    assert "The lab's is used instead." in said
    assert "Not in my_model.py yet, so the lab's functions are used: data_demand (notebook 2), util" in said
    (folder / FILE).write_text("def step_time(:")
    model = my_model()
    assert model.step_time(1000).m_as("ms") == pytest.approx(31.297, rel=1e-4)
    assert "Your my_model.py does not run (SyntaxError: " in str(model)
    with pytest.raises(AttributeError, match=r"The model has step_time, .* got step. Use one of these"):
        model.step  # noqa: B018


def test_only_the_kernel_of_its_owner_runs_the_file(folder, monkeypatch):
    (folder / FILE).write_text(HOSTILE)
    (folder / "01.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    report()
    assert FILE in pack().files
    [*sections([])]
    with runtime.use(runtime.GRADING):
        assert my_model().step_time(1000).m_as("ms") == pytest.approx(31.297, rel=1e-4)
        monkeypatch.delitem(sys.modules, "my_model", raising=False)
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        stand_in_for_the_file()
        import my_model as found

        assert found.step_time(1000).m_as("ms") == pytest.approx(31.297, rel=1e-4)
        monkeypatch.delitem(sys.modules, "my_model")
    assert not (folder / "ran").exists()
    my_model().step_time(3)
    assert (folder / "ran").exists()
