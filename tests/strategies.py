"""What hypothesis draws from: figures of a sensible size, and whole pipelines of every shape."""

from math import inf

from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Accelerator,
    Cache,
    Drive,
    Handover,
    Hardware,
    Host,
    Link,
    Links,
    Models,
    OnDevice,
    Pipeline,
    Requests,
    Samples,
    Storage,
    Workers,
)
from starvelab.model.costs import Cost, Line


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
        contention=contention, coherency=coherency, open_requests=in_flight
    ),
    shares,
    shares.map(lambda x: x / 100),
    st.integers(1, 64),
)


lines = st.builds(Line, st.fractions(0, 20, max_denominator=6), st.fractions(0, 4, max_denominator=6))
costs = st.lists(lines, min_size=1, max_size=3).map(lambda pieces: Cost(tuple(pieces)))


def _given(part: type, first: str | None = None, **optional: st.SearchStrategy) -> st.SearchStrategy:
    """A part with some of its fields; the one that is named first is always there."""
    required = {} if first is None else {first: optional.pop(first)}
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: part(**fields))


times = quantities(0, 100, "ms")
caches = _given(Cache, "share", share=st.sampled_from([0.0, 0.138, 0.5, 1.0]))
requests = _given(Requests, latency=times, samples=st.integers(1, 64), open=st.integers(1, 16))
stores = _given(
    Drive, "of", of=drives, count=st.integers(1, 4), requests=requests, cache=caches, read_ahead=st.booleans()
)
on_device = _given(OnDevice, time=quantities(0, 1, "ms"), decoder_time=quantities(0.001, 1, "ms"))
# What one worker takes is said by the samples or by the workers.
samples = _given(
    Samples,
    size=sample_sizes,
    transfer=sample_sizes | st.sampled_from(["uint8", "float32"]),
    on_device=on_device,
)
slow_samples = _given(Samples, "cpu_time", cpu_time=quantities(0.01, 200, "ms"), size=sample_sizes)
handovers = _given(Handover, worker=times, way=times, loop=times, objects=st.integers(1, 200))
workers = _given(
    Workers, "count", count=worker_counts, cores=st.integers(1, 64), handover=handovers,
    prefetch=st.integers(1, 3),
)  # fmt: skip
rated_workers = st.builds(Workers, worker_counts, rate=supply_rates)
supplies = quantities(10, 60_000, "MB/s") | quantities(10, 60_000, "img/s")
buses = _given(Link, "of", of=links, overlaps=st.booleans())
devices = _given(
    Accelerator, "of", of=accelerators, count=st.sampled_from([1, 2, 8]),
    rate=quantities(1, 50_000, "img/s") | quantities(0.1, 1000, "ms"), step_overhead=quantities(0, 50, "ms"),
    host=_given(Host, time=times), in_flight=st.sampled_from([1, 2, 3, inf]),
)  # fmt: skip


@st.composite
def pipelines(draw: st.DrawFn, **fixed: st.SearchStrategy) -> Pipeline:
    """Pipelines of every kind; a field named here is drawn from what is given."""
    sources = st.tuples(samples, workers | rated_workers) | st.tuples(slow_samples, workers)
    fields = draw(
        st.fixed_dictionaries(
            {"model": models, "hardware": devices, "batch_size": batch_sizes, "assumptions": assumptions},
            optional={"storage": stores, "link": buses, "phase": st.sampled_from(["forward", "training"]),
                      "overlap": st.booleans()},
        )
    )  # fmt: skip
    fields["dataset"], fields["workers"] = draw(sources)
    fields |= {name: draw(strategy) for name, strategy in fixed.items()}
    waits = (drive := fields.get("storage")) is not None and drive.requests.latency is not None
    if "workers" not in fixed and not waits and fields["dataset"].cpu_time is None:
        fields["workers"] = draw(st.just(fields["workers"]) | supplies)
    return Pipeline(**fields)
