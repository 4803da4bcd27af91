"""The steps of a dataset's transform are timed, and so are reading and decoding; it is left as it was."""

import cProfile
import functools
import io
import sys
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from doctor.tests.loops import Clock
from starvelab import Pipeline, Samples
from starvelab.errors import InputError
from starvelab.measure.diagnosis import _stages
from starvelab.measure.setup import setup_of
from starvelab_doctor import of_loader
from starvelab_doctor.watching import dataset_times
from starvelab_doctor.watching.dataset_times import (
    EVERY,
    ItemTimes,
    TimedTransform,
    innermost,
    name_of,
    part_of,
    steps_of,
)
from starvelab_doctor.watching.datasets import DatasetPreparer, DatasetSource, Ordered
from tests.measure.patience import patiently

from .test_datasets import Numbers

torch = pytest.importorskip("torch")
data = torch.utils.data
pytestmark = [pytest.mark.programs, pytest.mark.usefixtures("nothing_stays")]


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
    assert TimedTransform(part).original is wait
    assert innermost(Wrapper(part)) is inner
    assert TimedTransform(data.Subset(Numbers(), [0])).original is None
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
    monkeypatch.setattr(dataset_times, "time", clock)

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
    assert timed.apply.transforms[0].number == 1


def test_a_transform_may_take_values_by_name():
    class Masked(Numbers):
        def __getitem__(self, index):
            return self.transform(image=torch.ones(2), mask=index)["image"]

    def both(image, mask):
        image += mask
        return {"image": image, "mask": mask}

    preparer = DatasetPreparer(DatasetSource(Masked(both)))
    timed = preparer.transform
    decoded, item = preparer.decoded_and_transformed(5)
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
    decoded, (item, _) = DatasetPreparer(DatasetSource(dataset)).decoded_and_transformed(0)
    assert (item.tolist(), decoded[0][0].tolist()) == ([4], [1])
    assert dataset.transforms.transform is dataset.transform


def test_a_stream_that_asks_for_its_transform_once():
    class Mapped(data.IterableDataset):
        def __init__(self):
            self.transform = Add(1)

        def __iter__(self):
            return map(self.transform, iter([1.0, 2.0, 3.0]))

    source = DatasetSource(Mapped())
    stream = source.dataset
    assert [stream[0], stream[0]] == [2, 3]
    decoded, item = DatasetPreparer(source).decoded_and_transformed(0)
    assert (decoded, item) == (((1,), {}), 2)
    assert stream[0] == 2


def test_a_transform_that_is_never_called_is_said():
    class Forgotten(Numbers):
        def __getitem__(self, index):
            return index

    with pytest.raises(
        InputError, match=r"Forgotten has a transform and does not call it for item 3\. Set its"
    ):
        DatasetPreparer(DatasetSource(Forgotten(wait))).decoded_and_transformed(3)


def test_a_transform_that_cannot_be_replaced_is_said():
    class Fixed(Numbers):
        transform = property(lambda self: wait)

        def __init__(self):
            pass

    fixed = Samples(source=DatasetSource(Fixed()))
    with pytest.raises(
        InputError, match=r"Fixed must let it be replaced, and .* Make it an ordinary attribute"
    ):
        Pipeline(dataset=fixed, batch_size=4, workers=0).measure(progress=False)


def test_the_stages_of_a_dataset_belong_to_the_parts_of_its_ladder():
    pipe = DatasetSource(Numbers(chain()))
    assert list(pipe.stages.items()) == [
        ("read", "read + decode"), ("decode", "read + decode"), ("__getitem__", "read + decode"),
        ("Add", "transform"), ("wait", "transform"), ("Add 2", "transform"), ("wait 2", "transform"),
    ]  # fmt: skip
    bare = DatasetSource(Numbers())
    assert set(bare.stages.values()) == {"read + decode + transform"}


def test_a_slow_step_within_wrappers_is_called_by_its_name():
    part, _ = data.random_split(Numbers(chain()), [15, 5])
    finding = patiently(
        lambda: of_loader(data.DataLoader(part, 4), step_time="2 ms").diagnose(
            budget="1 s", progress=False
        ),
        lambda found: found.stage == "wait",
    )
    assert (finding.bottleneck, finding.stage) == ("transform", "wait")
    assert list(finding.stages["transform"]) == ["Add", "wait", "Add 2", "wait 2"]
    # Four items of 5 ms each.
    assert finding.stages["transform"]["wait"].m_as("ms") >= 20
    assert [row[0] for row in finding.rows][:4] == ["read + decode", "transform", "  Add", "  wait"]
    assert " Most of it is 'wait'." in finding.summary


FUNCTIONS = {
    "<built-in method _io.open>": "read",
    "<method 'read' of '_io.BufferedReader' objects>": "read",
    "<built-in method posix.open>": "read",
    "<built-in method numpy.fromfile>": "read",
    "<method 'read' of '_io.BytesIO' objects>": "",
    "<method 'decode' of 'ImagingDecoder' objects>": "decode",
    "<built-in method imdecode>": "decode",
    "<built-in method zlib.decompress>": "decode",
    "<method 'decode' of 'bytes' objects>": "",
    "<method 'append' of 'list' objects>": "",
    "<built-in method time.sleep>": "",
}


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    """A file that takes much longer to decode than to read."""
    path = tmp_path_factory.mktemp("photo") / "noise.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (600, 800, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path, quality=90)
    return path


class Items:
    """Items that are made by a function, and perhaps transformed."""

    def __init__(self, make, transform=None):
        self.make, self.transform = make, transform

    def __len__(self):
        return 40

    def __getitem__(self, index):
        item = self.make()
        return self.transform(item) if self.transform else item


def spent(dataset, items=3):
    """Seconds by stage for a few items, after a first."""
    preparer = DatasetPreparer(DatasetSource(dataset))
    preparer.sample(0, 0, dict.fromkeys(preparer.stages, 0.0))
    seconds = dict.fromkeys(preparer.stages, 0.0)
    for index in range(items):
        preparer.sample(index, 0, seconds)
    return seconds


def largest(seconds):
    return max(seconds, key=seconds.__getitem__)


@pytest.mark.parametrize(("function", "part"), FUNCTIONS.items())
def test_functions_of_c_are_known_by_name(function, part):
    assert part_of(function) == part


def test_an_image_is_decoded_for_longer_than_it_is_read(photo):
    # On a busy machine the one item that is watched may be held up outside the decoder.
    decoded = Items(lambda: Image.open(photo).convert("RGB"))
    seconds = patiently(lambda: spent(decoded), lambda seconds: largest(seconds) == "decode")
    assert largest(seconds) == "decode"
    assert seconds["read"] > 0


def test_raw_bytes_are_read_and_not_decoded(tmp_path):
    path = tmp_path / "raw.bin"
    path.write_bytes(bytes(30_000_000))
    seconds = spent(Items(path.read_bytes))
    assert largest(seconds) == "read"
    assert seconds["decode"] == 0


def test_what_is_in_memory_is_not_read():
    packed = zlib.compress(np.random.default_rng(0).integers(0, 9, 500_000, dtype=np.uint8).tobytes())
    seconds = spent(Items(lambda: zlib.decompress(io.BytesIO(packed).read())))
    assert largest(seconds) == "decode"
    assert seconds["read"] == 0


def test_other_work_is_the_dataset_s_own():
    seconds = spent(Items(lambda: time.sleep(0.003)))
    assert seconds["__getitem__"] >= 0.009
    assert (seconds["read"], seconds["decode"]) == (0, 0)


def test_what_a_transform_decodes_is_its_own_time(photo):
    # Pillow opens a file and decodes it when somebody needs the pixels.
    seconds = spent(Items(lambda: Image.open(photo), np.asarray))
    assert largest(seconds) == "asarray"
    assert seconds["decode"] == 0
    assert seconds["read"] > 0


def test_one_item_of_many_is_watched_and_the_others_are_split_alike():
    times = ItemTimes()
    watched = []
    for _ in range(EVERY + 2):
        with times.watching():
            watched.append(times.profile is not None)
            if watched[-1]:
                zlib.decompress(zlib.compress(bytes(100)))
        parts = times.split(1.0)
    assert [number for number, each in enumerate(watched) if each] == [1, EVERY + 1]
    share = times.spent["decode"] / 2.0
    assert parts["decode"] == pytest.approx(share)
    assert times.split(4.0)["decode"] == pytest.approx(4 * share)
    assert share > 0


def test_a_profiler_of_the_user_goes_on():
    own = cProfile.Profile()
    before = sys.getprofile()
    own.enable()
    try:
        times = ItemTimes()
        for _ in range(2):
            with times.watching():
                zlib.compress(b"")
            assert times.profile is None
    finally:
        own.disable()
    assert any("zlib.compress" in str(entry.code) for entry in own.getstats())
    assert times.split(1.0) == {"read": 0.0, "decode": 0.0}
    assert sys.getprofile() is before


def test_an_item_that_fails_ends_the_watching():
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        spent(Items(lambda: 1 / 0))
    assert sys.getprofile() is before


def test_a_finding_lists_only_what_occurred():
    pipe = setup_of(Pipeline(dataset=Samples(source=DatasetSource(Items(bytes))), batch_size=4, workers=2))
    seconds = {"read": 0.001, "decode": 0.003, "__getitem__": 0.0, "collate": 0.0}
    whole = "read + decode + transform"
    stages = _stages(pipe, seconds)
    assert stages[whole] == pytest.approx({"read": 2.0, "decode": 6.0})
    assert stages["collate"] == {"collate": 0.0}
