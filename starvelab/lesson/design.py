"""A host to train on, put together under a budget: what it does, what it costs, and what in it is idle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from ..model.assumptions import PUBLISHED
from ..model.groups import Datasets, Hardware, Models
from ..model.parts import Accelerator, Drive, Workers
from ..model.step import Step
from ..pipeline import Pipeline
from ..runtime import note
from ..units import Q_, Quantity
from .checks import WrongAnswer

# Prices of the exercise [USD] for an hour: those of the world differ by a factor of three between sellers.
GPU_PRICES = {"T4": 0.35, "V100": 0.90, "A100": 1.60, "H100": 3.00}
CORE_PRICE, DRIVE_PRICE = 0.05, 0.10
MAX_COUNTS = {"gpus": 8, "cores": 128, "drives": 8}
# Ninety epochs of ImageNet.
IMAGES = Q_(90 * 1_281_167, "img")
ENOUGH_BUSY, MAX_HOURS = 0.9, 12.0


@dataclass(frozen=True)
class Design:
    """A host with GPUs of one kind of `GPU_PRICES`."""

    gpu: str
    gpus: int
    cores: int
    drives: int

    @classmethod
    def of(cls, given: object) -> Design:
        """Read what a learner wrote, or raise WrongAnswer if it cannot be bought."""
        names = ["gpu", *MAX_COUNTS]
        if not isinstance(given, Mapping) or set(given) != set(names):
            came = ", ".join(map(str, given)) if isinstance(given, Mapping) else repr(given)
            raise WrongAnswer(f"A design is a dict with {', '.join(names)}, got {came:.80}. Give these four.")
        if given["gpu"] not in GPU_PRICES:
            raise WrongAnswer(
                f"A GPU is one of {', '.join(GPU_PRICES)}, got {given['gpu']!r:.80}. Choose one of these."
            )
        for name, most in MAX_COUNTS.items():
            count = given[name]
            if not _is_count(count) or not 1 <= count <= most:
                raise WrongAnswer(
                    f"A host has 1 to {most} {name}, in whole numbers, got {count!r:.80}. Change {name}."
                )
        return cls(given["gpu"], *(int(given[name]) for name in MAX_COUNTS))

    @property
    def pipeline(self) -> Pipeline:
        """The host as the model sees it."""
        return Pipeline(
            model=Models.ResNet50,
            hardware=Accelerator(getattr(Hardware.Cloud, self.gpu), count=self.gpus),
            dataset=Datasets.ImageNet,
            workers=Workers(self.cores, cores=self.cores),
            storage=Drive(Q_("0.2 GB/s"), count=self.drives),
            assumptions=PUBLISHED,
        )

    @cached_property
    def step(self) -> Step:
        """The model's solution."""
        return self.pipeline.solve()

    @property
    def busy(self) -> float:
        """Busy share of the GPUs, 0 to 1."""
        return float(self.step.utilization)

    @property
    def hours(self) -> Quantity:
        """Return how long the training takes [time]."""
        hours: Quantity = (IMAGES / self.step.throughput).to("h")
        return hours

    @property
    def dollars(self) -> float:
        """Return the cost of the training [USD]."""
        an_hour = self.gpus * GPU_PRICES[self.gpu] + self.cores * CORE_PRICE + self.drives * DRIVE_PRICE
        return float(self.hours.m_as("h") * an_hour)

    @property
    def obstacle(self) -> str:
        """Name what keeps it from being a solution: "CPU", "storage", "time", or "none"."""
        if self.busy < ENOUGH_BUSY:
            return str(self.step.bottleneck)
        return "none" if self.hours.m_as("h") <= MAX_HOURS else "time"

    @property
    def idle(self) -> str:
        """Name what could go without a loss: "cores" (a quarter of them), "drives" (one), or "none"."""
        with_fewer = {
            "cores": Design(self.gpu, self.gpus, max(1, int(0.75 * self.cores)), self.drives),
            "drives": Design(self.gpu, self.gpus, self.cores, max(1, self.drives - 1)),
        }
        for name, fewer in with_fewer.items():
            if fewer != self and fewer.busy >= self.busy - 0.001:
                return name
        return "none"


def judge(given: object) -> Design:
    """Read a design, and let a report of the class know of it."""
    design = Design.of(given)
    note("design", [design.dollars, design.busy])
    return design


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
