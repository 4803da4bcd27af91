"""What answers say of themselves, each as a text under its name in tests/golden/reports.txt."""

import pytest

from starvelab import PUBLISHED, Accelerator, Hardware, Pipeline, Samples, Storage
from tests.cases import KITS, WALL, golden

HALF = Pipeline(hardware=Accelerator(Hardware.Cloud.H100, rate="1000 img/s"), workers="500 img/s")
# 100 GB of samples; storage binds at 500 a second unless memory serves more than half of the reads.
COLD = Pipeline(
    hardware="1000 img/s", workers="1000 img/s", dataset=Samples(size="100 KB"), storage="50 MB/s",
    batch_size=100,
)  # fmt: skip
SLOW = Pipeline(hardware="20 ms", batch_size=32, dataset=Samples(cpu_time="1.5625 ms"), workers=2)
LOADER = Pipeline(hardware="1000 img/s", batch_size=100, dataset=Samples(cpu_time="10 ms"))
SHARED = WALL.replace({"workers.rate": "100 img/s"}, storage="100 GB/s", assumptions=PUBLISHED)
DRIVE = {"workers": 1000, "storage": Storage.NVMe_Gen4}
REPORTS = {
    "a step": lambda: WALL.solve(),
    "a bill": lambda: HALF.bill(price="2 USD/h", samples=1_800_000),
    "epochs": lambda: COLD.epochs(memory="35 GB", samples=10**6),
    "a simulation": lambda: SLOW.simulate(batches=400, warm_up=200, replicas=1),
    "a crossover to the workers": lambda: WALL.crossover(),
    "no crossover": lambda: WALL.replace(workers=77).crossover(),
    "starved at every batch": lambda: WALL.replace({"dataset.size": "500 MB"}).crossover(),
    "workers": lambda: KITS.workers_needed(),
    "more workers than cores": lambda: WALL.replace(storage="100 GB/s").workers_needed(),
    "workers at any batch": lambda: WALL.replace(storage="100 GB/s").workers_needed(batch_size="any"),
    "workers that share a host": lambda: SHARED.workers_needed(),
    "workers of few cores": lambda: LOADER.replace({"workers.cores": 8}).workers_needed(),
}
TEXTS = golden("reports")


@pytest.mark.parametrize("name", REPORTS | dict.fromkeys(TEXTS))
def test_an_answer_says_itself(name):
    answer = REPORTS[name]()
    assert repr(answer).splitlines() == TEXTS[name].splitlines()
    assert answer.summary in answer._repr_html_()
