"""What exercises judge that ask for a decision from evidence: verdicts on black boxes, and designed hosts."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, isclose, log
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from ...model.assumptions import PUBLISHED
from ...model.groups import Datasets, Hardware, Models
from ...model.parts import Accelerator, Drive, Workers
from ...model.resources import CPU, LABELS, STORAGE
from ...model.step import Step
from ...pipeline import Pipeline
from ...tables import count_of
from ...units import Q_, Quantity
from ..checks import WrongAnswer
from ..show.curves import Plane, stroke
from ..show.drawing import frame, tag, text

__all__ = [
    "CORE_PRICE",
    "DRIVE_PRICE",
    "GPU_PRICES",
    "Design",
    "bill_curve",
    "log_score",
    "most_likely",
    "record",
    "total",
]

# Written by `python -m benchmarks.black_boxes`.
RECORDS = Path(__file__).with_name("black_boxes.json")
RESOURCES = ("storage", "CPU", "link", "accelerator")
# What binds in each box, and why, as base64 of JSON: nobody is to read it by accident.
_INSIDE = (
    "eyJBIjpbInN0b3JhZ2UiLCJpdHMgZm91ciB3b3JrZXJzIHJlYWQgMjUgTUIgZWFjaCB0aW1lIGZyb20gb25lIGRyaXZlIG9m"
    "IDEgR0IvcywgYW5kIHRoZWlyIHJlYWRzIHF1ZXVlIl0sIkIiOlsiQ1BVIiwiYSB3b3JrZXIgdGFrZXMgODQgbXMgYW5kIHRo"
    "ZXJlIGFyZSBmb3VyIG9mIHRoZW0sIHNvIDIxIG1zIGZvciBhIGJhdGNoOyBhIHN0ZXAgdGFrZXMgMjAgbXMsIHNvIGl0IGlz"
    "IG5lYXJseSBhIHRpZSJdLCJDIjpbImxpbmsiLCIyNiBNQiBnbyBvdmVyIGEgbGluayBvZiAxIEdCL3Mgb25lIGJhdGNoIGFm"
    "dGVyIHRoZSBvdGhlciwgMjYgbXMgZWFjaDsgZm91ciB3b3JrZXJzIGF0IDYwIG1zIGFuZCBhIHN0ZXAgb2YgMTggbXMgYXJl"
    "IGZhc3RlciJdfQ=="
)
# Nobody has to be surer than this to earn all points.
ENOUGH = 0.9

# Round prices [USD] for an hour, made up for the exercise and the game: those of sellers differ by a factor
# of three. Memory is that of a GiB, a drive any drive that is not named.
PRICES = {
    "T4": 0.35, "V100": 0.90, "A100": 1.60, "H100": 3.00, "B200": 5.50, "core": 0.05, "memory": 0.005,
    "drive": 0.10, "EBS_gp3": 0.10, "EBS_gp3_max": 0.15, "NVMe_Gen3": 0.25,
}  # fmt: skip
GPU_PRICES = {name: PRICES[name] for name in ("T4", "V100", "A100", "H100")}
CORE_PRICE, DRIVE_PRICE = PRICES["core"], PRICES["drive"]
MAX_COUNTS = {"gpus": 8, "cores": 128, "drives": 8}
EPOCHS = 90
IMAGES = Q_(EPOCHS * 1_281_167, "img")  # of ImageNet
ENOUGH_BUSY, MAX_HOURS = 0.9, 12.0
MAX_CORES = 64  # at the end of the axis


# Any: the values of what a learner wrote; they are checked one by one.
def _dict_of(given: object, keys: tuple[str, ...], is_a: str, do: str) -> Mapping[str, Any]:
    """Read a dict with these keys, or raise WrongAnswer."""
    if not isinstance(given, Mapping) or set(given) != set(keys):
        came = ", ".join(map(repr, given)) if isinstance(given, Mapping) else repr(given)
        raise WrongAnswer(f"{is_a} {', '.join(keys)}, got {came:.80}. {do}")
    return given


# --- black boxes ------------------------------------------------------------------------------------------


def record(box: str) -> dict[str, list[float]]:
    """Return the record of a pipeline of which nothing else is known.

    Parameters
    ----------
    box : str
        "A", "B" or "C".

    Returns
    -------
    dict
        For each batch the number of its worker, and its times [ms].
    """
    records: dict[str, dict[str, list[float]]] = json.loads(RECORDS.read_text(encoding="utf-8"))
    return records[box]


def inside(box: str) -> tuple[str, str]:
    """Return the resource that binds in a box, and what the box was in a sentence."""
    binds, why = json.loads(base64.b64decode(_INSIDE))[box]
    return binds, f"Box {box}: {LABELS.does(binds, 'bind')}, since {why}."


def total(verdict: object) -> float:
    """Add up the probabilities of a verdict, whatever they are.

    Raises
    ------
    WrongAnswer
        If a resource has no number.
    """
    return float(sum(_numbers(verdict).values()))


def most_likely(verdict: object) -> str:
    """Return the resource with the highest probability in a verdict.

    Raises
    ------
    WrongAnswer
        If the verdict is none, or two resources share the highest probability.
    """
    probabilities = _probabilities(verdict)
    highest = max(probabilities.values())
    found = [name for name, probability in probabilities.items() if probability == highest]
    if len(found) > 1:
        raise WrongAnswer(
            f"One resource is the most likely, got {highest:g} for {' and '.join(found)}. "
            "Decide, if only by little."
        )
    return found[0]


def log_score(verdict: object, truth: str) -> float:
    """Return the share of the points that a verdict earns, 0 to 1.

    With a probability p for what is true it is log(4 p) / log(4 * 0.9): a guess, one in four, earns nothing,
    and 0.9 earns all. Whoever wants to earn the most on average has to say what they believe.

    >>> verdict = {"storage": 0.1, "CPU": 0.7, "link": 0.1, "accelerator": 0.1}
    >>> round(log_score(verdict, "CPU"), 2), log_score(verdict, "link")
    (0.8, 0.0)
    """
    probability = _probabilities(verdict)[truth]
    if probability <= 1 / len(RESOURCES):
        return 0.0
    return min(1.0, log(len(RESOURCES) * probability) / log(len(RESOURCES) * ENOUGH))


def _numbers(verdict: object) -> dict[str, float]:
    numbers = _dict_of(
        verdict, RESOURCES, "A verdict gives a probability to each of", "Write a dict with these four keys."
    )
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise WrongAnswer(f"A probability is a number, got {value!r:.80} for {name}. Write 0.7 for 70 %.")
    return {name: float(value) for name, value in numbers.items()}


def _probabilities(verdict: object) -> dict[str, float]:
    numbers = _numbers(verdict)
    for name, value in numbers.items():
        if not 0 <= value <= 1:
            raise WrongAnswer(
                f"A probability lies from 0 to 1, got {value:g} for {name}. Write 0.7 for 70 %."
            )
    if not isclose(found := sum(numbers.values()), 1, abs_tol=1e-6):
        raise WrongAnswer(f"The four probabilities add up to 1, got {found:.4g}. Divide each by their sum.")
    return numbers


# --- a host under a budget --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """A host to train on, put together under a budget, with GPUs of one kind of `GPU_PRICES`.

    Parameters
    ----------
    gpu : str
    gpus, cores, drives : int
    """

    gpu: str
    gpus: int
    cores: int
    drives: int

    @classmethod
    def of(cls, given: object) -> Design:
        """Read what a learner wrote, or raise WrongAnswer if it cannot be bought."""
        read = _dict_of(given, ("gpu", *MAX_COUNTS), "A design is a dict with", "Give these four.")
        if read["gpu"] not in GPU_PRICES:
            raise WrongAnswer(
                f"A GPU is one of {', '.join(GPU_PRICES)}, got {read['gpu']!r:.80}. Choose one of these."
            )
        for name, most in MAX_COUNTS.items():
            count = read[name]
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
                raise WrongAnswer(
                    f"A host has 1 to {most} {name}, in whole numbers, got {count!r:.80}. Change {name}."
                )
        return cls(**read)

    @property
    def pipeline(self) -> Pipeline:
        """The host as the model sees it, without what GPUs lose to each other."""
        return Pipeline(
            model=Models.ResNet50,
            hardware=Accelerator(getattr(Hardware.Cloud, self.gpu), count=self.gpus),
            dataset=Datasets.ImageNet,
            workers=Workers(self.cores, cores=self.cores),
            storage=Drive(Q_("0.2 GB/s"), count=self.drives),
            assumptions=PUBLISHED.replace(accelerators_time=1.0),
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
    def an_hour(self) -> float:
        """Return the price of an hour [USD]."""
        return self.gpus * GPU_PRICES[self.gpu] + self.cores * CORE_PRICE + self.drives * DRIVE_PRICE

    @property
    def dollars(self) -> float:
        """Return the cost of the training [USD]."""
        return float(self.hours.m_as("h") * self.an_hour)

    def __str__(self) -> str:
        """Return the host in words."""
        return f"{self.gpu} x {self.gpus}, {count_of(self.cores, 'core')}, {count_of(self.drives, 'drive')}"

    @property
    def obstacle(self) -> str:
        """Name what keeps it from being a solution: "CPU", "storage", "time", or "none"."""
        if self.busy < ENOUGH_BUSY:
            return str(self.step.bottleneck)
        return "none" if self.hours.m_as("h") <= MAX_HOURS else "time"

    @property
    def idle(self) -> str:
        """Name what could go without a loss: "cores" (a quarter of them), "drives" (one), or "none"."""
        fewer_cores = replace(self, cores=max(1, int(0.75 * self.cores)))
        fewer_drives = replace(self, drives=max(1, self.drives - 1))
        for name, fewer in (("cores", fewer_cores), ("drives", fewer_drives)):
            if fewer != self and fewer.busy >= self.busy - 0.001:
                return name
        return "none"


def bill_curve(host: Design) -> str:
    """Draw the cost of the training over the cores of a host, and where the bill stops falling.

    Parameters
    ----------
    host : Design

    Returns
    -------
    str
        SVG.
    """
    cores = np.arange(1, MAX_CORES + 1)
    step = host.pipeline.replace({"workers.cores": cores}, workers=cores).solve()
    dollars = (IMAGES / step.throughput).m_as("h") * (host.an_hour + (cores - host.cores) * CORE_PRICE)
    best, here = int(dollars.argmin()), min(host.cores, MAX_CORES) - 1
    # One core costs many times what the best number does: the axis ends where the curve can still be read.
    top = 20 * ceil(min(dollars.max(), max(3 * dollars[best], dollars[here])) / 20)
    plane = Plane(MAX_CORES, top, " USD")
    curve = tag("polyline", points=plane.points(cores, dollars), fill="none", **stroke(CPU.color))
    # The ring stands around the disc where both are one.
    for place, r, fill in ((best, 10, "none"), (here, 6, STORAGE.color)):
        curve += plane.dot(place + 1, dollars[place], r=r, fill=fill, stroke=STORAGE.color, stroke_width=2)
    lowest = f"{dollars[best]:.0f} USD with {best + 1} cores"
    drawn, y = plane.drawn(curve, {}, columns=1)
    said = f"Cores of the host. Disc: this one. Ring: the lowest bill, {lowest}."
    return frame(
        drawn + text(60, y, said, size=12),
        height=y + 8,
        title="What the training costs, over the cores of the host",
        description=f"The bill falls to {lowest}, and rises behind it. Here it is {host.dollars:.0f} USD.",
    )
