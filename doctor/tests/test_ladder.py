"""The caching ladder of one's own job: what each rung serves, and what the rungs come to."""

import tempfile
from pathlib import Path
from textwrap import dedent
from unittest.mock import patch

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, dataloader

from starvelab_doctor import torch_internals
from starvelab_doctor.trials import ladder
from starvelab_doctor.trials import runs as trials
from starvelab_doctor.trials.ladder import RUNGS, Ladder, climb_ladder
from starvelab_doctor.trials.replay import HOST, KeptBatches, PreparedFetch
from starvelab_doctor.trials.run import Loop, Trial
from starvelab_doctor.trials.runs import Runs

pytestmark = pytest.mark.programs


class Counted(Dataset):
    """Items that know how often they were asked for."""

    def __init__(self, length=12):
        self.length, self.asked = length, 0

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.asked += 1
        return {"x": torch.tensor([index]), "name": f"item {index}"}


class CountedStream(IterableDataset):
    def __init__(self, length=12):
        self.length, self.asked = length, 0

    def __iter__(self):
        for index in range(self.length):
            self.asked += 1
            yield {"x": torch.tensor([index]), "name": f"item {index}"}


def on_rung(rung, dataset, passes, *, keep=2, batch=3):
    """Return the batches of each pass over a loader that a trial serves on a rung, and the trial."""
    name = f" {type(dataset).__name__} {dataset.length if isinstance(dataset, Counted) else 0}"
    plan = {"loop": name, "settings": {}, "rung": rung, "whole": False, "seconds": 1e9}
    trial = Trial(plan, None)
    loader = DataLoader(dataset, batch)
    with (
        patch("starvelab_doctor.trials.replay.MAX_KEPT", keep),
        patch.object(DataLoader, "__iter__", trial.iterating(DataLoader.__iter__)),
        torch_internals.replaced_iterators(dataloader, trial.following, trial.beginning),
    ):
        served = []
        for limit in passes:
            served.append([])
            for batch_number, values in enumerate(loader, 1):
                served[-1].append(values.pop("x").flatten().tolist())  # as some loops take out what they need
                if batch_number == limit:
                    break
    return served, trial


def test_from_the_hosts_memory_a_loop_gets_the_first_batches_again():
    dataset = Counted()
    served, trial = on_rung(HOST, dataset, (None, None))
    first, second = [0, 1, 2], [3, 4, 5]
    assert served == [[first, second, first, second]] * 2  # passes are as long as without
    assert dataset.asked == 6
    (loop,) = trial.loops.values()
    assert [len(times) for times in loop.passes] == [2, 4]  # only what was served again is timed


def test_of_a_stream_a_pass_is_as_long_as_the_first_one_if_that_was_seen_to_end():
    served, _ = on_rung(HOST, CountedStream(), (None, None), keep=9)
    assert [len(batches) for batches in served] == [4, 4]
    endless, _ = on_rung(HOST, CountedStream(), (9,))
    assert [len(batches) for batches in endless] == [9]


@pytest.mark.parametrize("kind", [Counted, CountedStream])
def test_with_prepared_items_the_dataset_is_asked_for_one_batch(kind):
    dataset = kind()
    served, _ = on_rung("prepared", dataset, (4,))
    assert served == [[[0, 1, 2]] * 4]
    assert dataset.asked == 3


def test_batches_and_items_are_given_anew():
    class Fetcher:
        dataset = None

        def collate_fn(self, items):
            return [items.pop().pop("x") for _ in range(len(items))]

        def fetch(self, index):
            return self.collate_fn([{"x": each} for each in index])

    fetch = PreparedFetch(Fetcher())
    assert [fetch([1, 2]), fetch([3, 4]), fetch([5])] == [[2, 1], [2, 1], [1]]


def test_what_is_kept_is_a_copy_and_finds_room(monkeypatch):
    kept, batch = KeptBatches(HOST, pinned=False), {"x": torch.zeros(1000)}
    kept.room = 6000.0
    kept.keep(batch)
    batch["x"] += 1
    assert kept.batches[0]["x"].sum() == 0
    assert not kept.full
    kept.keep(batch)
    assert kept.full


SCRIPT = """
    import sys, time
    from torch.utils.data import DataLoader, Dataset

    class Photos(Dataset):
        def __len__(self):
            return 100_000
        def __getitem__(self, index):
            time.sleep(0.02)
            return index

    if __name__ == "__main__":
        for batch in DataLoader(Photos(), 2, num_workers=1):
            time.sleep(0.01)
"""


def test_a_job_is_measured_with_and_without_its_loader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trials, "SECONDS", 0.8)
    monkeypatch.setattr(ladder, "TURNS", 1)
    script, said = tmp_path / "train.py", []
    script.write_text(dedent(SCRIPT))
    with tempfile.TemporaryDirectory(dir="/tmp") as base:
        runs = Runs(str(script), [], Path(base))
        runs.seconds = 0.8
        first = runs.first()
        found = climb_ladder(runs, on_gpu=first["on_gpu"], say=said.append)
    assert found.ceiling > 2
    assert len(said) == 3
    assert found.left_out == {"device": "no GPU was in use, so the host's memory is the highest rung"}
    assert found.largest == "the dataset"


def test_the_ceiling_is_the_most_that_any_turn_showed():
    ladder = Ladder((10.0, 10.0), {"prepared": (12.0, 12.2), "host": (30.0, 31.0)}, {"device": "none"})
    assert ladder.ceiling == pytest.approx(3.1)
    assert ladder.gain("host") == pytest.approx(3.05)
    assert ladder.largest == "collating, workers and the hand-over"
    assert ladder.lines == [
        "as the job is: 10 batches a second",
        "with items that are prepared already: 12.1 batches a second, 1.2 times",
        "from the host's memory: 30.5 batches a second, 3 times",
        "from the device: not measured, since none",
        "No change of the input brings more than 3.1 times the batches a second. Most of it is lost by "
        "collating, workers and the hand-over.",
    ]


def test_a_job_that_no_rung_makes_faster_is_fed():
    assert Ladder((10.0,), {"host": (10.3,)}).fed
    assert Ladder((10.0,), {"host": (9.7,)}).ceiling == 1
    # Beside other programs minGPT's adder was "at most 1.00 times as fast", by a rung at 0.43 times.
    # Once the job itself took four times as long in one turn, and a gain of 28 was said.
    for disturbed in (Ladder((10.0,), {"host": (4.3,)}), Ladder((4.9, 18.4), {"host": (60.0, 515.0)})):
        assert (disturbed.ceiling, disturbed.fed) == (None, False)
        assert disturbed.verdict.startswith("The job was slower without its loader, or much slower in one")
    # Without the rungs that leave the whole loader out, nothing tells what the input costs at most.
    for rungs in ({}, {"prepared": (8.0,)}):
        unknown = Ladder((10.0,), rungs, {rung: "it fails" for rung in RUNGS if rung not in rungs})
        assert (unknown.ceiling, unknown.fed) == (None, False)
        assert unknown.lines[-1].startswith("The highest rung could not be measured, so the gain")


def test_a_loader_that_asks_for_pinned_memory_without_a_gpu_gets_none():
    loader = DataLoader(range(8), pin_memory=True)  # as that of minGPT
    kept = Loop(loader, HOST).kept
    kept.keep(torch.zeros(4))
    assert kept.batches[0].is_pinned() is torch.cuda.is_available()
