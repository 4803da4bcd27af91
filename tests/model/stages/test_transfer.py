"""Copying to the accelerator: as many bytes as are sent, from pinned or ordinary memory."""

import numpy as np
import pytest
from hypothesis import given

from starvelab import PUBLISHED, Q_, Hardware, Links, MissingValueError, TransferModel
from tests.rejected import message
from tests.strategies import bandwidths, batch_sizes, sample_sizes

REMEDY = 'Pass link=Links.PCIe4_x16 or Q_("32 GB/s").'


def copy(solver=None, /, **arguments):
    known = {"batch_size": 256, "transfer_size": Q_("602112 B"), "link": Links.PCIe4_x16}
    return (solver or TransferModel()).solve(**{**known, **arguments})


@given(batch_sizes, sample_sizes, bandwidths)
def test_a_copy_takes_the_bytes_over_the_bandwidth(batch, size, link):
    found = copy(batch_size=batch, transfer_size=size, link=link)
    assert found.transfer_time.m_as("s") == pytest.approx(batch * size.m_as("GB") / link.m_as("GB/s"))
    assert found.bandwidth == link


@pytest.mark.parametrize("link", [Links.PCIe4_x16, Hardware.Cloud.A100, Q_("32 GB/s"), "32 GB/s"])
def test_the_link_may_be_named_in_four_ways(link):
    assert copy(link=link).transfer_time.m_as("ms") == pytest.approx(4.817, abs=5e-4)


def test_published_believes_what_copies_reach_and_ordinary_memory_is_slower():
    assert copy().bandwidth == Q_("32 GB/s")
    assert copy(TransferModel(PUBLISHED)).bandwidth == Q_("26 GB/s")
    assert copy(pinned=False).bandwidth == Q_("10 GB/s")
    assert copy(batch_size=np.array([[1], [2]]), link=Q_([16, 32], "GB/s")).transfer_time.shape == (2, 2)


@pytest.mark.parametrize(("link", "needs"), [
    (Hardware.Cloud.A100, "link_bandwidth_pageable_sustained, and NVIDIA A100 80GB SXM"),
    (Links.NVLink_C2C, "bandwidth_pageable_sustained, and NVIDIA NVLink-C2C"),
], ids=["A100", "NVLink"])  # fmt: skip
def test_a_link_without_the_figure_is_refused_with_what_to_pass(link, needs):
    said = message(MissingValueError, copy, link=link, pinned=False)
    assert said == f"TransferModel needs {needs} lists none. {REMEDY}"
