"""Each drive, link or accelerator of the catalogue in the place of a pipeline's own."""

import pytest

from starvelab import (
    PUBLISHED,
    Hardware,
    InputError,
    Link,
    Links,
    Models,
    Pipeline,
    Storage,
    UnknownNameError,
)
from tests.rejected import message

DEMAND = Pipeline(
    model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers="5000 img/s", storage=Storage.NVMe_Gen4,
    assumptions=PUBLISHED,
)  # fmt: skip


@pytest.mark.parametrize(("field", "group"), [("storage", Storage), ("link", Links), ("hardware", Hardware)])
def test_each_entry_is_solved_in_the_place_of_the_pipelines_own(field, group):
    found = DEMAND.compare(field)
    assert {*found.steps, *found.unknown} == {entry.path for entry in group}
    for entry in group:
        if entry.path in found.steps:
            assert found.steps[entry.path].step_time == DEMAND.solve({field: entry}).step_time
    rates = [step.throughput.m_as("img/s") for step in found.steps.values()]
    assert rates == sorted(rates, reverse=True)
    assert len(found.headers) == len(found.rows[0])


def test_it_reads_as_a_table_and_says_of_what_too_little_is_known():
    drives, accelerators = DEMAND.compare("storage"), DEMAND.compare("hardware")
    assert drives.summary == "The pipeline with each storage of the catalogue, the fastest first"
    assert ("HDD", "storage", "100.0 %") in [(row[0], row[2], row[4]) for row in drives.rows]
    assert accelerators.note.startswith("Not enough is known of Cloud.TPU_v5e")
    assert accelerators.rows[0][2] == "the CPU"  # from some accelerator on
    large = DEMAND.replace(batch_size=4096).compare("hardware")
    assert "the batch does not fit into memory" in [row[2] for row in large.rows]


def test_a_copy_for_which_the_accelerator_waits_has_no_busy_link():
    waiting = DEMAND.replace(link=Link(Links.PCIe4_x16, overlaps=False)).compare("link")
    assert waiting.headers == DEMAND.compare("link").headers[:-1]
    assert {len(row) for row in waiting.rows} == {len(waiting.headers)}
    assert "PCIe4_x16" in repr(waiting)


def test_what_cannot_be_compared_is_rejected():
    assert message(UnknownNameError, DEMAND.compare, "model") == (
        "compare exchanges storage, link, hardware, got 'model'. Pass one of these."
    )
    assert message(InputError, DEMAND.replace(hardware="2000 img/s").compare, "hardware") == (
        "compare takes the time of each accelerator from the catalogue, got a rate of your own, which "
        "belongs to one of them. Leave the rate out."
    )
    assert message(InputError, DEMAND.replace(batch_size=[1, 2]).compare, "link").startswith("compare looks")
