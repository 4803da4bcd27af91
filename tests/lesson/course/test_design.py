"""A host under a budget: what it costs, what stands against it, and that none is cheaper than is said."""

import re

import numpy as np
import pytest

from starvelab.lesson.checks import WrongAnswer
from starvelab.lesson.course.decisions import (
    CORE_PRICE,
    DRIVE_PRICE,
    ENOUGH_BUSY,
    GPU_PRICES,
    IMAGES,
    MAX_COUNTS,
    MAX_HOURS,
    Design,
    bill_curve,
)
from tests.assignments import REPOSITORY

GOOD = {"gpu": "A100", "gpus": 2, "cores": 39, "drives": 3}


def test_a_training_costs_its_hours_times_the_price_of_an_hour():
    host = Design("A100", 1, 8, 1)
    assert host.dollars == pytest.approx(host.hours.m_as("h") * (1.60 + 8 * 0.05 + 0.10))
    assert (IMAGES / host.step.throughput).m_as("h") == pytest.approx(host.hours.m_as("h"))


@pytest.mark.parametrize(("host", "obstacle", "idle"), [
    (("A100", 4, 8, 8), "CPU", "drives"),
    (("A100", 4, 80, 1), "storage", "cores"),
    (("T4", 1, 8, 1), "time", "cores"),
    (("A100", 2, 39, 3), "none", "none"),
    (("A100", 2, 128, 3), "none", "cores"),
    (("A100", 2, 39, 8), "none", "drives"),
])  # fmt: skip
def test_what_stands_against_a_host_and_what_is_idle_in_it(host, obstacle, idle):
    assert (Design(*host).obstacle, Design(*host).idle) == (obstacle, idle)


def test_no_host_is_cheaper_than_the_one_that_the_check_compares_with():
    source = (REPOSITORY / "solutions/master-the-loader/02_design_and_repair.py").read_text(encoding="utf-8")
    compared = float(re.search(r"2 - host\.dollars / ([\d.]+)", source)[1])
    cores, drives = np.arange(1, MAX_COUNTS["cores"] + 1)[:, None], np.arange(1, MAX_COUNTS["drives"] + 1)
    cheapest = []
    for gpu, price in GPU_PRICES.items():
        for gpus in range(1, MAX_COUNTS["gpus"] + 1):
            step = (
                Design(gpu, gpus, 1, 1)
                .pipeline.replace({"workers.cores": cores, "storage.count": drives}, workers=cores)
                .solve()
            )
            hours = (IMAGES / step.throughput).m_as("h")
            dollars = hours * (gpus * price + cores * CORE_PRICE + drives * DRIVE_PRICE)
            allowed = (step.utilization >= ENOUGH_BUSY) & (hours <= MAX_HOURS)
            cheapest.append(np.where(allowed, dollars, np.inf).min())
    assert min(cheapest) == pytest.approx(compared, abs=0.005)


@pytest.mark.parametrize(("given", "said"), [
    ("an A100", r"A design is a dict with gpu, gpus, cores, drives, got 'an A100'\. Give these four\."),
    ({"gpu": "A100"}, r"got 'gpu'\. Give these four\."),
    (GOOD | {"gpu": "B200"}, r"A GPU is one of T4, V100, A100, H100, got 'B200'\. Choose one of these\."),
    (GOOD | {"cores": 129}, r"A host has 1 to 128 cores, in whole numbers, got 129\. Change cores\."),
    (GOOD | {"gpus": True}, r"A host has 1 to 8 gpus, in whole numbers, got True\."),
    (GOOD | {"drives": 1.5}, r"A host has 1 to 8 drives, in whole numbers, got 1\.5\."),
])  # fmt: skip
def test_what_cannot_be_bought_is_told_so(given, said):
    with pytest.raises(WrongAnswer, match=said):
        Design.of(given)


def test_the_bill_over_cores_falls_to_the_cheapest_host_of_its_kind():
    dollars = {cores: Design("V100", 2, cores, 1).dollars for cores in range(1, 65)}
    cores = min(dollars, key=dollars.__getitem__)
    curve = bill_curve(Design("V100", 2, 4, 1))
    assert f"The bill falls to {dollars[cores]:.0f} USD with {cores} cores, and rises behind it." in curve
    assert f"Here it is {dollars[4]:.0f} USD." in curve
    legend = f"Cores of the host. Disc: this one. Ring: the lowest bill, {dollars[cores]:.0f} USD with "
    assert f">{legend}" in curve
    assert re.findall(r'<circle[^>]* r="(\d+)"', curve) == ["10", "6"]  # a ring, and the disc within
    # All of the curve that is drawn lies on the picture, and where it rises again can be seen.
    near = bill_curve(Design("V100", 2, cores, 1))
    heights = [float(y) for y in re.findall(r"[\d.]+,([-\d.]+)", re.findall(r'points="(.*?)"', near)[0])]
    assert min(heights) == heights[0] < 0, "what is cut off at the top is the first of them"
    assert heights[-1] < max(heights) - 10
