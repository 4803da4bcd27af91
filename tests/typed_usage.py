"""What a type checker tells those who import starvelab: `make types` reads this file, and no test runs it.

Each wrong line says which error it expects; a checker that does not report it complains of the comment.
"""

from typing import Any, assert_type

import starvelab
from starvelab import Datasets, Hardware, Links, Models, Pipeline, Samples, Storage
from starvelab.checks import check
from starvelab.model.catalogue import Entry
from starvelab.model.step import Step
from starvelab.units import Quantity

gpu = Hardware.Cloud.A100
assert_type(gpu.memory_bandwidth, Quantity)
assert_type(gpu.host_cores, int)
assert_type(gpu.family, str)
assert_type(gpu.replace(memory_bandwidth="2 TB/s").memory_bandwidth, Quantity)
assert_type(Models.ResNet50.parameters, int)
assert_type(Datasets.WikipediaSequences.token_quantiles, tuple[int, ...])
entries: list[Entry] = [gpu, *Models, Storage.NVMe_Gen4, Links.PCIe4_x16, Datasets.ImageNet]
assert_type([entry.name for entry in Hardware], list[str])
assert_type([entry.parameters for entry in Models], list[int])

samples = Samples(size="5 MB", cpu_time="0.2 s")
pipeline = Pipeline(model=Models.ResNet50, dataset=samples, hardware=gpu, workers=[1, 2, 4])
step = pipeline.solve()
assert_type(step, Step)
assert_type(step.throughput, Quantity)
check(step.step_time, "0.1 s")
# One value, or an array of them where the pipeline is swept: see typed_sweeps.py.
assert_type(step.utilization, Any)
assert_type(step.bottleneck, Any)
assert_type(step.headroom["CPU"], Any)
assert_type(step.ranges.utilization[0], Any)


def wrong() -> None:
    """Write each line as a stranger might."""
    print(Hardware.Cloud.A1000)  # type: ignore[attr-defined]
    print(Hardware.A100)  # type: ignore[attr-defined]
    print(Hardware.Cloud.A100.memroy)  # type: ignore[attr-defined]
    print(Models.ResNet50.memory_bandwidth)  # type: ignore[attr-defined]
    Samples(siez="5 MB")  # type: ignore[call-arg]
    Samples(size=["5 MB"])  # type: ignore[arg-type]
    Pipeline(model="ResNet50")  # type: ignore[arg-type]
    Pipeline(gpu=Hardware.Cloud.A100)  # type: ignore[arg-type]
    print(step.utilisation)  # type: ignore[attr-defined]
    print(starvelab.nothing)  # type: ignore[attr-defined]
