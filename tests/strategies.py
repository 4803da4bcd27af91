"""What hypothesis draws from: figures of a sensible size, and whole pipelines of every shape."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from starvelab import PUBLISHED, Q_, TUTORIAL, Hardware, Links, Models, Pipeline, Storage
from starvelab.model.stages import Cost, Line


def quantities(low: float, high: float, unit: str) -> st.SearchStrategy:
    """Quantities between two figures of a unit, with at most six digits, as people give them."""
    numbers = st.floats(low, high, allow_nan=False)
    return numbers.map(lambda x: Q_(float(f"{x:.6g}"), unit))


batch_sizes = st.integers(1, 4096)
worker_counts = st.integers(1, 200)
sample_sizes = quantities(1, 200_000, "KB")
supply_rates = quantities(1, 1000, "MB/s") | quantities(1, 5000, "img/s")
bandwidths = quantities(0.05, 64, "GB/s")

# Those that list what a step in half precision needs. That some list no memory or no fp16 has its own tests.
accelerators = st.sampled_from(
    [entry for entry in Hardware if None not in map(entry.get, ("peak_fp16_dense", "memory_bandwidth"))]
)
models = st.sampled_from(list(Models))
drives = st.sampled_from(list(Storage)) | bandwidths
links = st.sampled_from([entry for entry in Links if entry.get("bandwidth_pinned_sustained")]) | bandwidths

shares = st.floats(0, 0.2).map(lambda x: round(x, 6))
assumptions = st.sampled_from([TUTORIAL, PUBLISHED]) | st.builds(
    lambda contention, coherency, in_flight: TUTORIAL.replace(
        contention=contention, coherency=coherency, requests_in_flight=in_flight
    ),
    shares,
    shares.map(lambda x: x / 100),
    st.integers(1, 64),
)


lines = st.builds(Line, st.fractions(0, 20, max_denominator=6), st.fractions(0, 4, max_denominator=6))
costs = st.lists(lines, min_size=1, max_size=3).map(lambda pieces: Cost(tuple(pieces)))


def _pipeline(**fields: Any) -> Pipeline:
    """A pipeline of drawn fields, without those that say nothing beside others."""
    if fields["storage"] is None:
        fields["cached_fraction"] = None
    if fields["cpu_throughput"] is not None:
        fields |= dict.fromkeys(("cpu_time", "cores", "read_wait", "handover_time"))
    elif fields["cpu_time"] is not None:
        fields["worker_rate"] = None
    return Pipeline(**fields)


def pipelines(**fixed: st.SearchStrategy) -> st.SearchStrategy[Pipeline]:
    """Pipelines of every kind; a field named here is drawn from what is given."""
    fields = {
        "model": models,
        "hardware": accelerators,
        "batch_size": batch_sizes,
        "workers": worker_counts,
        "sample_size": st.none() | sample_sizes,
        "worker_rate": st.none() | supply_rates,
        "cpu_throughput": st.none() | quantities(10, 60_000, "MB/s"),
        "storage": st.none() | drives,
        "cached_fraction": st.none() | st.sampled_from([0.0, 0.138, 0.5, 1.0]),
        "link": st.none() | links,
        "transfer_size": st.none() | sample_sizes,
        "device_input_time": st.none() | quantities(0, 1, "ms"),
        "decoder_time": st.none() | quantities(0.001, 1, "ms"),
        "accelerator_rate": st.none() | quantities(1, 50_000, "img/s"),
        "step_overhead": st.none() | quantities(0, 50, "ms"),
        "cpu_time": st.none() | quantities(0.01, 200, "ms"),
        "cores": st.none() | st.integers(1, 64),
        "read_wait": st.none() | quantities(0, 100, "ms"),
        "handover_time": st.none() | quantities(0, 100, "ms"),
        "accelerators": st.sampled_from([1, 1, 2, 8]),
        "copy_overlaps": st.booleans(),
        "phase": st.sampled_from([None, "forward", "training"]),
        "overlap": st.booleans(),
        "assumptions": assumptions,
    }
    return st.builds(_pipeline, **{**fields, **fixed})
