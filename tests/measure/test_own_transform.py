"""The transform of a dataset is found in it, taken apart into its steps, and left as it was."""

from __future__ import annotations

import functools
import time

import pytest

from starvelab.errors import InputError
from starvelab.measure import diagnose, own_transform, run
from starvelab.measure.datasets import DatasetPipeline
from starvelab.measure.own_loader import Ordered, Stream
from starvelab.measure.own_transform import TimedTransform, innermost, name_of, steps_of, transform_of
from tests.jobs.loops import Clock

from .patience import patiently

torch = pytest.importorskip("torch")
data = torch.utils.data
pytestmark = pytest.mark.usefixtures("nothing_stays")


class Compose:
    """As in torchvision."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value


class Add:
    """A step with a number of its own."""

    def __init__(self, number):
        self.number = number

    def __call__(self, value):
        return value + self.number


def wait(value, seconds=0.005):
    time.sleep(seconds)
    return value


class Numbers(data.Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 20

    def __getitem__(self, index):
        item = torch.full((3,), float(index))
        return self.transform(item) if self.transform else item


class Wrapper(data.Dataset):
    """Keeps its dataset under a name of its own."""

    def __init__(self, base):
        self.base = base

    def __len__(self):
        return len(self.base)

    def __getitem__(self, index):
        return self.base[index], index


def chain():
    return Compose([Add(1), Compose([wait, Add(2)]), functools.partial(wait, seconds=0)])


def test_wrappers_are_looked_through():
    inner = Numbers(transform=wait)
    part, _ = data.random_split(data.Subset(inner, range(10)), [5, 5])
    assert innermost(Ordered(part, [0])) is inner
    assert transform_of(part) is wait
    assert innermost(Wrapper(part)) is inner
    assert transform_of(data.Subset(Numbers(), [0])) is None
    # Of two datasets nobody can say which one counts.
    both = data.ConcatDataset([inner, inner])
    both.first, both.second = inner, inner
    assert innermost(both) is both


def test_only_a_compose_is_taken_apart():
    first, second, _ = steps_of(chain())
    assert (first.number, len(steps_of(second))) == (1, 2)
    assert steps_of(Add(1)) == []
    # Such a class may leave out some of its steps, or change their order.
    assert steps_of(type("RandomOrder", (Compose,), {})([wait])) == []
    assert steps_of(Compose([wait, 3])) == []


def test_steps_are_called_by_their_own_names():
    assert [name_of(step) for step in (wait, Add(1), functools.partial(wait))] == ["wait", "Add", "wait"]
    timed = TimedTransform(Numbers(chain()), taken=["collate"])
    assert list(timed.seconds) == ["Add", "wait", "Add 2", "wait 2"]
    assert list(TimedTransform(Numbers(Add(1)), taken=["Add"]).seconds) == ["Add 2"]


def test_each_step_is_timed_and_the_dataset_is_left_as_it_was(monkeypatch):
    # On a busy machine even an addition may take longer than a short sleep.
    clock = Clock()
    monkeypatch.setattr(own_transform, "time", clock)

    def work(value):
        clock.sleep(0.005)
        return value

    transform = Compose([Add(1), Compose([work, Add(2)]), functools.partial(wait, seconds=0)])
    dataset = Wrapper(Numbers(transform))
    timed = TimedTransform(dataset)
    with timed.in_place():
        item, _ = dataset[4]
    assert item.tolist() == [7, 7, 7]
    assert timed.take_seconds() == pytest.approx({"Add": 0, "work": 0.005, "Add 2": 0, "wait": 0})
    assert set(timed.take_seconds().values()) == {0.0}
    assert dataset.base.transform is transform
    assert isinstance(transform.transforms[0], Add)
    # A step keeps its attributes.
    assert timed.timed.transforms[0].number == 1


def test_a_transform_may_take_values_by_name():
    class Masked(Numbers):
        def __getitem__(self, index):
            return self.transform(image=torch.ones(2), mask=index)["image"]

    def both(image, mask):
        image += mask
        return {"image": image, "mask": mask}

    timed = TimedTransform(Masked(both))
    decoded, item = timed.decoded_and_transformed(5)
    assert item.tolist() == [6, 6]
    values, named = decoded
    assert (values, named["mask"]) == ((), 5)
    timed.again(decoded)
    assert timed.take_seconds()["both"] > 0


def test_a_transform_that_is_called_together_with_that_of_the_target():
    class Both:
        def __init__(self, transform):
            self.transform = transform

        def __call__(self, value, target):
            return self.transform(value), target

    class Captions(Numbers):
        def __init__(self, transform):
            super().__init__(transform)
            self.transforms = Both(transform)

        def __getitem__(self, index):
            return self.transforms(torch.ones(1), index)

    dataset = Captions(Add(3))
    decoded, (item, _) = TimedTransform(dataset).decoded_and_transformed(0)
    assert (item.tolist(), decoded[0][0].tolist()) == ([4], [1])
    assert dataset.transforms.transform is dataset.transform


def test_a_stream_that_asks_for_its_transform_once():
    class Mapped(data.IterableDataset):
        def __init__(self):
            self.transform = Add(1)

        def __iter__(self):
            return map(self.transform, iter([1.0, 2.0, 3.0]))

    stream = Stream(Mapped())
    assert [stream[0], stream[0]] == [2, 3]
    decoded, item = TimedTransform(stream).decoded_and_transformed(0)
    assert (decoded, item) == (((1,), {}), 2)
    assert stream[0] == 2


def test_a_transform_that_is_never_called_is_said():
    class Forgotten(Numbers):
        def __getitem__(self, index):
            return index

    with pytest.raises(
        InputError, match=r"Forgotten has a transform and does not call it for item 3\. Set its"
    ):
        TimedTransform(Forgotten(wait)).decoded_and_transformed(3)


def test_a_transform_that_cannot_be_replaced_is_said():
    class Fixed(Numbers):
        transform = property(lambda self: wait)

        def __init__(self):
            pass

    with pytest.raises(
        InputError, match=r"Fixed must let it be replaced, and .* Make it an ordinary attribute"
    ):
        run(Fixed(), step_time="1 ms", batch_size=4, workers=0, progress=False)


def test_the_stages_of_a_dataset_belong_to_the_parts_of_its_ladder():
    pipe = DatasetPipeline(dataset=Numbers(chain()), step_time="1 ms")
    assert [(stage.name, stage.part) for stage in pipe.transforms] == [
        ("read", "read + decode"),
        ("decode", "read + decode"),
        ("__getitem__", "read + decode"),
        ("Add", "transform"),
        ("wait", "transform"),
        ("Add 2", "transform"),
        ("wait 2", "transform"),
    ]
    bare = DatasetPipeline(dataset=Numbers(), step_time="1 ms")
    assert {stage.part for stage in bare.transforms} == {"read + decode + transform"}


def test_a_slow_step_within_wrappers_is_called_by_its_name():
    part, _ = data.random_split(Numbers(chain()), [15, 5])
    finding = patiently(
        lambda: diagnose(data.DataLoader(part, 4), step_time="2 ms", budget="1 s", progress=False),
        lambda found: found.stage == "wait",
    )
    assert (finding.bottleneck, finding.stage) == ("transform", "wait")
    assert list(finding.stages["transform"]) == ["Add", "wait", "Add 2", "wait 2"]
    # Four items of 5 ms each.
    assert finding.stages["transform"]["wait"].m_as("ms") >= 20
    assert [row[0] for row in finding.rows][:4] == ["read + decode", "transform", "  Add", "  wait"]
    assert " Most of it is 'wait'." in finding.summary


def test_a_run_times_the_steps():
    measured = run(data.DataLoader(Numbers(chain()), 4), seconds="50 ms", progress=False)
    assert list(measured.stage_times) == [
        "read",
        "decode",
        "__getitem__",
        "Add",
        "wait",
        "Add 2",
        "wait 2",
        "collate",
    ]
