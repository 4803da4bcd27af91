"""The rules by which rows start from other figures of their source, and what the page says of them."""

import statistics
from itertools import combinations

import pytest

from benchmarks.published import Published
from benchmarks.report import REPOSITORY
from benchmarks.rules import RULES
from starvelab import Q_, Hardware

TABLES = Published()
PAGE = " ".join((REPOSITORY / "docs" / "how-right.md").read_text(encoding="utf-8").split())
A100_MATMUL = TABLES.value("mamf_a100_sxm_bf16")


def test_a_neighbor_is_carried_by_work_activations_peak_and_bandwidth():
    known = {"matmul_a100": A100_MATMUL, "step": Q_("32 ms"), "batch_size": 16}
    pairs = {"gmacs": [4, 4], "tflops": [100, 100], "bandwidths": [900, 900]}
    for doubled, faster in (
        ({}, 1),  # the row itself has its rate, given as such, too
        ({"rate": Q_("500 img/s"), "step": None}, 1),
        ({"tflops": [100, 200], "bandwidths": [900, 1800]}, 2),
        ({"gmacs": [4, 8], "activations": [1, 2]}, 1 / 2),
    ):
        found = RULES["of_neighbor"](**known | pairs | doubled)
        assert found.m_as("img/s") == pytest.approx(500 * faster)
    # 24 GFLOP a sample at the share of the peak that was measured.
    arithmetic = 0.024 / (100 * (A100_MATMUL / Hardware.Cloud.A100.peak_fp16_dense).m_as(""))
    slower = RULES["of_neighbor"](**known, **pairs | {"bandwidths": [900, 450]})
    assert slower.m_as("img/s") == pytest.approx(1 / (arithmetic + 2 * (0.002 - arithmetic)))


def test_the_law_of_contention_goes_through_what_it_starts_from():
    rates = {"one": Q_("10 img/s"), "some": Q_("25 img/s"), "of": 4}
    assert RULES["of_fewer"](**rates, count=4).m_as("img/s") == pytest.approx(25)
    assert RULES["of_fewer"](**rates, count=1).m_as("img/s") == pytest.approx(10)
    assert RULES["of_fewer"](**rates, count=7).m_as("img/s") == pytest.approx(70 / 2.2)


# ResNet-50 in PyTorch's mixed precision on one accelerator, by different people.
ALIKE = (
    ("rn50_train_v100_pytorch_amp_1gpu", "rn50_train_v100_csc_fp16_1gpu"),
    (
        "rn50_train_a100_pytorch_amp_1gpu", "rn50_lambda_a100_sxm_amp_1gpu", "rn50_train_a100_timm_issue",
        "rn50_train_a100_csc_fp16_1gpu",
    ),
)  # fmt: skip


def test_the_page_says_how_far_apart_different_people_are():
    pairs = [
        max(ratio, 1 / ratio)
        for names in ALIKE
        for one, other in combinations(names, 2)
        for ratio in [float((TABLES.value(one) / TABLES.value(other)).m_as(""))]
    ]
    middle, least, most = statistics.median(pairs), min(pairs), max(pairs)
    assert f"differ by a factor of {middle:.2f} in the median, from {least:.2f} to {most:.2f}" in PAGE


def test_the_page_says_how_much_the_cores_of_a_loader_matter():
    known, unknown = (
        100 * statistics.median(
            abs(row.error)
            for row in TABLES.of_kind("loader")
            if (TABLES.rows[row.name].get("outside") == "cores") == outside
        )
        for outside in (False, True)
    )  # fmt: skip
    assert f"the median error of loaders is {known:.1f} %. If they are not, it is {unknown:.0f} %" in PAGE


def test_the_page_has_two_screens_and_does_not_claim_what_it_misses():
    assert len(PAGE.partition("## On your own machine")[0].split()) < 1100
    errors = [abs(row.error) for row in TABLES.all]
    assert sum(error > 0.25 for error in errors) > len(errors) / 8
    assert "The model misses one goal: at most one row in eight farther off than 25 %" in PAGE
