"""A Dataset or a DataLoader of one's own is run and diagnosed as it is; its transform becomes a rung."""

import pickle
import re
import threading
import time
from collections import defaultdict

import cloudpickle
import numpy as np
import pytest

from starvelab import Q_, Accelerator, Pipeline, Samples, Workers
from starvelab.errors import InputError
from starvelab.measure import SimulatedClock
from starvelab.measure.devices import StorageClock
from starvelab.measure.loaders import by_value
from starvelab.measure.setup import setup_of
from starvelab_doctor import of_loader
from starvelab_doctor.watching.datasets import DatasetSource, Stream
from tests.measure.patience import patiently

torch = pytest.importorskip("torch")
data = torch.utils.data
pytestmark = [pytest.mark.programs, pytest.mark.usefixtures("nothing_stays")]


def sleeper(*, load=0.0, transform=None, length=20):
    """A dataset whose work is to sleep, made here so that it travels to workers by value."""

    class Sleeper(torch.utils.data.Dataset):
        def __init__(self):
            self.transform = transform

        def __len__(self):
            return length

        def __getitem__(self, index):
            time.sleep(load)
            item = np.full((3, 4), index, np.float32)
            return (self.transform(item) if self.transform else item), index

    return Sleeper()


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


def slow(item):
    time.sleep(0.01)
    return item + 1


def diagnosed(dataset, *, budget="1 s", clock=None, collate_fn=None, **fields):
    source = DatasetSource(dataset, collate_fn=collate_fn)
    usual = {"dataset": Samples(source=source), "batch_size": 4, "workers": 1, "hardware": "4 ms"}
    return Pipeline(**usual | fields).diagnose(budget=budget, clock=clock, progress=False)


def found(bottleneck, dataset, **options):
    return patiently(lambda: diagnosed(dataset, **options), lambda finding: finding.bottleneck == bottleneck)


def test_what_comes_before_a_transform_is_told_from_it():
    finding = found("read + decode", sleeper(load=0.03, transform=lambda item: item + 1))
    assert finding.bottleneck == "read + decode"
    assert list(finding.evidence) == ["read + decode", "transform", "collate", "copy", "compute"]


def test_a_loader_is_more_than_a_source_of_samples():
    with pytest.raises(InputError, match=r"starvelab_doctor.of_loader\(loader\)"):
        setup_of(Pipeline(dataset=Samples(source=data.DataLoader(Numbers(), 4))))


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: DatasetSource(5), "A dataset has items and a length, got int. Pass one that has."),
    (lambda: DatasetSource([]), "A dataset to measure needs items, and this one has none. Check its path."),
    (lambda: of_loader([1]), "of_loader takes a DataLoader of PyTorch, got list. Put a dataset into one:"),
    (lambda: setup_of(Pipeline(dataset=Samples(source=DatasetSource([1, 2]), transforms=[abs]))),
     "A dataset transforms its items itself, got transforms beside it. Leave transforms out."),
])  # fmt: skip
def test_what_cannot_be_measured_is_rejected(wrong, message):
    with pytest.raises(InputError, match=re.escape(message)):
        wrong()


def test_a_collate_function_of_ones_own_is_used():
    def slow_join(samples):
        time.sleep(0.03)
        return torch.stack([torch.as_tensor(item) for item, _ in samples])

    assert found("collate", sleeper(), collate_fn=slow_join).bottleneck == "collate"


def test_an_item_that_fails_arrives_as_what_it_is():
    class Broken(torch.utils.data.Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, index):
            if index == 5:
                raise RuntimeError("label 5 is lost")
            return np.zeros(3)

    with pytest.raises(RuntimeError, match="label 5 is lost") as caught:
        diagnosed(Broken())
    assert type(caught.value) is RuntimeError


def test_items_that_cannot_be_joined_are_refused():
    class Ragged(torch.utils.data.Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, index):
            return np.zeros(index)

    with pytest.raises(InputError) as caught:
        diagnosed(Ragged())
    assert "All samples of a batch must have one shape and type, and be arrays or tensors: " in str(
        caught.value
    )
    assert "or pass a collate_fn of your own." in str(caught.value)


def test_a_dataset_can_be_simulated_as_well():
    finding = diagnosed(sleeper(), clock=SimulatedClock({"transform": "3 ms"}))
    assert finding.bottleneck == "transform"


def test_a_loader_and_its_step_are_run():
    seen = []
    pipe = of_loader(data.DataLoader(Numbers(seconds=0.002), 4), step=lambda batch: seen.append(batch.shape))
    measured = pipe.measure(seconds="0.1 s", progress=False)
    # A sleep is never shorter than asked, so four items take 8 ms at least.
    assert measured.throughput <= Q_(500, "img/s")
    assert set(seen) == {(4, 3)}
    assert "GPU busy" in [row[0] for row in measured.rows]
    assert measured.stage_times["__getitem__"] >= Q_(2, "ms")


def test_a_loader_without_a_step_is_run_alone(capsys):
    measured = of_loader(data.DataLoader(Naturals(0.002), 4)).measure(seconds="0.1 s")
    assert capsys.readouterr().out.startswith("Running Naturals items in the training loop itself for about")
    assert measured.throughput <= Q_(500, "img/s")
    assert ", without a training step: pass step=train_step to see how long it waits." in measured.summary
    assert "GPU busy" not in [row[0] for row in measured.rows]


@pytest.mark.parametrize("dataset", [Numbers(seconds=0.002), Naturals(0.002)])
def test_what_one_worker_takes_predicts_what_several_would_bring(dataset):
    def never(batch):
        raise AssertionError("calibrating trains nothing")

    loader = of_loader(data.DataLoader(dataset, 4), step=never)
    known = loader.calibrated(seconds="0.1 s", progress=False)
    assert known.dataset.cpu_time >= Q_(2, "ms")
    assert (known.workers.kind, known.batch_size, known.dataset.transfer) == ("torch", 4, Q_(12, "B"))
    with pytest.raises(InputError, match="The GPU's time comes from model and hardware"):
        known.solve()
    known = known.replace({"dataset.cpu_time": "2 ms"}, hardware=Accelerator(rate="0.1 ms"))
    one, four = (known.replace(workers=Workers(n, kind="torch", cores=4)).solve() for n in (1, 4))
    assert one.throughput.m_as("img/s") == pytest.approx(500)
    assert four.throughput.m_as("img/s") == pytest.approx(2000)


def test_settings_of_the_loader_are_kept():
    collate = torch.stack
    loader = data.DataLoader(
        Numbers(), 5, num_workers=2, prefetch_factor=3, collate_fn=collate, pin_memory=True, in_order=False
    )
    setup = setup_of(of_loader(loader))
    assert (setup.batch_size, setup.workers, setup.prefetch) == (5, 2, 3)
    assert (setup.collate_fn, setup.pinned, setup.in_order) == (collate, True, False)
    assert (setup.samples.name, setup.kind) == ("Numbers", "torch")
    more = setup_of(of_loader(loader).replace(workers=4, batch_size=7))
    assert (more.workers, more.prefetch, more.batch_size) == (4, 3, 7)


def test_the_order_is_that_of_the_sampler_and_no_random_number_is_used_up():
    loader = data.DataLoader(Numbers(), 4, shuffle=True, generator=torch.Generator().manual_seed(3))
    torch.manual_seed(5)
    states = [torch.random.get_rng_state(), loader.generator.get_state()]
    order = setup_of(of_loader(loader)).samples.dataset.order
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert torch.equal(loader.generator.get_state(), states[1])
    assert order == list(loader.sampler)
    assert order != sorted(order)


def test_batches_of_a_sampler_of_ones_own_and_items_that_are_batches():
    sampler = [[3, 1, 2], [7, 8, 9]]
    setup = setup_of(of_loader(data.DataLoader(Numbers(), batch_sampler=sampler)))
    assert (setup.batch_size, setup.samples.dataset.order) == (3, [3, 1, 2, 7, 8, 9])
    setup = setup_of(of_loader(data.DataLoader(Numbers(), batch_size=None)))
    assert (setup.batch_size, setup.collate_fn([torch.ones(3)]).shape) == (1, (3,))


def test_a_stream_gives_its_items_one_after_the_other_and_begins_anew():
    stream = Stream(Naturals())
    assert [int(stream[0][0]) for _ in range(8)] == [0, 1, 2, 3, 4, 5, 0, 1]
    assert int(pickle.loads(pickle.dumps(stream))[0][0]) == 0


def test_workers_get_no_training_step():
    model = threading.Lock()  # stands for what cannot be sent to another process, or is too large for that

    def train(batch):
        with model:
            pass

    setup = setup_of(of_loader(data.DataLoader(Numbers(), 4, num_workers=1), step=train))
    sent = cloudpickle.loads(by_value(setup))
    assert sent.preparer(StorageClock(None)).sample(3, 0, defaultdict(float)).tolist() == [3, 3, 3]
    assert "description" not in vars(sent)
    assert "device" not in vars(sent)


def test_a_step_and_its_time_are_one_too_many():
    with pytest.raises(InputError, match=r"got step and step_time\. Pass one of them"):
        of_loader(data.DataLoader(Numbers(), 4), step=print, step_time="1 ms")


def test_the_loop_itself_is_a_suspect():
    seen = []

    def train(batch):
        seen.append(batch.shape)
        time.sleep(0.03)

    loader = data.DataLoader(Numbers(), 4)
    finding = patiently(
        lambda: of_loader(loader, step=train).diagnose(budget="1 s", progress=False),
        lambda found: found.bottleneck == "compute" or not found.confident,
    )
    # On a busy machine a few percent may seem to be waited; a step of 5 ms would be starved by far.
    assert max(finding.evidence, key=finding.evidence.__getitem__) == "compute"
    assert finding.periods["device batch"].m_as("ms") >= 30
    assert finding.bottleneck == "compute" or not finding.confident
    assert set(seen) == {(4, 3)}


def test_a_loader_without_a_step_is_measured_alone():
    loader = data.DataLoader(data.Subset(Numbers(transform=slow), range(12)), 4)
    finding = patiently(
        lambda: of_loader(loader).diagnose(budget="1 s", progress=False),
        lambda found: found.bottleneck == "transform",
    )
    assert finding.bottleneck == "transform"
    assert finding.verdict == "cannot tell"
    assert finding.summary.startswith("One cannot tell without a training step whether this starves it: pass")


def test_a_stream_that_is_slow():
    loader = data.DataLoader(Naturals(0.01), 4)
    finding = patiently(
        lambda: of_loader(loader, step_time="2 ms").diagnose(budget="1 s", progress=False),
        lambda found: found.verdict == "highly input-bound",
    )
    assert finding.bottleneck == "read + decode + transform"
    assert finding.verdict == "highly input-bound"
