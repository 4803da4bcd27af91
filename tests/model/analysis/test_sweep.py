"""A pipeline over a grid: the same as point by point, as one table."""

import copy
import pickle
import runpy
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import PUBLISHED, Q_, Hardware, InputError, Links, MissingValueError, Models, Pipeline, Storage
from starvelab.model.paths import SWEEPABLE
from tests.cases import WALL
from tests.rejected import message
from tests.strategies import batch_sizes, pipelines, worker_counts


@given(
    pipelines(),
    st.lists(batch_sizes, min_size=1, max_size=4),
    st.lists(worker_counts, min_size=1, max_size=3),
)
def test_a_sweep_is_every_combination_solved_at_once(pipe, batches, workers):
    table = pipe.sweep(batch_size=batches, workers=workers)
    assert [*zip(table["batch_size"], table["workers"], strict=True)] == [*product(batches, workers)]
    # That an array is solved like each of its points is another test's.
    step = pipe.solve(batch_size=table["batch_size"], workers=table["workers"])
    for name in ("step_time", "throughput", "utilization", "bottleneck"):
        assert np.all(table[name] == getattr(step, name)), name
    for resource, time in step.resource_times.items():
        assert np.all(table[f"{resource}_time"] == time), resource


def test_the_columns_are_what_was_swept_then_what_came_out():
    table = WALL.replace(storage="7 GB/s").sweep(workers=[1, 2, 3], batch_size=[32, 64])
    times = ["storage_time", "CPU_time", "accelerator_time", "step_time"]
    found = ["throughput", "utilization", "bottleneck"]
    assert list(table.columns) == ["workers", "batch_size", *times, *found]
    # The last field varies fastest.
    assert table["workers"].tolist() == [1, 1, 2, 2, 3, 3]
    assert table["batch_size"].tolist() == [32, 64, 32, 64, 32, 64]
    assert WALL.batch_size == 256  # which a sweep leaves alone


@pytest.mark.parametrize(
    "sizes",
    [["500 KB", "5 MB"], [Q_("500 KB"), Q_("5 MB")], Q_([500, 5000], "KB"), np.array([0.5, 5]) * Q_("1 MB")],
    ids=str,
)
def test_quantities_may_be_given_as_texts_as_a_list_or_as_one_array(sizes):
    table = WALL.sweep({"dataset.size": sizes})
    assert table["dataset.size"].m_as("KB").tolist() == [500, 5000]
    assert table["step_time"].m_as("ms").tolist() == pytest.approx([64, 640])


@pytest.mark.parametrize(
    "batches", [[32, 64], (32, 64), range(32, 65, 32), np.array([32, 64]), {32: "", 64: ""}]
)
def test_values_may_be_any_sequence(batches):
    assert WALL.sweep(batch_size=batches)["batch_size"].tolist() == [32, 64]


def test_a_short_table_is_shown_whole_and_a_long_one_by_both_its_ends():
    lines = repr(WALL.sweep(batch_size=[32, 64])).splitlines()
    assert lines[0].split("  ")[-1].strip() == "binds"
    assert len(lines) == 4
    assert "73.2 %" in lines[2]
    html = WALL.sweep(batch_size=[32])._repr_html_()
    assert '<th scope="col">GPU time</th>' in html
    assert "<td>5.856 ms</td>" in html
    table = WALL.sweep(batch_size=range(1, 1001))
    lines = repr(table).splitlines()
    assert len(lines) == 2 + 13
    assert "..." in lines[8]
    assert lines[-1].split()[0] == "1000"
    assert table._repr_html_().count("<tr>") == 1 + 13


def test_a_swept_field_of_a_part_goes_by_the_name_that_people_have_for_it():
    table = WALL.sweep({"hardware.count": [1, 2], "workers.cores": [4, 8]}, batch_size=[32])
    assert table.headers[:4] == ["GPUs", "CPU cores", "batch size", "workers time"]


@pytest.mark.parametrize("roundtrip", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_a_sweep_survives_copies_and_pickles(roundtrip):
    table = WALL.sweep(batch_size=[32, 64])
    assert repr(roundtrip(table)) == repr(table)


FIELDS = ", ".join(SWEEPABLE)


@pytest.mark.parametrize(("fields", "expected"), [
    ({}, "A sweep needs a field with values, got none. Pass for example batch_size=[32, 64, 128]."),
    ({"batch_size": 32}, "batch_size must be several values to sweep, got 32. Pass a list."),
    ({"dataset.size": "5 MB"}, "dataset.size must be several values to sweep, got '5 MB'. Pass a list."),
    ({"workers": [[1, 2], [3]]},
     "workers must be a list of single values, got [[1, 2], [3]]. Pass a list of these."),
    ({"batch_size": []},
     "batch_size must have at least one value to sweep, got none. Pass a list of values."),
    (
        {"phase": ["forward", "training"]},
        f"A sweep takes fields that are numbers or quantities ({FIELDS}), got phase. Solve once for "
        "each phase instead.",
    ),
    ({"storage": [Storage.HDD, "7 GB/s"]},
     "storage must be entries of the catalogue where the first is one, got '7 GB/s'. Pass bandwidths, or "
     "entries."),
    ({"storage": Storage, "link": Links},
     "A sweep takes entries of the catalogue for one of storage, link, hardware, got them for storage, link. "
     "Solve once for each entry of the others."),
    ({"model": Models},
     "A sweep takes entries of the catalogue for one of storage, link, hardware, got them for model. Solve "
     "once for each entry of the others."),
    (
        {"batch_size": ["a", "b"]},
        "A unit must be one that the lab knows, got 'a': a is unknown. "
        'Use for example "ms", "KB", "GB/s", "img/s", "TFLOP/s".',
    ),
    ({"dataset.size": ["5 MB", "5 ms"]},
     "dataset.size must be convertible to MB, got 5 ms. Check what it counts."),
    ({"dataset.size": [1, 2]},
     'Samples.size needs a unit, got the bare ndarray array([1, 2]). Write for example Q_(5, "KB").'),
])  # fmt: skip
def test_bad_input_is_refused(fields, expected):
    assert message(InputError, Pipeline.sweep, WALL, **fields) == expected


def test_a_batch_that_does_not_fit_is_marked_and_a_table_in_which_all_fit_has_no_such_column():
    pipe = WALL.replace(hardware=Hardware.Cloud.V100, assumptions=PUBLISHED)
    assert pipe.sweep(batch_size=[64, 4096])["feasible"].tolist() == [True, False]
    assert "feasible" not in pipe.sweep(batch_size=[32, 64]).columns
    step = pipe.solve(batch_size=4096)
    assert repr(step).startswith("Not feasible: A step of ")
    assert repr(step).endswith("Use a batch of at most 355.")


DEMAND = Pipeline(
    model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers="5000 img/s", storage=Storage.NVMe_Gen4,
    assumptions=PUBLISHED,
)  # fmt: skip


@pytest.mark.parametrize(("field", "group"), [("storage", Storage), ("link", Links), ("hardware", Hardware)])
def test_each_entry_of_a_group_takes_the_place_of_the_pipelines_own(field, group):
    swept = DEMAND.sweep({field: group})
    unknown = swept.note.partition("Not enough is known of ")[2].partition(". ")[0].split(", ")
    assert {*swept[field], *unknown} - {""} == {entry.path for entry in group}
    entries = {entry.path: entry for entry in group}
    for path, time in zip(swept[field], swept["step_time"], strict=True):
        assert time == DEMAND.solve({field: entries[path]}).step_time


def test_entries_are_swept_with_numbers_and_a_batch_that_does_not_fit_is_marked():
    swept = DEMAND.sweep(hardware=[Hardware.Cloud.V100, Hardware.Cloud.H100], batch_size=[64, 4096])
    assert swept["hardware"].tolist() == 2 * ["Cloud.V100"] + 2 * ["Cloud.H100"]
    assert swept["batch_size"].tolist() == [64, 4096, 64, 4096]
    assert swept["feasible"].tolist() == [True, False, True, False]
    assert "feasible" not in DEMAND.sweep(hardware=Hardware.Cloud).columns
    assert swept.note.count("claim to hold the truth") == 1


def test_entries_of_which_too_little_is_known_are_rejected_where_none_is_left():
    assert message(MissingValueError, DEMAND.sweep, hardware=[Hardware.Cloud.TPU_v5e]) == (
        "Not enough is known of any of Cloud.TPU_v5e. Pass other entries."
    )
    assert message(InputError, DEMAND.replace(hardware="2000 img/s").sweep, hardware=Hardware.Cloud) == (
        "A sweep over hardware takes the time of each GPU from the catalogue, got a rate of your "
        "own, which belongs to one of them. Leave the rate out."
    )


def test_the_script_of_a_user_that_type_checkers_read_runs(repository, capsys):
    runpy.run_path(str(repository / "tests" / "typed_sweeps.py"))
    assert "img/s with" in capsys.readouterr().out
