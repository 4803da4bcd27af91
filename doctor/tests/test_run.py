"""One run of a trial: the pace that it counts, and the folder that keeps what it writes."""

import os
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

pytest.importorskip("torch")

from torch.utils.data import dataloader

from starvelab_doctor import torch_internals
from starvelab_doctor.trials import run
from starvelab_doctor.trials.run import Trial, pace_of
from starvelab_doctor.trials.scratch import Scratch, link_entries, stand_in

pytestmark = pytest.mark.programs


def a_pass(count, *, start=0.0, first=0.5, wait=0.03, step=0.01):
    """Times at which a loop asks for each batch and has it [s]."""
    times, now = [], start
    for number in range(count):
        asked, now = now, now + (wait if number else first)
        times.append((asked, now))
        now += step
    return times


def test_the_pace_of_a_long_pass_is_that_of_its_settled_part():
    # What two workers prepared while they started comes at once: four batches that do not count.
    times = a_pass(4, wait=0.0) + a_pass(41, start=0.55, first=0.03)
    pace = pace_of([times], 2, 4, whole=False)
    assert pace.rate == pytest.approx(25)
    assert pace.waits == pytest.approx(0.75)
    assert pace.seconds == pytest.approx(38 / 25)


def test_bursts_of_several_workers_count_whole():
    times = [(float(number // 4), float(number // 4)) for number in range(4 * 12 + 3)]  # four each second
    assert pace_of([times], 4, 4, whole=False).rate == pytest.approx(4)


def test_short_passes_count_with_the_start_of_their_workers():
    passes = [a_pass(20, start=2.0 * number, first=0.5 if number else 9.0) for number in range(5)]
    pace = pace_of(passes, 2, 4, whole=True)
    assert pace.rate == pytest.approx(10)  # 20 batches in 2 seconds
    assert pace.seconds == pytest.approx(6)


@pytest.mark.parametrize(
    ("passes", "whole"),
    [([], False), ([a_pass(12)], False), ([a_pass(90)] * 3, True), ([a_pass(2)] * 5, True)],
)
def test_of_too_few_batches_there_is_no_pace(passes, whole):
    assert pace_of(passes, 2, 4, whole=whole) is None


def test_a_trial_packs_the_batches_of_the_loader_that_it_is_about():
    def make():
        return dataloader.DataLoader([1, 2, 3], 1)

    place = f"{os.path.realpath(__file__)}:{make.__code__.co_firstlineno + 1}"
    plan = {"loop": f"{place} list 3", "settings": {"batch_size": 3}, "whole": None}
    trial = Trial(plan | {"seconds": 1e9, "rung": ""}, None)
    with (
        patch.object(dataloader.DataLoader, "__init__", trial.making(dataloader.DataLoader.__init__)),
        torch_internals.replaced_iterators(dataloader, trial.following, trial.beginning),
    ):
        one, other = make(), dataloader.DataLoader([4, 5], 2)
        assert [[batch.tolist() for batch in each] for each in (one, other)] == [[[1, 2, 3]], [[4, 5]]]


def test_a_trial_is_about_the_training_and_not_about_an_evaluation_in_its_step(monkeypatch):
    # Of minGPT's adder the evaluation was measured, which begins with the first step.
    left = []
    monkeypatch.setattr(Trial, "leave", lambda trial, name, loop: left.append(name))
    monkeypatch.setattr(run, "LOOK", 0.0)
    trial = Trial({"loop": "", "rung": "", "settings": {}, "whole": False, "seconds": 0.0}, None)
    training, evaluation = dataloader.DataLoader(range(20)), dataloader.DataLoader(range(60))
    with torch_internals.replaced_iterators(dataloader, trial.following, trial.beginning):
        for number, _ in enumerate(training):
            if number == 0:
                list(evaluation)
        assert set(left) == {" range 20"}
        left.clear()
        list(evaluation)
    assert set(left) == {" range 60"}


def test_a_trial_without_workers_leaves_out_what_needs_them():
    def make():
        return dataloader.DataLoader([1, 2], num_workers=2, prefetch_factor=4, persistent_workers=True)

    place = f"{os.path.realpath(__file__)}:{make.__code__.co_firstlineno + 1}"
    trial = Trial({"loop": f"{place} list 2", "settings": {"num_workers": 0}}, None)
    with patch.object(dataloader.DataLoader, "__init__", trial.making(dataloader.DataLoader.__init__)):
        loader = make()
    assert (loader.num_workers, loader.prefetch_factor, loader.persistent_workers) == (0, None, False)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return a folder with files, and the scratch folder in its place."""
    original, work = tmp_path / "original", tmp_path / "run" / "work"
    (original / "runs" / "first").mkdir(parents=True)
    for name in ("train.py", "runs/log.txt", "runs/first/last.pt"):
        (original / name).write_text("mine")
    work.parent.mkdir()
    link_entries(work, original)
    monkeypatch.chdir(work)
    scratch = Scratch(work, original)

    def write(path, mode="w"):
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if mode == "w" else os.O_APPEND)
        scratch._look("open", (path, mode, flags))
        with open(path, mode) as file:
            file.write("other")

    return original, work, scratch, write


def test_what_is_written_in_the_scratch_folder_stays_there(folders):
    original, work, _, write = folders
    write("new.txt")
    write("runs/log.txt", "a")
    write("runs/first/last.pt")
    write(work / "runs" / "second.txt")
    for name in ("train.py", "runs/log.txt", "runs/first/last.pt"):
        assert (original / name).read_text() == "mine"
    assert {entry.name for entry in original.iterdir()} == {"train.py", "runs"}
    assert {entry.name for entry in (original / "runs").iterdir()} == {"log.txt", "first"}
    assert (work / "runs" / "log.txt").read_text() == "mineother"
    assert (work / "runs" / "first" / "last.pt").read_text() == "other"
    assert (work / "train.py").is_symlink()  # what is only read stays a link


def test_a_script_reads_what_lies_beside_its_folder_and_writes_there_into_copies(tmp_path, monkeypatch):
    examples = tmp_path / "examples"
    (examples / "mnist").mkdir(parents=True)
    (examples / "data").mkdir()
    for name in ("mnist/main.py", "data/images"):
        (examples / name).write_text("mine")
    work = stand_in(tmp_path / "run", examples / "mnist")
    monkeypatch.chdir(work)
    assert Path("../data/images").read_text() == "mine"  # as PyTorch's own example of MNIST does
    scratch = Scratch(tmp_path / "run", examples / "mnist")
    scratch._look("open", ("../data/images", "w", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    Path("../data/images").write_text("other")
    assert (examples / "data" / "images").read_text() == "mine"
    assert (work / "main.py").is_symlink()


def test_what_is_removed_there_stays_in_the_folder_of_the_script(folders):
    original, work, scratch, _ = folders
    scratch._look("os.remove", ("runs/log.txt", -1))
    os.remove("runs/log.txt")
    scratch._look("os.rename", ("train.py", "runs/train.py", -1, -1))
    os.rename("train.py", "runs/train.py")
    scratch._look("shutil.rmtree", ("runs", None))
    shutil.rmtree("runs")
    assert not (work / "runs").exists()
    assert sorted(path.name for path in original.rglob("*.*")) == ["last.pt", "log.txt", "train.py"]


def test_elsewhere_a_trial_writes_nothing_but_caches(folders, tmp_path):
    original, _, scratch, write = folders
    for path in (tmp_path / "out.txt", original / "train.py", original / "new.txt"):
        with pytest.raises(
            PermissionError, match=r"outside of the folder where .* Give it a path relative to that"
        ):
            write(path)
    (tmp_path / ".cache").mkdir()
    write(tmp_path / ".cache" / "lock")
    write(os.devnull)
    scratch._look("open", (original / "train.py", "r", os.O_RDONLY))
    scratch._look("open", (3, "w", os.O_WRONLY))  # open already
    scratch._look("sqlite3.connect", (":memory:",))
