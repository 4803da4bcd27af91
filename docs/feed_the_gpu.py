"""The numbers of the page "Feed the GPU": scenarios, settings, and what the package makes of them.

The page has no Python. `tables_js` writes what it reads: the plain numbers that the package's own stages
resolve, and the cheapest setting of each scenario. Its rule is that of the moving picture, which the lab has
too, and a test compares what the page makes of it with `solve` below. `draw_link` is the picture of its link.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from starvelab import (
    PUBLISHED,
    Accelerator,
    Cache,
    Datasets,
    Drive,
    Hardware,
    Links,
    Models,
    OnDevice,
    Pipeline,
    Samples,
    Storage,
    Workers,
)
from starvelab.lesson.course.decisions import PRICES
from starvelab.model.catalogue import Entry
from starvelab.model.resources import RESOURCES
from starvelab.model.stages.data import hit_share
from starvelab.model.step import Step
from starvelab.units import Q_, Quantity

# The busy share to reach, and what the sliders offer. Memory is in GiB, as it is sold, and may be none.
GOAL = 0.95
WORKERS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 112, 128, 144)
CORES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 15, 16, 18, 20, 22, 24, 28, 32, 36, 40, 48, 56, 60, 64, 72, 80)
MEMORY = (0, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
DRIVES = ("EBS_gp3", "EBS_gp3_max", "NVMe_Gen3")
# A drive and a decoder decide which numbers a pipeline has; everything else may be swept.
DECODERS = ("cpu", "gpu")
# How far above the cheapest a medal reaches, and in how many runs it is to be won.
MEDALS = {"Gold": 0.02, "Silver": 0.1, "Bronze": 9.0}
RUNS = 5
STATE = Q_("16 B")  # of each parameter: weight, gradient and what Adam keeps, in 32 bits
PREFETCH = Workers(1).prefetch  # batches of each worker that are ready, in memory that is paid
GRID = {"workers": WORKERS, "cores": CORES, "memory": MEMORY, "batch": BATCHES}
FIRST = {name: values[0] for name, values in GRID.items()}  # what is asked of all settings alike
Choice = tuple[str, str]  # a drive and a decoder
Values = Mapping[str, int | NDArray[np.int_]]


@dataclass(frozen=True)
class Setting:
    """What a player chose; the numbers of `GRID`, a drive, and where samples are decoded."""

    workers: int
    cores: int
    memory: int
    drive: str
    decode: str
    batch: int


@dataclass(frozen=True)
class Workload:
    """A model that learns a data set on a GPU."""

    model: Entry
    hardware: Entry
    dataset: Entry = Datasets.ImageNet
    noun: str = "images"
    link: Entry | None = None

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every drive with every place to decode: on the GPU where its rate and what is left are known."""
        known = None not in (self.hardware.get("image_decode_rate"), self.dataset.get("collation_time"))
        return tuple(product(DRIVES, DECODERS if known else DECODERS[:1]))

    @property
    def price(self) -> float:
        """Dollars for an hour of the GPU."""
        return PRICES[self.hardware.path.rpartition(".")[2]]

    @property
    def dataset_size(self) -> float:
        """Stored bytes of the whole data set."""
        return float(self.dataset.number("samples") * self.dataset.number("sample_size"))

    @cached_property
    def cached(self) -> NDArray[np.float64]:
        """Share of the reads that each size of `MEMORY` serves from the second epoch on."""
        held = np.array(MEMORY[1:]) * 2**30 / self.dataset_size
        return np.array([0.0, *hit_share(held)])

    @property
    def update_time(self) -> Quantity:
        """Time that each step takes to read and write weights, gradients and the optimizer's values."""
        kept = STATE * self.model.parameters
        return (2 * kept / self.hardware.memory_bandwidth).to("ms")

    def pipeline(self, choice: Choice, values: Values) -> Pipeline:
        """The pipeline of a setting, or of many that share a drive and a decoder."""
        drive, decode = choice
        samples = Samples(self.dataset)
        if decode != "cpu":
            # The GPU takes files, so these cross the link, and the workers only join them to batches.
            samples = samples.replace(
                cpu_time=self.dataset.collation_time,
                transfer=self.dataset.sample_size,
                on_device=OnDevice(decoder_time=Q_("1 img") / self.hardware.image_decode_rate),
            )
        cache = Cache(self.cached[np.searchsorted(MEMORY, values["memory"])])
        return Pipeline(
            model=self.model,
            hardware=Accelerator(self.hardware, step_overhead=self.update_time),
            dataset=samples,
            storage=Drive(getattr(Storage, drive), cache=cache),
            link=self.link or self.hardware,
            workers=Workers(values["workers"], cores=values["cores"]),
            batch_size=values["batch"],
            assumptions=PUBLISHED,
        )


@dataclass(frozen=True)
class Scenario:
    """A workload with its story, the setting that a player finds there, and a sentence for its end."""

    key: str
    title: str
    story: str
    theory: str
    workload: Workload
    start: Setting
    before: Entry | None = None  # the GPU that the host had

    def solve_start(self, workload: Workload | None = None) -> "Answer":
        """What the package says of the setting at the start, also for another workload."""
        values = {name: getattr(self.start, name) for name in GRID}
        return solve(workload or self.workload, (self.start.drive, self.start.decode), values)


# What a puzzle of a day may be about.
WORKLOADS = (
    *(Workload(Models.ResNet50, gpu) for gpu in (Hardware.Cloud.A100, Hardware.Cloud.H100)),
    Workload(Models.ResNet50, Hardware.Cloud.B200, link=Links.PCIe5_x16),
    *(Workload(Models.ViT_B16, gpu) for gpu in (Hardware.Cloud.A100, Hardware.Cloud.H100)),
    Workload(Models.ViT_B16, Hardware.Cloud.B200, link=Links.PCIe5_x16),
    *(
        Workload(Models.UNet3D, gpu, Datasets.KiTS19, "scans")
        for gpu in (Hardware.Cloud.A100, Hardware.Cloud.H100)
    ),
    Workload(Models.GPT2_small, Hardware.Cloud.H100, Datasets.TokenizedText, "texts"),
)
# What is said at the end of such a day, by what bound at its start.
THEORY = {
    "CPU": "Stages on one resource add: all workers together set the pace.",
    "storage": "What is read again can stay in memory, and a drive is bought for the rest.",
    "accelerator": "A launch takes as long for one sample as for a thousand.",
}

SCENARIOS = (
    Scenario(
        "the-hungriest",
        "The hungriest",
        "ResNet-50 learns ImageNet. A B200, the fastest GPU of this page, replaced an A100.",
        "A faster GPU shortens a time that does not set the step, so it waits more.",
        WORKLOADS[2],
        Setting(workers=16, cores=16, memory=0, drive="EBS_gp3_max", decode="cpu", batch=256),
        before=Hardware.Cloud.A100,
    ),
    Scenario(
        "first-bite",
        "The first bite",
        "ResNet-50 learns ImageNet on an A100. Somebody rented eight cores and chose a small batch.",
        "The slowest resource sets the step, so move work away from it.",
        WORKLOADS[0],
        Setting(workers=8, cores=8, memory=0, drive="EBS_gp3_max", decode="cpu", batch=64),
    ),
    Scenario(
        "nearly-there",
        "Nearly there",
        "A vision transformer learns ImageNet on an A100, from the cheapest drive of all. It is nearly fed.",
        "What does not bind can be smaller: it costs money and brings nothing.",
        WORKLOADS[3],
        Setting(workers=6, cores=16, memory=0, drive="EBS_gp3", decode="cpu", batch=256),
    ),
    Scenario(
        "huge-bites",
        "Huge bites",
        "A 3D U-Net finds kidney tumors on an H100. Each sample is a whole CT scan, larger than a thousand "
        "photos of ImageNet. But there are few of them.",
        "Samples that stay in memory are not read again.",
        WORKLOADS[7],
        Setting(workers=16, cores=16, memory=0, drive="EBS_gp3_max", decode="cpu", batch=8),
    ),
    Scenario(
        "words",
        "Words are small",
        "GPT-2 learns to write on an H100. Its samples are tokens, which somebody prepared long ago.",
        "Work that was done before the training starves nobody.",
        WORKLOADS[8],
        Setting(workers=1, cores=1, memory=0, drive="EBS_gp3", decode="cpu", batch=64),
    ),
)


@dataclass(frozen=True)
class Answer:
    """What the package says of a setting, or of many: arrays of one length."""

    step: Step
    dollars: NDArray[np.float64]  # for an hour of the host
    # For as many samples as the GPU alone computes in an hour.
    cost: NDArray[np.float64]


def solve(workload: Workload, choice: Choice, values: Values) -> Answer:
    """Solve many settings that share a drive and a place to decode."""
    pipeline = workload.pipeline(choice, values)
    step = pipeline.solve()
    ready = (
        PREFETCH * np.asarray(values["workers"]) * np.asarray(values["batch"]) * pipeline.inputs["copy"].size
    )
    dollars = (
        workload.price
        + PRICES["core"] * np.asarray(values["cores"])
        + PRICES["memory"] * (np.asarray(values["memory"]) + ready / 2**30)
        + PRICES[choice[0]]
    )
    trains = step.throughput.m_as("sample/s") * _sample_time(pipeline)
    return Answer(step, dollars, dollars / trains)


def _sample_time(pipeline: Pipeline) -> float:
    """Seconds that the GPU computes on a sample, without launches and updates of the weights."""
    node = pipeline.inputs["model"]
    return 1 / node.rate if node.rate else node.step.arithmetic + node.step.traffic


@cache
def whole_grid() -> dict[str, NDArray[np.int_]]:
    """Every combination of the sliders, as columns."""
    columns = np.meshgrid(*GRID.values(), indexing="ij")
    return dict(zip(GRID, (column.ravel() for column in columns), strict=True))


def each_answer(workload: Workload) -> Iterator[tuple[Choice, Answer]]:
    """The whole grid of a workload, one choice of drive and decoder at a time."""
    for choice in workload.choices:
        yield choice, solve(workload, choice, whole_grid())


@cache
def cheapest(workload: Workload) -> tuple[Setting, float]:
    """The setting that reaches the goal for the fewest dollars an hour of training, and these dollars.

    Of several, the one with the fewest workers and the smallest batch.
    """
    found: list[tuple[float, int, Choice]] = []
    for choice, answer in each_answer(workload):
        enough = (answer.step.utilization >= GOAL) & answer.step.feasible
        if enough.any():
            first = int(np.argmin(np.where(enough, answer.cost, np.inf)))
            found.append((float(answer.cost[first]), first, choice))
    dollars, first, (drive, decode) = min(found)
    values = {name: int(column[first]) for name, column in whole_grid().items()}
    return Setting(**values, drive=drive, decode=decode), dollars


def _scenario(scenario: Scenario) -> dict[str, object]:
    """A scenario as the page reads it."""
    before, workload = scenario.before, scenario.workload
    told = {name: getattr(scenario, name) for name in ("key", "title", "story", "theory")}
    if before:
        was = scenario.solve_start(replace(workload, hardware=before, link=None)).step
        told["before"] = {"gpu": before.name, "busy": float(was.utilization)}
    return told | {"start": asdict(scenario.start), "workload": WORKLOADS.index(workload)}


def _workload(workload: Workload) -> dict[str, object]:
    """What the page's rules read of a workload: what the package's stages have resolved, in base units."""
    decoders = {}
    for _, decode in dict.fromkeys((DRIVES[0], decode) for _, decode in workload.choices):
        inputs = workload.pipeline((DRIVES[0], decode), FIRST).inputs
        decoder = inputs.get("decode")
        decoders[decode] = {
            "cpu": inputs["transform"].amount / inputs["transform"].rate,
            "sent": inputs["copy"].size,
            "decoder": 0 if decoder is None else decoder.sample,
        }
    node, step = inputs["model"], inputs["model"].step
    setting, dollars = cheapest(workload)
    return {
        "gpu": workload.hardware.name,
        "model": workload.model.name,
        "dataset": workload.dataset.name,
        "noun": workload.noun,
        "size": inputs["read"].size,
        "samples": workload.dataset.samples,
        "cached": [float(f"{share:.9g}") for share in workload.cached],
        "decoders": decoders,
        "sample": _sample_time(workload.pipeline((DRIVES[0], decode), FIRST)),
        "update": float(workload.update_time.m_as("s")),
        "launch": step.overhead,
        "link": inputs["copy"].bandwidth,
        "held": asdict(node.memory) if node.memory else None,
        "price": workload.price,
        "cheapest": {**asdict(setting), "cost": dollars},
        "basis": node.basis,
    }


def _drive(path: str) -> dict[str, object]:
    """What the page's rules read of a drive."""
    read = WORKLOADS[0].pipeline((path, "cpu"), FIRST).inputs["read"]
    return {
        "name": getattr(Storage, path).name,
        "bandwidth": read.bandwidth,
        "latency": read.latency,
        "rate": read.request_rate,
        "price": PRICES[path],
    }


def _prices() -> list[dict[str, object]]:
    """What the page pays for, and the price of each."""
    names = {"core": "a core", "memory": "a GiB of memory"}
    names |= {drive: getattr(Storage, drive).name for drive in DRIVES}
    names |= {gpu.path.rpartition(".")[2]: gpu.name for gpu in {work.hardware: 0 for work in WORKLOADS}}
    return [{"what": name, "price": PRICES[part]} for part, name in names.items()]


def tables() -> dict[str, object]:
    """All that the page knows."""
    scaling = PUBLISHED.scaling
    decode = Hardware.Cloud.A100.facts["image_decode_rate"]
    return {
        "goal": GOAL,
        "runs": RUNS,
        "prefetch": PREFETCH,
        "medals": [{"name": name, "above": share} for name, share in MEDALS.items()],
        "values": GRID,
        "prices": {name: PRICES[name] for name in ("core", "memory")},
        "scaling": {"crowding": scaling.crowding, "second_thread": scaling.second_thread},
        "drives": {path: _drive(path) for path in DRIVES},
        "resources": [
            {name: getattr(one, name) for name in ("name", "label", "color", "ink", "hatch")}
            for one in RESOURCES.values()
        ],
        "scenarios": [_scenario(scenario) for scenario in SCENARIOS],
        "workloads": [_workload(workload) for workload in WORKLOADS],
        "theory": THEORY,
        "priced": _prices(),
        "decodeSource": decode.source,
        "prepareSource": Datasets.ImageNet.facts["preparation_time"].source,
        "workersSource": PUBLISHED.facts["second_thread"].source,
    }


def tables_js() -> str:
    """The tables as a script, one scenario or drive to a line."""
    lines = [
        "// Written by docs/build.py from the package's tables. Do not edit it: `make build` writes it anew.",
        "const TABLES = {",
    ]
    for name, value in tables().items():
        if isinstance(value, list):
            rows = ",\n".join(f"  {_json(row)}" for row in value)
            lines.append(f"{name}: [\n{rows},\n],")
        else:
            lines.append(f"{name}: {_json(value)},")
    return "\n".join([*lines, "};", ""])


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"(?<=\d)\.0(?=[],}])", "", text)  # 80000000000.0 is a whole number, and longer


def draw_link(path: Path) -> None:
    """Draw the picture that a link to the page is shown with: the question of the first scenario."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch
    from PIL import Image

    first = SCENARIOS[0]
    assert first.before
    figure = Figure((12, 6.3), facecolor="#14171a")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1200), ylim=(0, 630))
    axes.axis("off")
    say = {"color": "#e8eaed", "ha": "center", "va": "center"}
    axes.text(600, 545, "Feed the GPU", size=54, weight="bold", **say)
    stations = ("drive", f"{first.start.workers} workers", "link", first.workload.hardware.name.split()[1])
    for place, (station, resource) in enumerate(
        zip(stations, ("storage", "CPU", "link", "accelerator"), strict=True)
    ):
        x, color = 60 + 285 * place, RESOURCES[resource].color
        axes.add_patch(
            FancyBboxPatch((x, 250), 215, 170, "round,pad=0,rounding_size=18", fc=color, ec="#e8eaed", lw=3)
        )
        axes.text(x + 107, 335, station, size=24, weight="bold", **say | {"color": RESOURCES[resource].ink})
        if place:
            axes.annotate(
                "", (x - 4, 335), (x - 66, 335), arrowprops={"arrowstyle": "-|>", "color": "#e8eaed", "lw": 4}
            )
    old, new = (entry.name.split()[1] for entry in (first.before, first.workload.hardware))
    axes.text(600, 125, f"A {new} replaces an {old}. Does it wait less?", size=34, **say)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    with Image.open(path) as drawn:
        drawn.convert("RGB").quantize(32).save(path, optimize=True)
