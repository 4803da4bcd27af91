"""A user's script with sweeps: a test runs it, and `make types` reads it in strict mode."""
# pyright: strict

from __future__ import annotations

import numpy as np

from starvelab import PUBLISHED, Q_, Datasets, Hardware, Models, Pipeline, Samples, Storage, Workers

WORKERS = [2, 4, 8, 16, 32]
BATCHES = [[64], [128], [256]]

pipeline = Pipeline(
    model=Models.ResNet50,
    dataset=Samples(of=Datasets.ImageNet),
    storage=Storage.NVMe_Gen4,
    hardware=Hardware.Cloud.A100,
    workers=Workers(8, cores=16),
    assumptions=PUBLISHED,
)


def fed(share: float) -> dict[int, int]:
    """Return the fewest workers that keep the GPU so busy, by batch size."""
    many = pipeline.solve(workers=WORKERS, batch_size=BATCHES)
    assert many.utilization.shape == (3, 5)
    enough: dict[int, int] = {}
    for (batch,), busy in zip(BATCHES, many.utilization, strict=True):
        if busy.max() >= share:
            enough[batch] = WORKERS[int(np.argmax(busy >= share))]
    return enough


def where_it_binds() -> list[str]:
    """Return what binds at both ends of the grid, and how often each resource does."""
    many = pipeline.solve(workers=WORKERS, batch_size=BATCHES)
    names, counts = np.unique(many.bottleneck, return_counts=True)
    ends = [f"{many.bottleneck[0, 0]} to {many.next_bottleneck[-1, -1]}"]
    return ends + [f"{name}: {count}" for name, count in zip(names, counts, strict=True)]


def fastest() -> str:
    """Return the fastest row of a table, and what it costs."""
    table = pipeline.sweep(workers=WORKERS, hardware=Hardware.Cloud)
    rates = table["throughput"].m_as("img/s")
    best = int(np.argmax(rates))
    frame = table.to_pandas()
    return f"{len(frame)} rows, best {rates[best]:.0f} img/s with {table['workers'][best]} workers"


def slack() -> float:
    """Return the mean stall and the smallest range of a sweep over the storage's bandwidth."""
    many = pipeline.solve(storage=Q_(np.linspace(0.1, 7.0, 20), "GB/s"))
    low, high = many.ranges.utilization
    assert (low <= many.utilization).all()
    idle = many.headroom["storage"]
    return float(many.stall.mean() + (high - low).min() + idle.sum() / idle.size)


point = pipeline.solve()
print(round(point.utilization, 3), point.bottleneck.upper(), f"{point.throughput:.0f~}")
print(fed(0.9), where_it_binds(), fastest(), round(slack(), 2), sep="\n")
