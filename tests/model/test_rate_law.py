"""Rates of accelerators: measured, or extrapolated so that no neighbor contradicts another."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import pytest

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Accelerator,
    Framework,
    Hardware,
    Links,
    MissingValueError,
    Models,
    Pipeline,
    SingleNodeModel,
)
from starvelab.lesson.show.svg import step_bars
from starvelab.model.catalogue import entry_at
from starvelab.model.rates import Work, frameworks_of, launches_in_turn, measured_rates, sample_time
from starvelab.show import stage_bars

CLOUD = Hardware.Cloud
# One accelerator lists no memory, so its steps cannot be timed; see below.
TIMED = [hardware for hardware in Hardware if hardware.get("memory_bandwidth") is not None]
FED = Pipeline(model=Models.ResNet50, hardware=CLOUD.A100, assumptions=PUBLISHED, workers="1e6 img/s")
BARE = FED.replace(workers=8)
EACH_MODEL = pytest.mark.parametrize("model", list(Models), ids=lambda model: model.path)
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
NEVER = 1 - 1e-9  # what rounding may take


def solved(hardware, precision="fp16", phase="training", model=Models.ResNet50, batch_size=256):
    return SingleNodeModel(PUBLISHED).solve(
        model=model, hardware=hardware, precision=precision, phase=phase, batch_size=batch_size
    )


def rate(*arguments, **named):
    return solved(*arguments, **named).throughput.m_as("img/s")


def listed(hardware):
    return [p for p in PRECISIONS if hardware.get(f"peak_{p}_dense") is not None]


# ---- Neighbors ---------------------------------------------------------------------------------------------


def test_neighbors_compare_as_their_data_sheets_do():
    assert rate(CLOUD.H100, "bf16") == rate(CLOUD.H100, "fp16")
    assert rate(CLOUD.A100, "bf16") == rate(CLOUD.A100, "fp16") == pytest.approx(2470)
    assert rate(CLOUD.A100, "fp32") > rate(CLOUD.V100, "fp32") == pytest.approx(367)
    # It gains from its memory, and no more.
    assert 1 < rate(CLOUD.H200) / rate(CLOUD.H100) < 4800 / 3350


@EACH_MODEL
def test_a_lower_precision_is_never_slower_and_a_forward_pass_never_slower_than_training(model):
    for hardware in TIMED:
        rates = {
            phase: [rate(hardware, p, phase, model) for p in listed(hardware)]
            for phase in ("training", "forward")
        }
        for of_phase in rates.values():
            assert all(low >= high * NEVER for high, low in pairwise(of_phase)), hardware.path
        for training, forward in zip(*rates.values(), strict=True):
            assert forward >= training * NEVER, hardware.path


def is_larger(large, small, precision):
    """True if it is larger in all that the catalogue knows of both."""
    names = [f"peak_{precision}_dense", "memory_bandwidth"]
    if None not in (one.get("matmul_bf16_sustained") for one in (small, large)):
        names.append("matmul_bf16_sustained")
    return all(large.number(name) >= small.number(name) for name in names)


CONTRADICTED: set[tuple[str, str]] = set()  # by sources: the small one, and the large one that is slower


def test_an_accelerator_that_is_larger_in_every_way_is_never_slower_unless_sources_say_so():
    contradicted = set()
    for model, precision in product(Models, PRECISIONS):
        rates = {hw: rate(hw, precision, model=model) for hw in TIMED if precision in listed(hw)}
        for small, large in permutations(rates, 2):
            if is_larger(large, small, precision) and rates[large] < rates[small] * NEVER:
                contradicted.add((small.path, large.path))
    assert contradicted == CONTRADICTED


def test_an_accelerator_without_a_figure_says_which_one_a_step_needs():
    with pytest.raises(MissingValueError, match=r"^Google TPU v6e lists no memory_bandwidth"):
        solved(CLOUD.TPU_v6e, "bf16")
    with pytest.raises(MissingValueError, match=r"and Google TPU v5p lists none\. It lists bf16: pass"):
        solved(CLOUD.TPU_v5p, "fp16")


# ---- One source for all that are compared ------------------------------------------------------------------


def source(row):
    """The repository that a rate is from."""
    return row.fact.source.partition("@")[0].partition(",")[0]


def test_the_rates_of_a_framework_and_the_defaults_of_a_model_come_from_one_source():
    for grouped in (
        lambda row: (row.model, row.framework),
        lambda row: (row.model, "default") if row.default else (row.model, row.framework),
    ):
        sources = {}
        for row in measured_rates():
            sources.setdefault(grouped(row), set()).add((source(row), row.framework))
        assert all(len(found) == 1 for found in sources.values()), sources


FRAMEWORKS = [None, *frameworks_of(Models.ResNet50)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_two_accelerators_that_nobody_measured_in_a_source_compare_as_the_law_says(framework):
    work = Work(PUBLISHED.flop_per_mac, PUBLISHED.training_factor)
    # An extrapolation to tf32 is held by that to fp32 on some, and starts from other traffic there.
    for model, precision, phase in product(Models, ("fp32", "fp16"), ("training", "forward")):
        moved = {}
        rows = [row for row in measured_rates() if row.is_of(framework)]
        known = {row.hardware for row in rows if row.model in (model.path, "ResNet50")}
        for hardware in TIMED:
            time = sample_time(model, hardware, precision, phase, work, framework)
            if hardware.path in known or precision not in listed(hardware) or time is None:
                continue
            # TensorFlow's forward pass in fp16 is slow on the A100, so that in fp32 holds it on some, too.
            full = sample_time(model, hardware, "fp32", phase, work, framework)
            if precision == "fp16" and "fp32" in listed(hardware) and time == full:
                continue
            traffic = time.traffic * hardware.number("memory_bandwidth")
            moved.setdefault(round(traffic / model.number("activation_size"), 9), []).append(hardware.path)
        assert len(moved) <= 1, (model.path, precision, phase, moved)


# ---- The law ----------------------------------------------------------------------------------------------


def test_a_measured_rate_holds_at_its_batch_size_and_an_extrapolated_one_says_what_it_comes_from():
    assert rate(CLOUD.A100) == pytest.approx(2470)
    assert solved(CLOUD.A100).basis.startswith("measured: PyTorch")
    said = "extrapolated from the measured training of ResNet-50 on NVIDIA A100 80GB SXM"
    assert solved(CLOUD.H200).basis.startswith(said)
    # A TPU has no fp16.
    assert solved(CLOUD.TPU_v5p, "bf16").basis.startswith(said)
    assert rate(CLOUD.TPU_v5e, "bf16") < rate(CLOUD.TPU_v5p, "bf16")


def test_a_model_is_extrapolated_from_one_of_its_own_family():
    for model in (Models.GPT2_small, Models.ViT_B16):
        assert "of GPT-2 small, 1024 tokens on NVIDIA A100 40GB" in solved(CLOUD.H100, model=model).basis
    for model in (Models.ResNet18, Models.ResNet152):
        assert "of ResNet-50 on NVIDIA A100" in solved(CLOUD.H100, model=model).basis
    # What llm.c's author measured of PyTorch: 115,000 tokens a second.
    measured = solved(CLOUD.A100_40GB, "bf16", model=Models.GPT2_small, batch_size=32)
    assert measured.throughput.m_as("img/s") * 1024 == pytest.approx(115_000, rel=1e-3)
    assert measured.basis.startswith("measured with torch.compile and FlashAttention, by nobody")


def test_a_result_says_what_the_rate_it_rests_on_was_measured_with():
    said = "with torch.compile and FlashAttention, by nobody without."
    own = FED.replace(model=Models.GPT2_small, hardware=CLOUD.A100_40GB, batch_size=8)
    assert f"The GPU's time is measured {said}" in str(own.solve())
    neighbor = FED.replace(model=Models.ViT_B16, hardware=CLOUD.H100)
    assert f"on NVIDIA A100 40GB SXM at fp16 {said}" in str(neighbor.solve())
    assert "by nobody without" not in str(FED.replace(hardware=CLOUD.H100).solve())


def test_a_model_of_a_family_that_nobody_measured_gets_no_number():
    alone = Models.ViT_B16.replace(name="Mamba", family="state space")
    with pytest.raises(MissingValueError, match=r"Nobody measured a neighbor of Mamba \(state space\)"):
        BARE.solve(model=alone)
    without = type(alone)("Models", "Mine", "Mine", {k: f for k, f in alone.facts.items() if k != "family"})
    with pytest.raises(
        MissingValueError, match=r"of Mine \(its family is not known\).*Pass its rate, measured"
    ):
        BARE.solve(model=without)
    # Nor does the share of the peak that ResNet-50 reaches stand for a transformer's.
    bare = {k: f for k, f in Models.ViT_B16.facts.items() if k != "activation_size"}
    with pytest.raises(MissingValueError, match="Nobody measured a neighbor of ViT"):
        BARE.solve(model=type(alone)("Models", "Mine", "ViT", bare))
    # Who measured it passes the rate, and a walkthrough assumes an efficiency.
    given = BARE.solve(model=alone, hardware=Accelerator(CLOUD.A100, rate="100 img/s"))
    assert given.throughput.m_as("img/s") == pytest.approx(100)
    assert BARE.solve(model=alone, assumptions=TUTORIAL).throughput.m_as("img/s") > 0


@pytest.mark.parametrize(("framework", "law"), [("PyTorch", max), ("MXNet (20.12)", sum)])
def test_a_step_overlaps_its_launches_or_follows_them_as_its_framework_does(framework, law):
    one = FED.replace(hardware=Accelerator(CLOUD.V100, rate=framework), phase="forward")
    first, middle, large = (one.solve(batch_size=b) for b in (1, 32, 3200))
    launch, sample = (s.step_time.m_as("ms") for s in (first, large))
    sample /= 3200
    # A batch of one holds the work of one sample, and so does a large one its launches.
    works = 32 * sample if law is max else 31 * (sample - launch / 3200)
    assert middle.step_time.m_as("ms") == pytest.approx(law([launch, works]), rel=5e-3)
    # The accelerator waits while its work is launched.
    waits = (1 - middle.utilization) * middle.step_time.m_as("ms")
    wanted = launch - sample if law is sum else max(launch - works, 0)
    assert waits == pytest.approx(wanted, rel=5e-3)


def test_a_measured_rate_comes_out_at_the_batch_at_which_it_was_measured():
    for rate in measured_rates():
        if not launches_in_turn(rate.framework):
            continue
        own = Accelerator(entry_at("Hardware", rate.hardware), rate=rate.framework, precision=rate.precision)
        model, batch = entry_at("Models", rate.model), rate.batch_size or 256
        step = FED.solve(model=model, hardware=own, phase=rate.phase, batch_size=batch)
        assert step.throughput.m_as("img/s") == pytest.approx(rate.fact.number), rate


@pytest.mark.parametrize(("hardware", "published"), [(CLOUD.A100_40GB, 882), (CLOUD.A100, 1066)])
def test_naming_the_framework_makes_full_precision_no_worse(hardware, published):
    # It was 36 to 48 % too slow: a ratio of other kernels moved more bytes than twice as many.
    fast, named = (
        FED.solve(hardware=Accelerator(hardware, precision="tf32", rate=rate)).throughput.m_as("img/s")
        for rate in (None, "PyTorch (Lambda)")
    )
    assert abs(named / published - 1) <= abs(fast / published - 1) + 0.01


@pytest.mark.parametrize(("framework", "hardware", "precision", "milliseconds"), [
    ("PyTorch", CLOUD.V100, "fp16", 12.78),
    ("PyTorch", CLOUD.V100, "fp32", 10.37),
    ("PyTorch", CLOUD.T4, "fp16", 12.96),
    ("PyTorch", CLOUD.T4, "fp32", 10.7),
    ("PyTorch", CLOUD.A100, "tf32", 8.33),  # a precision that nobody measured on this host
    ("MXNet", CLOUD.A100, "fp16", 0.70),
    ("MXNet (20.12)", CLOUD.A100, "bf16", 2.15),
    ("MXNet (20.12)", CLOUD.V100, "fp16", 3.48),
    ("TensorFlow", CLOUD.A100_40GB, "tf32", 5.26),
    ("TensorFlow", CLOUD.A100_40GB, "bf16", 4.51),
    ("TensorFlow", CLOUD.V100, "fp32", 5.79),
    (None, CLOUD.H100, "fp16", 8.33),  # a host on which nobody measured
])  # fmt: skip
def test_launching_takes_what_was_measured_of_the_framework_the_host_and_the_precision(
    framework, hardware, precision, milliseconds
):
    software = {"hardware.rate": Framework(framework), "hardware.precision": precision}
    one = FED.replace(software, hardware=hardware, batch_size=1)
    forward, training = (one.solve(phase=phase).step_time.m_as("ms") for phase in ("forward", "training"))
    assert forward == pytest.approx(milliseconds)
    assert training == pytest.approx(PUBLISHED.launch_factor * milliseconds)
    # It lies between what was measured, and so does the number of launches of a training step.
    low, high = one.solve().ranges.throughput
    assert high / low > PUBLISHED.facts["launch_factor"].high / PUBLISHED.facts["launch_factor"].low


def test_a_launching_time_of_ones_own_is_taken_as_given():
    quick = PUBLISHED.replace(overhead_per_layer="0.1 ms")
    pipe = BARE.replace({"hardware.rate": "PyTorch"}, hardware=CLOUD.V100, batch_size=1, assumptions=quick)
    assert pipe.solve(phase="forward").step_time.m_as("ms") == pytest.approx(5)
    low, high = pipe.solve(phase="forward").ranges.throughput
    assert (high / low).m_as("") == pytest.approx((1 + PUBLISHED.model_error) ** 2)


def test_a_compiled_step_launches_once_and_that_of_a_tpu_is_compiled():
    fed = FED.replace(hardware=CLOUD.H100)
    small, large = (
        fed.solve({"hardware.rate": Framework(compiled=True)}, batch_size=batch) for batch in (64, 256)
    )
    assert small.throughput == large.throughput > 1.5 * fed.solve(batch_size=64).throughput
    one = fed.solve({"hardware.rate": Framework(compiled=True)}, batch_size=1).step_time.m_as("ms")
    assert one == pytest.approx(max(0.2556 * 8.33 / 12.78, 1000 / rate(CLOUD.H100)))
    tpu = fed.replace({"hardware.precision": "bf16"}, hardware=CLOUD.TPU_v5p, batch_size=1)
    assert (
        tpu.solve().throughput
        == tpu.solve({"hardware.rate": Framework(compiled=True)}).throughput
        > 1000 * Q_("1 img/s")
    )
    walkthrough = Pipeline(
        model=Models.ResNet50, hardware=Accelerator(CLOUD.A100, rate=Framework(compiled=True))
    )
    assert walkthrough.inputs["model"].step.overhead == pytest.approx(0.1e-3 + 0.015e-3)


def test_the_parts_of_a_step_add_up_to_it_and_training_resnet_50_is_mostly_memory_traffic():
    for batch in (1, 64, 256):
        found = solved(CLOUD.L4, batch_size=batch)
        parts = found.compute_time + found.memory_time + found.overhead_time
        assert parts.m_as("ms") == pytest.approx(found.latency.m_as("ms"))
    found = solved(CLOUD.A100)
    assert found.cause == "memory"
    assert (found.memory_time / found.latency).m_as("") == pytest.approx(0.777, abs=5e-3)


def test_a_result_says_that_its_rate_was_not_measured():
    assert BARE.solve().note == ""
    assert repr(BARE.solve(hardware=Hardware.Cloud.H200)).endswith(
        "The GPU's time is extrapolated from the measured training of ResNet-50 on NVIDIA A100 80GB "
        "SXM at fp16."
    )
    deep = Models.ResNet152
    facts = {name: fact for name, fact in deep.facts.items() if name != "activation_size"}
    assert BARE.solve(model=type(deep)(deep.kind, deep.path, deep.name, facts)).note == (
        "The GPU's time is assumed: peak x efficiency, for want of a measured rate."
    )
    assert BARE.solve(assumptions=TUTORIAL).note == ""


@pytest.mark.parametrize("batch", [1, 8, 61, 62, 256])
def test_an_accelerator_that_waits_for_launches_is_not_busy(batch):
    fed = FED.replace(batch_size=batch)
    step = fed.solve()
    # A sample takes 1/2470 s of the accelerator, and launching a step 25 ms of the host.
    work, launch = 1000 * batch / 2470, 3 * 8.33
    assert step.utilization == pytest.approx(work / max(work, launch))
    assert step.stall == pytest.approx(1 - step.utilization)
    assert step.bottleneck == "accelerator"
    assert ("for the rest it waits for launches" in fed.explain()) == (work < launch)


def test_where_busy_stands_beside_the_accelerators_time_it_says_what_of_it_counts():
    starved = BARE.replace(batch_size=32)
    step = starved.solve()
    said = "Busy counts 12.96 ms of the GPU's 24.99 ms: for the rest it waits for launches."
    assert f"A step of {step.step_time.magnitude:.2f} ms" in repr(step)
    assert step.utilization == pytest.approx(12.96 / step.step_time.m_as("ms"), abs=1e-3)
    for shown in (repr(step), starved.explain(), stage_bars(step).caption, step_bars(step)):
        assert said in shown.replace("&#x27;", "'")
    several = "The GPU's time includes its waits for launches, which do not count as busy."
    assert several in repr(starved.sweep(workers=[8, 9]))
    # Where it waits for nothing else than its input there is nothing to say.
    assert "Busy" not in repr(starved.solve(batch_size=256))
    waiting = starved.solve({"hardware.host.time": "3 ms", "link.overlaps": False}, link=Links.PCIe4_x16).note
    assert "for the rest it waits for launches, the copy and the training loop." in waiting


def test_the_walkthroughs_overhead_counts_as_work():
    assert BARE.solve(batch_size=1, assumptions=TUTORIAL).utilization == 1


def test_a_faster_accelerator_launches_no_faster():
    assert "twice as fast" not in FED.replace(batch_size=1).explain()
