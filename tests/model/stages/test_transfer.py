"""Copying to the accelerator: as many bytes as are sent, from pinned or ordinary memory."""

import numpy as np
import pytest
from hypothesis import given

from starvelab import PUBLISHED, Q_, TUTORIAL, Hardware, InputError, Links, MissingValueError
from tests.cases import WALL
from tests.rejected import message
from tests.strategies import bandwidths, batch_sizes, sample_sizes

REMEDY = 'Pass link=Links.PCIe4_x16 or Q_("32 GB/s").'


def copy(size="602112 B", *, link=Links.PCIe4_x16, pinned=True, assumed=TUTORIAL, batch=256):
    """The time to copy a batch [ms], beside a step or in between."""
    changes = {"dataset.transfer": size, "link": link, "link.pinned": pinned}
    times = WALL.solve(changes, batch_size=batch, assumptions=assumed).stage_times
    return times["copy" if pinned else "serialized copy"].m_as("ms")


@given(batch_sizes, sample_sizes, bandwidths)
def test_a_copy_takes_the_bytes_over_the_bandwidth(batch, size, link):
    expected = 1e3 * batch * size.m_as("GB") / link.m_as("GB/s")
    assert copy(size, batch=batch, link=link) == pytest.approx(expected)


@pytest.mark.parametrize("link", [Links.PCIe4_x16, Hardware.Cloud.A100, Q_("32 GB/s"), "32 GB/s"])
def test_the_link_may_be_named_in_four_ways(link):
    assert copy(link=link) == pytest.approx(4.817, abs=5e-4)


def test_published_believes_what_copies_reach_and_ordinary_memory_is_slower():
    whole = 256 * 602112 / 1e6
    assert copy(assumed=PUBLISHED) == pytest.approx(whole / 26)
    assert copy(pinned=False) == pytest.approx(whole / 10)
    assert copy(batch=np.array([[1], [2]]), link=Q_([16, 32], "GB/s")).shape == (2, 2)


@pytest.mark.parametrize(("error", "link", "pinned", "said"), [
    (MissingValueError, Hardware.Cloud.A100, False, "A copy needs link_bandwidth_pageable_sustained, "
     f"and NVIDIA A100 80GB SXM lists none. {REMEDY}"),
    (MissingValueError, Links.NVLink_C2C, False, "A copy needs bandwidth_pageable_sustained, "
     f"and NVIDIA NVLink-C2C lists none. {REMEDY}"),
    (InputError, "32 GB", True, "link must be convertible to GB/s, got 32 GB. Check what it counts."),
    (InputError, "-32 GB/s", True,
     "link must be finite and positive, got -32 GB/s. Check the value and its sign."),
])  # fmt: skip
def test_a_link_that_carries_nothing_known_is_refused_with_what_to_pass(error, link, pinned, said):
    assert message(error, copy, link=link, pinned=pinned) == said
