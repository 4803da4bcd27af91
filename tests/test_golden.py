"""The walkthrough's numbers, computed by the lab and compared with tests/golden/tutorial.toml."""

import tomllib
from fractions import Fraction
from math import isclose
from pathlib import Path

import pytest

from starvelab import Q_, TUTORIAL, DataModel, Hardware, Models, SingleNodeModel, TransformationModel
from starvelab.tables import percent
from starvelab.units import format_quantity

from .cases import WALL

GOLDEN = tomllib.loads((Path(__file__).parent / "golden" / "tutorial.toml").read_text(encoding="utf-8"))
A100, RESNET50 = Hardware.Cloud.A100, Models.ResNet50


def pipeline(**fields):
    return WALL.replace(fields)


def baseline(*, batch_size):
    return SingleNodeModel().solve(model=RESNET50, hardware=A100, batch_size=batch_size)


def printed(*, figure):
    base = baseline(batch_size=256)
    demand = base.throughput * Q_("500 KB") / Q_("1 sample")
    wall = TransformationModel().solve(
        batch_size=256,
        sample_size_bytes=Q_("500 KB"),
        cpu_throughput=Q_("2 GB/s"),
        accelerator_step_time=base.latency,
    )
    return {
        "step": format_quantity(base.latency),
        "throughput": format_quantity(base.throughput),
        "bottleneck": base.bottleneck,
        "demand": f"{demand.m_as('GB/s'):.3f} GB/s",
        "CPU": format_quantity(wall.transform_time),
        "utilization": percent(wall.accelerator_utilization),
        "slowdown": f"{wall.slowdown_factor:.2f}x",
    }[figure]


def storage_check(*, batch_size):
    demand = baseline(batch_size=batch_size).throughput * Q_("500 KB")
    return 100 * DataModel().solve(workload_data_rate=demand, hardware=A100).utilization


def self_check(*, accelerator_ms, cpu_ms):
    wall = TransformationModel().solve(
        batch_size=1,
        sample_size_bytes=Q_(cpu_ms, "KB"),
        cpu_throughput=Q_("1 MB/s"),
        accelerator_step_time=Q_(accelerator_ms, "ms"),
    )
    return 100 * wall.accelerator_utilization


def copy_ms(*, transfer_size):
    copied = pipeline().solve({"dataset.transfer": transfer_size, "batch_size": 256}, link=A100)
    return copied.stage_times["copy"].m_as("ms")


def limit(resource):
    """Exact seconds per sample of a batch without end."""
    return pipeline().resource_costs(exact=True)[resource].limit


def overhead_over_compute():
    base = baseline(batch_size=1)
    return (base.overhead_time / base.compute_time).m_as("")


def overhead_percent(*, batch_size):
    base = baseline(batch_size=batch_size)
    return 100 * (base.overhead_time / base.latency).m_as("")


def other_release(**changes):
    return pipeline(assumptions=TUTORIAL.replace(**changes))


COMPUTE = {
    "printed_baseline": printed,
    "step_ms": lambda **at: baseline(**at).latency.m_as("ms"),
    "bottleneck": lambda **at: baseline(**at).bottleneck,
    "throughput": lambda **at: baseline(**at).throughput.m_as("img/s"),
    "throughput_limit": lambda: 1 / limit("accelerator"),
    "demand_gb_per_s": lambda **at: pipeline(**at).solve().demand_at_ceiling.m_as("GB/s"),
    "storage_check_percent": storage_check,
    "cpu_ms": lambda **at: pipeline(**at).solve().resource_times["CPU"].m_as("ms"),
    "utilization_percent": lambda **at: 100 * pipeline(**at).solve().utilization,
    "utilization_limit": lambda: limit("accelerator") / limit("CPU"),
    "slowdown": lambda **at: pipeline(**at).solve().slowdown,
    "crossover": lambda **at: pipeline(**at).crossover().batch,
    "last_fed_batch": lambda **at: pipeline(**at).crossover().last_fed,
    "supply_that_never_binds_gb_per_s": lambda: Fraction(500_000) / limit("accelerator") / 10**9,
    "workers_needed": lambda batch_size, **at: pipeline(**at).workers_needed(batch_size=batch_size).workers,
    "workers_before_rounding": lambda **at: pipeline(**at).workers_needed().exact,
    "binding": lambda **at: pipeline(**at).solve().bottleneck,
    "training_step_ms": lambda **at: (
        pipeline(phase="training", **at).solve().resource_times["accelerator"].m_as("ms")
    ),
    "self_check_percent": self_check,
    "read_ms": lambda **at: pipeline(**at).solve().stage_times["read"].m_as("ms"),
    "utilization_behind_storage_percent": lambda **at: (
        100 * pipeline(storage="7 GB/s", **at).solve().utilization
    ),
    "utilization_without_overlap_percent": lambda **at: (
        100 * pipeline(overlap=False, **at).solve().utilization
    ),
    "copy_ms": copy_ms,
    "overhead_exceeds_compute_below": overhead_over_compute,
    "overhead_percent": overhead_percent,
    "other_releases_step_ms": lambda **changes: (
        other_release(**changes).solve().stage_times["model"].m_as("ms")
    ),
    "other_releases_workers": lambda **changes: other_release(**changes).workers_needed().workers,
}


def as_written(value, expected):
    """`value` written as the golden file writes what it expects."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if "/" in expected:
        wanted = Fraction(expected)
        close = value == wanted if isinstance(value, Fraction) else isclose(value, wanted, rel_tol=1e-12)
        return expected if close else repr(value)
    digits = len(expected.partition(".")[2])
    return f"{float(value):.{digits}f}"


ROWS = [
    pytest.param(name, row, id=f"{name}-{i}")
    for name, table in GOLDEN.items()
    for i, row in enumerate(table["rows"])
]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_the_lab_computes_what_the_walkthrough_promises(name, row):
    given = {key: value for key, value in row.items() if key != "expect"}
    assert as_written(COMPUTE[name](**given), row["expect"]) == row["expect"]


def test_every_golden_table_is_computed_and_says_how_it_is_derived_and_where_it_comes_from():
    assert COMPUTE.keys() == GOLDEN.keys()
    for name, table in GOLDEN.items():
        assert table["derivation"], name
        assert table["source"].startswith(("printed", "derived", "later releases")), name
