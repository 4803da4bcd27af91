"""A probe in a DataLoader: what it times, and that it changes nothing."""

import pickle
import random
import types

import numpy as np
import pytest

from doctor.tests.loops import Clock, Slow
from starvelab_doctor import torch_internals
from starvelab_doctor.watching import probe
from starvelab_doctor.watching.hooks import Doctor
from starvelab_doctor.watching.probe import Probe, TimedBatch

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info  # noqa: E402

pytestmark = pytest.mark.programs

COUNT = 22


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


class Numbers(Dataset):
    """Items that hold whatever random numbers a worker draws."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        drawn = [random.random(), float(np.random.rand()), torch.rand(1).item()]  # noqa: NPY002  # as datasets do
        return {"values": torch.tensor([index, *drawn]), "name": f"item {index}"}


class Listed(Numbers):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Counted(IterableDataset):
    """Each worker gives its part, which `own_part` tells it."""

    first, step = 0, 1

    def __iter__(self):
        for number in range(self.first, COUNT, self.step):
            yield torch.tensor([number, torch.rand(1).item()])


def own_part(worker):
    information = get_worker_info()
    information.dataset.first, information.dataset.step = worker, information.num_workers


def as_names(items):
    return [item["name"] for item in items], torch.rand(2)


class Backward:
    def __len__(self):
        return COUNT // 5

    def __iter__(self):
        return iter([[start + 4, start] for start in range(0, COUNT - 5, 5)])


LOADERS = {
    "no workers": lambda: DataLoader(Numbers(), 3, shuffle=True),
    "two workers": lambda: DataLoader(Numbers(), 3, shuffle=True, num_workers=2),
    "persistent workers": lambda: DataLoader(Listed(), 3, True, num_workers=2, persistent_workers=True),
    "a stream": lambda: DataLoader(Counted(), 3),
    "streams": lambda: DataLoader(Counted(), 3, num_workers=2, worker_init_fn=own_part, drop_last=True),
    "a batch sampler": lambda: DataLoader(Numbers(), batch_sampler=Backward(), num_workers=1),
    "a collate function and a generator": lambda: DataLoader(
        Numbers(), 3, shuffle=True, collate_fn=as_names, generator=torch.Generator().manual_seed(3)
    ),
    "a sampler and no batches": lambda: DataLoader(
        Numbers(), batch_size=None, sampler=list(range(COUNT - 2, 0, -2))
    ),
}


def epochs(loader):
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    torch.manual_seed(5)
    batches = [batch for _ in range(2) for batch in loader]
    return (
        batches,
        torch.rand(1).item(),
        random.random(),
        None if loader.generator is None else (loader.generator.get_state().tolist()),
    )


@pytest.fixture
def each_batch(monkeypatch):
    """All batches are timed but the first of each worker, whatever that costs."""
    monkeypatch.setattr(probe, "SHARE", 1e9)


def probed(go):
    """What `go` gives, and the costs of the stages of the loader that it goes over."""
    doctor = Doctor(probe=True, lines=False)
    with doctor.watching():
        given = go()
    ((_, finding),) = doctor.results()
    return given, finding.loader.stages


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.usefixtures("each_batch")
def test_batches_and_random_numbers_are_the_same(kind):
    alone, loader = LOADERS[kind](), LOADERS[kind]()
    before = loader.worker_init_fn, loader.collate_fn, loader.dataset
    given, costs = probed(lambda: epochs(loader))
    assert same(epochs(alone), given)
    assert (loader.worker_init_fn, loader.collate_fn, loader.dataset) == before
    # Each worker's first one of a pass is not timed.
    assert costs.timed == len(given[0]) - 2 * max(loader.num_workers, 1)
    assert ("hand-over" in costs.shares) == bool(loader.num_workers)


@pytest.mark.usefixtures("each_batch")
def test_sampler_dataset_and_collate_function_are_told_apart(monkeypatch):
    clock = Clock()
    for module in (probe, torch_internals):
        monkeypatch.setattr(module, "time", clock)

    def collate(items):
        clock.sleep(0.01)
        return items

    def indices():
        clock.sleep(5.0)  # to shuffle them all, which is the beginning of a pass
        for first in range(0, 24, 2):
            clock.sleep(0.02)
            yield [first, first + 1]

    class Drawn:  # anew for each pass
        def __iter__(self):
            return indices()

    loader = DataLoader(Slow(clock, 0.03, 24), batch_sampler=Drawn(), collate_fn=collate)
    given, costs = probed(lambda: [batch for _ in range(2) for batch in loader])
    assert given[1] == [2, 3]
    assert costs.costs["dataset"].m_as("ms") == pytest.approx(60)
    assert costs.costs["collate"].m_as("ms") == pytest.approx(10)
    assert costs.costs["sampler"].m_as("ms") == pytest.approx(20)
    assert costs.certain
    assert "the sampler, in the training loop 22.2 %" in costs.summary


def test_the_budget_decides_which_batches_are_timed(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(probe, "time", clock)
    fetcher = torch.utils.data._DatasetKind.create_fetcher(0, Slow(clock, 0.03, 24), True, list, False)
    timed = []

    def deliver(batch, *times):
        clock.sleep(0.009)
        timed.append(clock.now)
        return batch

    fetch = probe.TimedFetch(fetcher, 0.05, deliver)
    begun = clock.now
    for _ in range(100):
        assert fetch([0, 1]) == [0, 1]
    assert fetcher.collate_fn is list
    assert 0.04 < 0.009 * len(timed) / (clock.now - begun) < 0.05


def test_an_error_of_the_dataset_leaves_the_collate_function(each_batch):
    class Broken(Numbers):
        def __getitem__(self, index):
            if index == 7:
                raise ValueError("a broken file")
            return index

    loader = DataLoader(Broken(), 2)
    iterators = []

    def go():
        iterators.append(iter(loader))
        with pytest.raises(ValueError, match="a broken file"):
            list(iterators[0])

    probed(go)
    assert iterators[0]._dataset_fetcher.collate_fn is loader.collate_fn


def test_a_pickle_carries_the_times_and_gives_the_batch_alone(monkeypatch):
    wants = Probe()
    wants.workers = 1
    carried = pickle.dumps((3, TimedBatch({"x": [1]}, wants.number, 0.25, 0.125)))
    wants.ask()  # after it was packed: it lay ready
    assert pickle.loads(carried) == (3, {"x": [1]})
    costs = wants.costs()
    assert costs.costs["dataset"].m_as("ms") == 250
    assert costs.costs["collate"].m_as("ms") == 125
    assert 0 <= costs.costs["hand-over"].m_as("s") < 1
    assert costs.timed == 1


@pytest.mark.parametrize(("pinned", "receives"), [(False, 0.125 + 0.25), (True, 0.125)])
def test_the_loop_unpacks_a_batch_and_goes_on(monkeypatch, pinned, receives):
    clock = Clock()
    monkeypatch.setattr(probe, "time", clock)
    wants = Probe()
    wants.workers, wants.pinned = 1, pinned  # with pinned memory a thread unpacks, and not the loop
    wants.ask()
    wants.arrive(0.0, 0.0, packing=0.0, unpacking=clock.now + 0.5, taken=0.125)
    clock.sleep(0.875)
    wants.receive()
    assert list(wants.samples.batches[3]) == pytest.approx([receives])


def test_a_probe_that_nobody_holds_is_forgotten():
    number = Probe().number
    assert number not in probe.PROBES
    assert pickle.loads(pickle.dumps(TimedBatch([1], number, 0.1, 0.1))) == [1]


def test_workers_share_the_time_of_a_probe():
    worker, fetchers = types.SimpleNamespace(dataset=[], num_workers=4), []

    def change(dataset, make):
        fetchers.append(types.SimpleNamespace(fetch=None, collate_fn=list, dataset=dataset))
        make(fetchers[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_internals, "change_fetchers", change)
        probe.time_worker(worker, 1, 0.02)
    assert fetchers[0].fetch.share == 0.005
