"""`diagnose` takes a DataLoader as it is, and the training step that goes with it."""

from __future__ import annotations

import pickle
import time

import pytest

from starvelab.errors import InputError
from starvelab.measure import diagnose, watch
from starvelab.measure.datasets import DatasetPipeline
from starvelab.measure.own_loader import Stream, options_of
from starvelab.measure.training_step import TrainingStep

from .patience import patiently

torch = pytest.importorskip("torch")
data = torch.utils.data
pytestmark = pytest.mark.usefixtures("nothing_stays")


class Numbers(data.Dataset):
    def __init__(self, transform=None, seconds=0.0):
        self.transform, self.seconds = transform, seconds

    def __len__(self):
        return 20

    def __getitem__(self, index):
        time.sleep(self.seconds)
        item = torch.full((3,), float(index))
        return self.transform(item) if self.transform else item


class Naturals(data.IterableDataset):
    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def __iter__(self):
        for number in range(6):
            time.sleep(self.seconds)
            yield torch.full((3,), float(number))


def slowly(item):
    time.sleep(0.01)
    return item


def test_settings_of_the_loader_are_kept():
    collate = torch.stack
    loader = data.DataLoader(
        Numbers(), 5, num_workers=2, prefetch_factor=3, collate_fn=collate, pin_memory=True, in_order=False
    )
    pipe = DatasetPipeline(**options_of(loader), step_time="1 ms")
    assert (pipe.batch_size, pipe.workers, pipe.prefetch) == (5, 2, 3)
    assert (pipe.collate_fn, pipe.pinned, pipe.in_order) == (collate, True, False)
    assert pipe.samples.name == "Numbers"


def test_the_order_is_that_of_the_sampler_and_no_random_number_is_used_up():
    loader = data.DataLoader(Numbers(), 4, shuffle=True, generator=torch.Generator().manual_seed(3))
    torch.manual_seed(5)
    states = [torch.random.get_rng_state(), loader.generator.get_state()]
    order = options_of(loader)["dataset"].order
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert torch.equal(loader.generator.get_state(), states[1])
    assert order == list(loader.sampler)
    assert order != sorted(order)


def test_batches_of_a_sampler_of_ones_own():
    sampler = [[3, 1, 2], [7, 8, 9]]
    options = options_of(data.DataLoader(Numbers(), batch_sampler=sampler))
    assert options["batch_size"] == 3
    assert options["dataset"].order == [3, 1, 2, 7, 8, 9]


def test_a_dataset_whose_items_are_batches():
    options = options_of(data.DataLoader(Numbers(), batch_size=None))
    assert options["batch_size"] == 1
    assert options["collate_fn"]([torch.ones(3)]).shape == (3,)


def test_a_stream_gives_its_items_one_after_the_other_and_begins_anew():
    stream = Stream(Naturals())
    assert [int(stream[0][0]) for _ in range(8)] == [0, 1, 2, 3, 4, 5, 0, 1]
    assert int(pickle.loads(pickle.dumps(stream))[0][0]) == 0


def test_workers_get_no_training_step():
    sent = pickle.loads(pickle.dumps(TrainingStep(lambda batch: batch)))
    assert sent.step is None


def test_a_step_that_is_no_function():
    with pytest.raises(
        InputError, match=r"step must be a function that trains on one batch, got str. Pass for"
    ):
        diagnose(data.DataLoader(Numbers(), 4), step="train")


def test_a_step_and_its_time_are_one_too_many():
    with pytest.raises(InputError, match=r"and not both.*Or pass step=train_step: a function that trains on"):
        diagnose(data.DataLoader(Numbers(), 4), step=print, step_time="1 ms")


def test_the_loop_itself_is_a_suspect():
    seen = []

    def train(batch):
        seen.append(batch.shape)
        time.sleep(0.03)

    loader = data.DataLoader(Numbers(), 4)
    finding = patiently(
        lambda: diagnose(loader, step=train, budget="1.5 s", progress=False),
        lambda found: found.bottleneck == "compute" or not found.confident,
    )
    # On a busy machine a few percent may seem to be waited; a step of 5 ms would be starved by far.
    assert max(finding.evidence, key=finding.evidence.__getitem__) == "compute"
    assert finding.periods["device batch"].m_as("ms") >= 30
    assert finding.bottleneck == "compute" or not finding.confident
    assert set(seen) == {(4, 3)}


def test_a_loader_without_a_step_is_measured_alone():
    loader = data.DataLoader(data.Subset(Numbers(transform=slowly), range(12)), 4)
    finding = patiently(
        lambda: diagnose(loader, budget="1.5 s", progress=False),
        lambda found: found.bottleneck == "transform",
    )
    assert finding.bottleneck == "transform"
    assert finding.verdict == "cannot tell"
    assert finding.summary.startswith("One cannot tell without a training step whether this starves it: pass")


def test_a_stream_that_is_slow():
    loader = data.DataLoader(Naturals(0.01), 4)
    finding = patiently(
        lambda: diagnose(loader, step_time="2 ms", budget="1.5 s", progress=False),
        lambda found: found.verdict == "highly input-bound",
    )
    assert finding.bottleneck == "read + decode + transform"
    assert finding.verdict == "highly input-bound"


def test_a_dataloader_is_asked_for_its_batch_size_and_workers():
    loader = data.DataLoader(list(range(64)), batch_size=4, shuffle=True)
    watched = watch(loader, progress=False)
    assert sum(len(batch) for batch in watched) == 64
    assert (len(watched), watched.dataset, watched.result.workers) == (16, loader.dataset, 0)
    assert watched.result.throughput.m_as("img/s") > 0
    sampler = data.BatchSampler(data.SequentialSampler(range(64)), 8, False)
    assert watch(data.DataLoader(list(range(64)), batch_sampler=sampler))._times.batch_size == 8
