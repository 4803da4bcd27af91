"""A learner's loader goes from notebook to notebook as text, and is held against a real one."""

import re

import pytest

from starvelab import Pipeline, runtime
from starvelab.lesson.widgets._loader import FILE, step_ends
from starvelab.measure.samples import given_samples
from starvelab.widgets import beside_real, load_loader, save_loader
from tests.lesson.test_exercises import defined

OWN = "def step_ends(prepare, step, workers, prefetch, start_up):\n    return list(np.cumsum(prepare))\n"
REPAIRED = (
    "def repaired(prepare, step, workers, prefetch, start_up):\n"
    "    return step_ends([{} * ms for ms in prepare], step, workers, prefetch, start_up)\n"
)


def test_without_a_loader_of_ones_own_that_runs_there_is_the_labs(folder, capsys):
    assert load_loader() is step_ends
    assert step_ends([30.0] * 6, 10, 1, 2, 0)[-1] == pytest.approx(190)
    assert capsys.readouterr().out == "No loader is saved here, so this is the lab's own.\n"
    (folder / FILE).write_text("def step_ends(:")
    assert load_loader() is step_ends
    said = capsys.readouterr().out
    assert said.startswith("loader.txt does not run (SyntaxError:")
    assert " ".join(said.split()).endswith("so this is the lab's own loader.")


def test_a_loader_and_its_newest_repair_are_kept_and_can_be_asked_for(capsys):
    save_loader(defined(OWN, "step_ends"))
    for factor in (2, 3):
        save_loader(defined(REPAIRED.format(factor), "repaired"))
    assert (
        capsys.readouterr().out == 3 * "Your loader is saved in loader.txt, for the notebooks that follow.\n"
    )
    assert load_loader("step_ends")([1, 2], 9, 1, 2, 0) == [1, 3]
    assert load_loader()([1, 2], 9, 1, 2, 0) == [3, 9]
    assert capsys.readouterr().out == 2 * "This is your loader, from loader.txt.\n"
    save_loader(defined(OWN, "step_ends"))
    assert load_loader()([1, 2], 9, 1, 2, 0) == [1, 3]


def test_a_cell_that_also_shows_its_loader_is_a_loader_elsewhere(folder, capsys):
    save_loader(defined(REPAIRED.format(3), "repaired"))
    # As in the notebook: the same cell holds the repair against a real loader, and saves it.
    with (folder / FILE).open("a") as cell:
        cell.write("\n\nbeside_real(repaired, runs)\nsave_loader(repaired)\n")
    capsys.readouterr()
    assert load_loader()([1.0, 2.0], 9, 1, 2, 0) == step_ends([3.0, 6.0], 9, 1, 2, 0)
    assert capsys.readouterr().out == "This is your loader, from loader.txt.\n"


def test_a_grader_neither_saves_a_loader_nor_runs_one(folder):
    with runtime.use(runtime.GRADING):
        save_loader(defined(OWN, "step_ends"))
        assert not (folder / FILE).exists()
        (folder / FILE).write_text("raise SystemExit")
        assert load_loader() is step_ends


def test_what_a_loader_predicts_stands_beside_what_is_measured_with_its_error(folder, capsys):
    given = []

    def loader(prepare, step, workers, prefetch, start_up):
        given.append((prepare, step, workers, prefetch, start_up))
        return step_ends(prepare, step, workers, prefetch, start_up)

    pipeline = Pipeline(dataset=given_samples("tables"), batch_size=4, workers=1, hardware="0.1 ms")
    with runtime.use(runtime.Runtime(clock="simulated")):
        beside_real(loader, [pipeline.replace(workers=n).measure(progress=False) for n in (1, 2, 4)])
    assert [one[2] for one in given] == [1, 2, 4]
    assert given[0][0] == given[1][0] == given[2][0], "the times of one worker alone"
    out = capsys.readouterr().out
    errors = [int(error) for error in re.findall(r"([+-]?\d+) %", out)]
    assert len(errors) == 3
    assert abs(errors[0]) <= 10, "of one worker alone"
    assert "times as long for a batch as one alone." in out
