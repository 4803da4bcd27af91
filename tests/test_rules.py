"""The rules by which rows are predicted from what no rate of the package holds, and what each is worth."""

import re
import statistics
from itertools import combinations

import pytest

from benchmarks.published import MECHANISMS, Published
from benchmarks.report import REPOSITORY
from benchmarks.rules import RULES
from benchmarks.validation import worth
from starvelab import PUBLISHED, Q_, Handover, Hardware, Pipeline, Samples, Workers

TABLES = Published()
PAGE = " ".join((REPOSITORY / "docs" / "how-right.md").read_text(encoding="utf-8").split())
A100_MATMUL = TABLES.value("mamf_a100_sxm_bf16")


def test_each_mechanism_counts_its_rows_with_it_and_without():
    assert {row["mechanism"] for row in TABLES.rows.values() if "mechanism" in row} == set(MECHANISMS)
    *of_each, of_all = worth(TABLES)
    assert of_all[:2] == ("all that is predicted", str(len(TABLES.tests)))
    assert of_all[2] == f"{statistics.median(100 * abs(test.error) for test in TABLES.tests):.1f} %"
    for mechanism, (what, count, median, without, *_) in zip(MECHANISMS, of_each, strict=True):
        names = [name for name, row in TABLES.rows.items() if row.get("mechanism") == mechanism]
        assert (what, count) == (MECHANISMS[mechanism], str(len(names)))
        for said, of in ((median, "pipeline"), (without, "without")):
            errors = [100 * abs(TABLES.test(name, of).error) for name in names]
            assert said == f"{statistics.median(errors):.1f} %"


def test_whatever_starts_from_one_accelerator_in_the_host_has_what_several_lose():
    rows = {name: row for name, row in TABLES.rows.items() if row["kind"] == "several accelerators"}
    others = {name for name, row in rows.items() if "mechanism" not in row}
    assert others == {"rn50_mlperf_8xH100", "ffcv_rn50_8xa100_160px"}  # which start from eight
    for name in others:
        assert not any(used.endswith("1gpu") for used in TABLES.test(name).uses)


def test_a_neighbor_that_is_the_row_has_its_rate():
    same = RULES["of_neighbor"](
        matmul_a100=A100_MATMUL, gmacs=[4, 4], tflops=[100, 100], bandwidths=[900, 900], rate=Q_("500 img/s")
    )
    assert same.m_as("img/s") == pytest.approx(500)


def test_a_neighbor_is_carried_by_work_activations_peak_and_bandwidth():
    known = {"matmul_a100": A100_MATMUL, "step": Q_("32 ms"), "batch_size": 16}
    pairs = {"gmacs": [4, 4], "tflops": [100, 100], "bandwidths": [900, 900]}
    for doubled, faster in (
        ({"tflops": [100, 200], "bandwidths": [900, 1800]}, 2),
        ({"gmacs": [4, 8], "activations": [1, 2]}, 1 / 2),
    ):
        found = RULES["of_neighbor"](**known, **pairs | doubled)
        assert found.m_as("img/s") == pytest.approx(500 * faster)
    # 24 GFLOP a sample at the share of the peak that was measured.
    arithmetic = 0.024 / (100 * (A100_MATMUL / Hardware.Cloud.A100.peak_fp16_dense).m_as(""))
    slower = RULES["of_neighbor"](**known, **pairs | {"bandwidths": [900, 450]})
    assert slower.m_as("img/s") == pytest.approx(1 / (arithmetic + 2 * (0.002 - arithmetic)))


def test_what_several_lose_is_the_median_of_other_jobs():
    found = RULES["together"](rate=Q_("100 img/s"), count=8, speedups={"one": 6.0, "two": 7.2, "three": 9.0})
    assert found.m_as("img/s") == pytest.approx(90)
    for count, name in ((8, "speedups_of_eight"), (4, "speedups_of_four")):
        speedups = TABLES.value(name)
        assert all(0.75 * count < one < 1.15 * count for one in speedups.values())


def test_the_law_of_contention_goes_through_what_it_starts_from():
    rates = {"one": Q_("10 img/s"), "some": Q_("25 img/s"), "of": 4}
    assert RULES["of_fewer"](**rates, count=4).m_as("img/s") == pytest.approx(25)
    assert RULES["of_fewer"](**rates, count=1).m_as("img/s") == pytest.approx(10)
    assert RULES["of_fewer"](**rates, count=7).m_as("img/s") == pytest.approx(70 / 2.2)


def test_the_page_says_how_far_the_other_jobs_are_from_their_median():
    speedups = TABLES.value("speedups_of_eight").values()
    middle = statistics.median(speedups)
    off = 100 * statistics.median(abs(one / middle - 1) for one in speedups)
    assert f"by {off:.1f} % in the median, so they cannot tell what another job loses to 5 %" in PAGE


@pytest.mark.programs
def test_ranges_are_held_to_what_the_package_predicts_by_itself():
    by_itself = {
        name: TABLES.pipeline(name, "without")[0] for name, row in TABLES.rows.items() if "without" in row
    }
    held = {one.group: one for one in TABLES.held}
    for name, pipe in by_itself.items():
        assert held[name].predicted == pipe.solve().throughput.m_as("img/s")
        assert TABLES.by_itself(name) == TABLES.test(name, "without")


# ResNet-50 in PyTorch's mixed precision on one accelerator, by different people.
ALIKE = (
    ("rn50_train_v100_pytorch_amp_1gpu", "rn50_lambda_v100_16gb_amp_1gpu", "rn50_train_v100_csc_fp16_1gpu"),
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


def off(test, *, ended=False):
    """How far a row is off in percent; unless `ended`, without the end that another loader has reached."""
    bare = not ended and TABLES.rows[test.name].get("mechanism") == "ceiling"
    return 100 * abs((TABLES.by_itself(test.name) if bare else test).error)


def test_the_page_says_what_the_added_rows_came_to():
    for kind in ("one accelerator", "several accelerators", "loader", "all"):
        rows = TABLES.all if kind == "all" else TABLES.of_kind(kind)
        added = [one for one in rows if TABLES.rows[one.name].get("added")]
        old, new, every = (
            statistics.median(map(off, part))
            for part in ([one for one in rows if one not in added], added, rows)
        )
        counts = len(rows) - len(added), len(added)
        said = f"| {kind} | {counts[0]} | {old:.1f} % | {counts[1]} | {new:.1f} % | {every:.1f} % |"
        assert said in PAGE
    loaders = TABLES.of_kind("loader")
    before, after = (statistics.median(off(one, ended=ended) for one in loaders) for ended in (False, True))
    assert f"brought the median of all loaders from {before:.1f} to {after:.1f} %" in PAGE


def test_the_page_says_how_right_decoding_on_five_processors_is():
    rows = {
        count: [t for t in TABLES.tests if re.fullmatch(f"imread_.*_{count}", t.name)] for count in (4, 8)
    }
    assert [len(each) for each in rows.values()] == [5, 5]
    four, eight = (statistics.median(map(off, each)) for each in rows.values())
    ended = statistics.median(off(one, ended=True) for one in rows[8])
    assert f"from two to {four:.1f} % in the median. Eight were predicted to {eight:.0f} %" in PAGE
    assert f"and by the third rule to {ended:.0f} %" in PAGE


# Images a second of ternaus/imread_benchmark@f869db8 (output/linux_*, dataloader_results.json): imagecodecs
# with 2, 4 and 8 PyTorch workers, and Pillow with 8.
DECODERS = {
    "zen4": (1110.73, 1543.34, 1448.92, 1275.67),
    "zen5": (1350.37, 2358.39, 2475.74, 2464.82),
    "emerald": (1135.72, 1629.31, 1676.74, 1564.53),
    "n1": (803.20, 1432.55, 1442.66, 1386.69),
    "v2": (1191.46, 2197.62, 2242.20, 2349.63),
}


def test_decoders_of_one_host_reach_one_end():
    quicker, apart, reached, slow = [], [], [], []
    for host, (two, four, eight, pillow) in DECODERS.items():
        own = {n: TABLES.value(f"imread_{host}_{n}").m_as("img/s") for n in (2, 4, 8)}
        assert TABLES.value(f"imread_{host}_imagecodecs_8").m_as("img/s") == eight
        assert eight < 1.1 * four, "it has reached its end"
        quicker.append(two / own[2])
        apart.append(max(own[8], eight, pillow) / min(own[8], eight, pillow) - 1)
        reached += [own[8], eight, pillow]
        slow.append(100 * (1 - own[2] * eight / two / own[8]))
    assert f"imagecodecs is {min(quicker):.1f} to {max(quicker):.1f} times as fast as ajpegli" in PAGE
    assert f"within {100 * min(apart):.0f} to {100 * max(apart):.0f} % of each other" in PAGE
    assert f"at {round(min(reached), -2):,.0f} to {round(max(reached), -2):,.0f} images a second" in PAGE
    assert f"came out {min(slow):.0f} to {max(slow):.0f} % too slow" in PAGE


def test_the_page_says_what_receiving_many_tensors_is_predicted_to_take():
    images = Samples(
        size="160 KB", transfer=Q_("65.81 MB") / 16
    )  # what they weigh on the drive does not bind
    workers = Workers(kind="torch", cores=16, handover=Handover(objects=114))
    pipe = Pipeline(
        dataset=images, workers=workers, batch_size=16, hardware="1e9 img/s", assumptions=PUBLISHED
    )
    one = RULES["of_one_worker"](rate=Q_("163 img/s"), count=4, kind="torch", cores=16)
    found = [
        pipe.solve({"workers.count": n, "workers.rate": one}).throughput.m_as("img/s") for n in (8, 16, 32)
    ]
    said = "8, 16 and 32 workers are predicted at " + "{:.0f}, {:.0f} and {:.0f} img/s".format(*found)
    assert said in PAGE
