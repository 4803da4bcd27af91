"""A dataset of one's own is diagnosed through PyTorch's loader; its transform becomes a rung."""

from __future__ import annotations

import time

import numpy as np
import pytest

from starvelab import InputError, UnknownNameError
from starvelab.measure import SimulatedClock, VirtualAccelerator, diagnose
from starvelab.measure.datasets import DatasetPipeline

from .patience import patiently

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("nothing_stays")


def sleeper(*, load=0.0, transform=None, calls=True, length=20):
    """A dataset whose work is to sleep, made here so that it travels to workers by value."""

    class Sleeper(torch.utils.data.Dataset):
        def __init__(self):
            self.transform = transform

        def __len__(self):
            return length

        def __getitem__(self, index):
            time.sleep(load)
            item = np.full((3, 4), index, np.float32)
            return (self.transform(item) if self.transform and calls else item), index

    return Sleeper()


def slow(item):
    time.sleep(0.01)
    return item + 1


def slow_transform():
    pause, add = 0.03, 1

    def transform(item):
        time.sleep(pause)
        return item + add

    return transform


def diagnosed(dataset, **options):
    usual = {"batch_size": 4, "workers": 1, "step_time": "4 ms", "budget": "2 s", "progress": False}
    return diagnose(dataset, **usual | options)


def found(bottleneck, dataset, **options):
    return patiently(lambda: diagnosed(dataset, **options), lambda finding: finding.bottleneck == bottleneck)


def test_slow_items_without_a_transform_are_one_part():
    finding = found("read + decode + transform", sleeper(load=0.03))
    assert list(finding.evidence) == ["read + decode + transform", "collate", "copy", "compute"]
    assert finding.bottleneck == "read + decode + transform"


def test_slow_items_before_a_quick_transform_are_reading_and_decoding():
    finding = found("read + decode", sleeper(load=0.03, transform=lambda item: item + 1))
    assert list(finding.evidence) == ["read + decode", "transform", "collate", "copy", "compute"]
    assert finding.bottleneck == "read + decode"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_slow_transform_is_told_from_reading(workers):
    # On a busy machine a few batches arrive late for other reasons.
    finding = found("transform", sleeper(transform=slow_transform()), workers=workers, budget="4 s")
    assert finding.bottleneck == "transform"


def test_a_slow_accelerator_is_found_behind_a_dataset():
    # On a busy machine a batch may take as long to arrive as a short step.
    finding = found("compute", sleeper(), step_time="200 ms", budget="4 s")
    assert finding.bottleneck == "compute"


def test_a_collate_function_of_ones_own_is_used():
    def slow_join(samples):
        time.sleep(0.03)
        return torch.stack([torch.as_tensor(item) for item, _ in samples])

    assert found("collate", sleeper(), collate_fn=slow_join).bottleneck == "collate"


def test_a_transform_that_is_never_called_is_said():
    with pytest.raises(InputError) as caught:
        diagnosed(sleeper(transform=slow_transform(), calls=False))
    assert (
        "Sleeper has a transform and does not call it for item 0. Set its transform to None, or call it in "
        "__getitem__." in str(caught.value)
    )


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


def test_a_dataset_keeps_its_transform():
    dataset = sleeper(transform=slow)
    preparer = DatasetPipeline.around(dataset, step_time="4 ms").preparer(None)
    seconds = preparer.no_seconds()
    item, label = preparer.sample(3, 2, seconds)
    assert dataset.transform is slow
    # The item that goes on was made the whole way, and the transform ran once more beside it.
    assert (item == label + 1).all()
    assert seconds["slow"] >= 0.01


def test_an_accelerator_can_be_given_instead_of_its_step_time():
    made = DatasetPipeline.around(sleeper(), accelerator=VirtualAccelerator(step_time="4 ms"))
    assert (made.worker_count, made.samples.name, len(made.samples)) == (2, "Sleeper", 20)
    assert made.batch_bytes == 32 * 3 * 4 * 4


@pytest.mark.parametrize(
    "options", [{}, {"step_time": "4 ms", "accelerator": VirtualAccelerator(step_time="4 ms")}]
)
def test_a_step_is_said_once(options):
    with pytest.raises(InputError) as caught:
        diagnose(sleeper(), **options)
    assert str(caught.value) == (
        "A dataset needs an accelerator or the step_time of one, and not both. "
        'Pass for example step_time="30 ms": a time that you measured, or expect. Or pass '
        "step=train_step: a function that trains on one batch."
    )


def test_an_unknown_option_is_refused():
    with pytest.raises(UnknownNameError) as caught:
        diagnose(sleeper(), num_workers=3)
    assert str(caught.value) == (
        "A dataset has no option 'num_workers'. There is: batch_size, workers, prefetch, in_order, "
        "collate_fn, pinned, link, accelerator, step_time, step."
    )


def test_counts_are_whole():
    with pytest.raises(InputError, match="workers must be finite and positive, got -1"):
        diagnose(sleeper(), step_time="4 ms", workers=-1)
    with pytest.raises(InputError, match=r"batch_size must be a whole number, got 2\.5"):
        diagnose(sleeper(), step_time="4 ms", batch_size=2.5)


def test_an_empty_dataset_has_nothing_to_diagnose():
    with pytest.raises(InputError) as caught:
        diagnose(sleeper(length=0), step_time="4 ms")
    assert str(caught.value) == ("A dataset to measure needs items, and this one has none. Check its path.")


def test_a_dataset_without_a_length_is_none():
    class Endless:
        def __getitem__(self, index):
            return index

    with pytest.raises(InputError, match=r"a dataset with items and a length, .* got Endless"):
        diagnose(Endless(), step_time="4 ms")
