"""One buffer for a batch: the loop gets what it would get without it."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import NamedTuple

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader

from starvelab.errors import InputError
from starvelab_doctor import packed, watch
from starvelab_doctor.one_buffer import OneBuffer, unpacked

pytestmark = pytest.mark.programs


class Pair(NamedTuple):
    """Two parts of a batch."""

    left: object
    right: object


TYPES = (torch.bool, torch.uint8, torch.float16, torch.bfloat16, torch.int64, torch.complex64)
BATCHES = {
    "a tensor": torch.arange(6.0).view(2, 3),
    "of each type": [torch.ones(3, dtype=kind) for kind in TYPES],
    "in lists and dictionaries": {
        "a": [torch.ones(2), (torch.zeros(1), "text")],
        "b": Pair(torch.ones(1), 4),
    },
    "of no dimension, and empty": [torch.tensor(3.5), torch.ones(0, 4)],
    "views": [torch.arange(12).view(3, 4)[:, 1], torch.ones(1).expand(5)],
    "of other classes": OrderedDict(a=torch.ones(2)),
    "no tensor": ["text", 4, None],
}


def same(one, other):
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    else:
        assert one == other


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_a_batch_comes_back_as_it_was(batch):
    same(unpacked(pickle.loads(pickle.dumps(OneBuffer(batch)))), batch)
    assert unpacked(batch) is batch


def test_what_needs_a_gradient_keeps_it():
    weight = torch.ones(2, requires_grad=True)
    assert unpacked(OneBuffer([weight]))[0] is weight


ITEMS = [{f"part {part}": torch.full((3,), float(part + item)) for part in range(40)} for item in range(8)]


def test_one_object_is_handed_over_and_the_batches_stay_the_same():
    plain = list(DataLoader(ITEMS, 4))
    loader = packed(DataLoader(ITEMS, 4, num_workers=1))
    same(list(loader), plain)
    handed_over = next(iter(loader.loader))
    assert isinstance(handed_over, OneBuffer)
    assert not any(isinstance(part, torch.Tensor) for part in handed_over.parts.values())
    again = packed(loader.loader)
    same(list(watch(again, progress=False)), plain)
    assert (len(again), again.loader.batch_size) == (2, 4)


def test_only_a_loader_can_be_packed():
    with pytest.raises(InputError, match=r"packed takes a DataLoader of PyTorch, got list\. Pass"):
        packed([1, 2])
