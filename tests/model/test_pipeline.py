"""The rule of the pipeline: stages on one resource add, stages on different resources overlap."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Datasets,
    Hardware,
    InputError,
    Links,
    MissingValueError,
    Models,
    Pipeline,
    Storage,
    UnknownNameError,
)
from starvelab.model.stages import STAGES
from starvelab.model.stages.step_parts import launch_wait
from tests.cases import KITS, WALL
from tests.strategies import batch_sizes, pipelines, worker_counts

RESOURCE_OF = {stage.NAME: stage.RESOURCE.name for stage in STAGES}
FULL = WALL.replace(storage=Storage.NVMe_Gen4, link=Links.PCIe4_x16, device_input_time="0.01 ms")
NEVER = 1 + 1e-9  # what rounding may add


def ms(quantity):
    return quantity.m_as("ms")


def refused(error, **fields):
    with pytest.raises(error) as caught:
        WALL.solve(**fields)
    return str(caught.value)


# ---- Invariants --------------------------------------------------------------------------------------------


@given(pipelines())
def test_utilization_and_stall_are_shares_that_add_up_to_the_step(pipe):
    step = pipe.solve()
    assert 0 < step.utilization <= 1
    assert step.utilization + step.stall == pytest.approx(1, abs=1e-12)


@given(pipelines())
def test_utilization_is_the_accelerators_own_time_over_the_step(pipe):
    step = pipe.solve()
    own = ms(step.resource_times["accelerator"]) - ms(step.stage_times.get("serialized copy", Q_("0 ms")))
    own -= 1e3 * launch_wait(pipe.inputs["model"], pipe.batch_size)
    assert step.utilization * ms(step.step_time) == pytest.approx(own)
    assert step.slowdown * own == pytest.approx(ms(step.step_time))


@given(pipelines())
def test_throughput_times_step_time_is_a_batch_for_each_accelerator(pipe):
    step = pipe.solve()
    together = pipe.batch_size * pipe.accelerators
    assert (step.throughput * step.step_time).m_as("img") == pytest.approx(together)


@given(pipelines())
def test_the_stages_of_a_resource_add_up_to_its_time(pipe):
    step = pipe.solve()
    for resource, time in step.resource_times.items():
        stages = [ms(t) for stage, t in step.stage_times.items() if RESOURCE_OF[stage] == resource]
        assert ms(time) == pytest.approx(sum(stages))


@given(pipelines(overlap=st.just(True)))
def test_the_step_is_as_long_as_its_slowest_resource_which_binds(pipe):
    step = pipe.solve()
    assert ms(step.step_time) == max(ms(t) for t in step.resource_times.values())
    assert ms(step.resource_times[step.bottleneck]) == pytest.approx(ms(step.step_time), rel=1e-11)
    assert step.headroom[step.bottleneck] == pytest.approx(0, abs=1e-11)


@given(pipelines(overlap=st.just(True)))
def test_what_binds_next_is_the_slowest_of_the_others(pipe):
    step = pipe.solve()
    others = {name: ms(t) for name, t in step.resource_times.items() if name != step.bottleneck}
    assert others[step.next_bottleneck] == pytest.approx(max(others.values()), rel=1e-11)


@given(pipelines())
def test_overlap_is_never_slower_than_one_after_the_other(pipe):
    assert ms(pipe.solve(overlap=True).step_time) <= ms(pipe.solve(overlap=False).step_time) * NEVER


@given(pipelines(overlap=st.just(False)))
def test_without_overlap_the_step_is_the_sum_of_all_stages(pipe):
    step = pipe.solve()
    assert ms(step.step_time) == pytest.approx(sum(ms(t) for t in step.stage_times.values()))


@given(pipelines())
def test_an_idle_resource_has_the_headroom_that_its_time_leaves(pipe):
    step = pipe.solve()
    for resource, share in step.headroom.items():
        assert 0 <= share <= 1
        # Only a drive that is spared every read has nothing to do.
        assert share < 1 or (resource, pipe.cached_fraction) == ("storage", 1)
        assert (1 - share) * ms(step.step_time) == pytest.approx(ms(step.resource_times[resource]))


@given(pipelines(cpu_throughput=st.none()), st.integers(1, 50))
def test_adding_workers_never_hurts(pipe, more):
    assert ms(pipe.solve(workers=pipe.workers + more).step_time) <= ms(pipe.solve().step_time) * NEVER


@given(pipelines(overlap=st.just(True)), st.floats(1, 100))
def test_speeding_up_a_stage_that_does_not_bind_changes_nothing(pipe, times):
    step = pipe.solve()
    rate = pipe.assumptions.worker_rate if pipe.worker_rate is None else pipe.worker_rate
    cpu = {"worker_rate": rate * times}
    if pipe.cpu_throughput is not None:
        cpu = {"cpu_throughput": pipe.cpu_throughput * times}
    elif pipe.cpu_time is not None:
        cpu = {"cpu_time": pipe.cpu_time / times}
    faster = {
        "CPU": cpu,
        "link": {"link": Q_(1000 * times, "GB/s")},
        "storage": {"storage": Q_(1000 * times, "GB/s")},
        "decoder": {"decoder_time": None},
    }
    changes = [faster[name] for name in step.resource_times if name not in (step.bottleneck, "accelerator")]
    assume(changes)
    for change in changes:
        assert ms(pipe.solve(**change).step_time) == pytest.approx(ms(step.step_time), rel=1e-11)


@given(pipelines(), st.integers(2, 8))
def test_a_larger_batch_never_lowers_the_throughput(pipe, times):
    # Every cost is a straight line or the larger of two, so a larger batch only spreads what is fixed.
    larger = pipe.solve(batch_size=pipe.batch_size * times)
    assert larger.throughput.m_as("img/s") * NEVER >= pipe.solve().throughput.m_as("img/s")


@given(pipelines(), st.sampled_from(["B", "KB", "MB", "MiB", "bit"]))
def test_the_unit_in_which_a_size_is_given_changes_nothing(pipe, unit):
    step = pipe.solve()
    again = pipe.solve(sample_size=pipe.size.to(unit), transfer_size=pipe.transferred.to(unit))
    assert ms(again.step_time) == pytest.approx(ms(step.step_time))
    assert again.actual_demand.m_as("GB/s") == pytest.approx(step.actual_demand.m_as("GB/s"))


@given(pipelines())
def test_what_is_read_is_what_the_ceiling_would_read_times_the_utilization(pipe):
    step = pipe.solve()
    ceiling = step.demand_at_ceiling.m_as("GB/s")
    assert step.actual_demand.m_as("GB/s") == pytest.approx(ceiling * step.utilization)


@given(
    pipelines(),
    st.lists(batch_sizes, min_size=1, max_size=4),
    st.lists(worker_counts, min_size=1, max_size=3),
)
def test_an_array_of_points_is_solved_like_each_of_them(pipe, batches, workers):
    batch, count = np.array(batches)[:, None], np.array(workers)
    grid = pipe.solve(batch_size=batch, workers=count)
    for i, b in enumerate(batches):
        for j, w in enumerate(workers):
            one = pipe.solve(batch_size=b, workers=w)
            assert ms(grid.step_time)[i, j] == ms(one.step_time)
            assert grid.utilization[i, j] == one.utilization
            assert (grid.bottleneck[i, j], grid.next_bottleneck[i, j]) == (
                one.bottleneck,
                one.next_bottleneck,
            )
            assert grid.cause[i, j] == one.cause
            assert bool(grid.feasible[i, j]) == one.feasible


def shapes_of(step):
    yield from (np.shape(t.magnitude) for t in (*step.stage_times.values(), *step.resource_times.values()))
    for name in ("step_time", "throughput", "demand_at_ceiling", "actual_demand"):
        yield np.shape(getattr(step, name).magnitude)
    for name in ("utilization", "stall", "slowdown", "bottleneck", "next_bottleneck", "cause", "feasible"):
        yield np.shape(getattr(step, name))
    yield from (np.shape(share) for share in step.headroom.values())


@pytest.mark.parametrize(
    "swept",
    [
        {"batch_size": [32, 64]},
        {"workers": np.array([[1], [2], [3]])},
        {"batch_size": np.array([[1], [2]]), "workers": [1, 2, 3]},
        {"sample_size": Q_([1, 2], "MB")},
        {"sample_size": Q_([1, 2], "MB"), "worker_rate": "100 img/s", "storage": None, "link": None},
        {"worker_rate": Q_([1, 2], "img/s")},
        {"cpu_throughput": Q_([1, 2, 3], "GB/s")},
        {"cpu_throughput": "2 GB/s", "workers": [1, 2, 3]},
        {"storage": Q_([1, 7], "GB/s")},
        {"link": Q_([16, 32], "GB/s")},
        {"transfer_size": Q_([150528, 602112], "B")},
        {"device_input_time": Q_([0, 0.1], "ms")},
        {"accelerator_rate": Q_([1000, 2000], "img/s")},
        {"step_overhead": Q_([0, 1], "ms")},
        {"cpu_time": Q_([1, 2], "ms"), "cores": [[2], [4], [8]]},
        {"read_wait": Q_([0, 2], "ms"), "handover_time": Q_([1, 0], "ms")},
        {"accelerators": [1, 2, 8]},
        {"link": Q_([16, 32], "GB/s"), "copy_overlaps": False},
        {"accelerators": [1, 8], "model": None, "hardware": None, "accelerator_rate": "1000 img/s"},
        {"batch_size": np.arange(1, 1)},
    ],
    ids=str,
)
def test_every_result_has_the_shape_of_what_was_swept(swept):
    numbers = (getattr(value, "magnitude", value) for value in swept.values())
    shape = np.broadcast_shapes(*(np.shape(n) for n in numbers if not isinstance(n, str | bool | None)))
    assert set(shapes_of(FULL.solve(**swept))) == {shape}


def test_a_single_point_gives_plain_numbers_and_words():
    step = FULL.solve()
    assert {type(step.utilization), type(step.stall), type(step.slowdown)} == {float}
    assert {type(step.bottleneck), type(step.next_bottleneck), type(step.cause)} == {str}
    assert type(step.feasible) is bool
    assert {type(t.magnitude) for t in step.stage_times.values()} == {float}


# ---- Stages and resources ----------------------------------------------------------------------------------


def test_only_what_is_modeled_has_a_time():
    assert list(WALL.solve().stage_times) == ["transform", "model"]
    assert list(WALL.solve().resource_times) == ["CPU", "accelerator"]


def test_a_full_pipeline_has_five_stages_on_four_resources_in_the_order_of_the_flow():
    step = FULL.solve()
    assert list(step.stage_times) == ["read", "transform", "copy", "input on device", "model"]
    assert list(step.resource_times) == ["storage", "CPU", "link", "accelerator"]


def test_input_work_on_the_accelerator_adds_to_the_models_step():
    step = WALL.solve(device_input_time="0.1 ms")
    assert ms(step.resource_times["accelerator"]) == pytest.approx(11.743205 + 25.6, abs=1e-6)


def test_a_pipeline_behind_8_workers_reads_2_gb_per_second_although_the_ceiling_asks_for_10_9():
    step = WALL.solve()
    assert step.actual_demand.m_as("GB/s") == pytest.approx(2)
    assert step.demand_at_ceiling.m_as("GB/s") == pytest.approx(10.8999, abs=1e-4)


def test_a_tie_is_no_cpu_bottleneck():
    step = WALL.solve(batch_size=64, worker_rate=None)
    own = ms(step.resource_times["accelerator"])
    tied = WALL.solve(batch_size=64, cpu_throughput=Q_(64 * 500 / own, "MB/s"))
    assert tied.bottleneck == "accelerator"
    assert tied.utilization == pytest.approx(1, abs=1e-12)


def test_rounding_does_not_turn_a_tie_into_a_bottleneck():
    # 2790 images a second on both sides, but by way of bytes the float comes out one bit longer.
    h100 = WALL.replace(hardware=Hardware.Cloud.H100, assumptions=PUBLISHED)
    step = h100.solve(
        framework="PyTorch (Lambda)", sample_size="3 KB", cpu_throughput=Q_(3 * 2790 / 1000, "MB/s")
    )
    assert step.resource_times["CPU"] > step.resource_times["accelerator"]
    assert step.bottleneck == "accelerator"


def test_a_hundredth_of_a_percent_more_work_than_a_tie_is_a_bottleneck():
    own = ms(WALL.solve(batch_size=64).resource_times["accelerator"])
    assert WALL.solve(batch_size=64, cpu_throughput=Q_(64 * 500 / own * 0.9999, "MB/s")).bottleneck == "CPU"


@pytest.mark.parametrize("assumptions", [TUTORIAL, PUBLISHED], ids=["TUTORIAL", "PUBLISHED"])
def test_decoded_bytes_cross_the_link_whatever_the_size_of_the_file(assumptions):
    linked = WALL.replace(link="32 GB/s", assumptions=assumptions)
    # 256 images of 224 x 224 x 3 numbers of 4 bytes at 32 GB/s.
    for size in ("100 KB", "500 KB", "5 MB"):
        copied = linked.solve(sample_size=size).stage_times["copy"]
        assert ms(copied) == pytest.approx(256 * 602112 / 32e9 * 1e3)
    assert ms(linked.solve(transfer_size="500 KB").stage_times["copy"]) == pytest.approx(4.0)


def test_a_decoder_works_beside_the_kernels_and_kernels_that_decode_take_turns_with_them():
    # 512 images of 0.12765 ms are 65.36 ms; the training step of 512 images is 55.38 ms under TUTORIAL.
    fed = WALL.replace(batch_size=512, phase="training", cpu_throughput="50 GB/s")
    beside, inside = fed.solve(decoder_time="0.12765 ms"), fed.solve(device_input_time="0.12765 ms")
    assert ms(beside.step_time) == pytest.approx(65.357, abs=1e-3)
    assert beside.bottleneck == "decoder"
    assert beside.throughput.m_as("img/s") == pytest.approx(7834, abs=0.5)
    assert ms(inside.step_time) == pytest.approx(65.357 + 55.384, abs=1e-3)
    assert inside.bottleneck == "accelerator"


def test_fixed_overhead_is_named_as_the_cause_of_small_steps():
    assert WALL.solve(batch_size=22).cause == "overhead"
    assert WALL.solve(batch_size=190).cause == "overhead"
    assert WALL.solve(batch_size=191).cause == "compute"


def test_input_work_that_takes_most_of_the_accelerators_step_is_named_as_its_cause():
    assert WALL.solve(device_input_time="0.1 ms").cause == "input"
    assert WALL.solve(device_input_time="0.001 ms").cause == "compute"


def test_a_batch_that_does_not_fit_is_flagged_with_the_reason_and_solved_all_the_same():
    step = WALL.solve(batch_size=4096, phase="training")
    assert not step.feasible
    assert step.infeasible_reason == (
        "The step needs about 179.8 GB of memory, and NVIDIA A100 80GB SXM has 80 GB. Use a batch of at "
        "most 1817."
    )
    assert ms(step.step_time) > 0


def test_in_a_sweep_only_the_batches_that_do_not_fit_are_flagged():
    step = WALL.solve(batch_size=[1817, 1818], phase="training")
    assert step.feasible.tolist() == [True, False]


def test_the_times_behind_published_assumptions_are_the_measured_ones():
    step = WALL.solve(assumptions=PUBLISHED)
    assert step.basis.startswith("measured: PyTorch, NVIDIA/DeepLearningExamples")
    assert ms(step.resource_times["accelerator"]) == pytest.approx(256 / 2470 * 1e3)
    assert WALL.solve().basis == "peak x efficiency"


def test_kits19_on_an_a100_takes_0_636_s_and_wants_1_6_gb_per_second():
    step = KITS.solve()
    assert ms(step.resource_times["accelerator"]) == pytest.approx(636, abs=0.1)
    assert step.demand_at_ceiling.m_as("GB/s") == pytest.approx(1.6135, abs=1e-3)
    assert step.bottleneck == "accelerator"
    assert KITS.solve(storage=Storage.EBS_gp3_max).bottleneck == "storage"


# Two values of each field that make different pipelines, on top of one that has a drive and a link.
TWO = {
    "model": (Models.ResNet18, Models.ViT_B16),
    "hardware": (Hardware.Cloud.H100, Hardware.Cloud.V100),
    "dataset": (Datasets.ImageNet, Datasets.ImageNet.replace(sample_size="5 MB", preparation_time="20 ms")),
    "workers": (2, 3),
    "sample_size": ("5 MB", "50 KB"),
    "worker_rate": ("10 img/s", "20 img/s"),
    "cpu_throughput": ("10 img/s", "20 img/s"),
    "storage": (Storage.EBS_gp3, Storage.NVMe_Gen4),
    "drives": (2, 3),
    "samples_per_request": (2, 3),
    "cached_fraction": (0.2, 0.4),
    "link": (Links.PCIe3_x16, Links.PCIe5_x16),
    "transfer_size": ("1 KB", "2 KB"),
    "dtype": ("uint8", "float16"),
    "pinned": (True, False),
    "copy_overlaps": (True, False),
    "device_input_time": ("1 ms", "2 ms"),
    "accelerator_rate": ("100 img/s", "200 img/s"),
    "framework": ("MXNet", "PyTorch (Lambda)"),
    "step_overhead": ("1 ms", "2 ms"),
    "host_time": ("1 ms", "2 ms"),
    "loader": ("pool", "processes"),
    "cpu_time": ("1 ms", "2 ms"),
    "cores": (4, 6),
    "read_wait": ("1 ms", "2 ms"),
    "handover_time": ("1 ms", "2 ms"),
    "accelerators": (1, 2),
    "precision": ("fp16", "tf32"),
    "phase": ("forward", "training"),
}
# What the docstring of a pipeline says: the first goes before the others.
BEFORE = {
    "cpu_throughput": {"workers", "worker_rate", "loader"},
    "accelerator_rate": {"model", "precision", "phase"},
    "worker_rate": {"loader"},
    "cpu_time": {"loader"},
}


@pytest.mark.parametrize("first", TWO)
def test_no_field_takes_another_one_away_without_a_word(first):
    whole = FULL.replace(assumptions=PUBLISHED, device_input_time=None)
    silent = set()
    for other in TWO.keys() - {first}:
        try:
            costs = [whole.replace(**{first: TWO[first][0], other: value}).costs() for value in TWO[other]]
        except InputError:
            continue  # that is a word
        if repr(costs[0]) == repr(costs[1]):
            silent.add(other)
    assert silent == BEFORE.get(first, set())


# ---- What was measured -------------------------------------------------------------------------------------

KNOWN = Pipeline(accelerator_rate="1000 img/s", batch_size=100, cpu_time="2 ms", workers=4)


def test_a_measured_rate_needs_neither_model_nor_hardware():
    step = KNOWN.solve()
    assert ms(step.resource_times["accelerator"]) == pytest.approx(100)
    assert ms(step.resource_times["CPU"]) == pytest.approx(50)
    assert (step.bottleneck, step.utilization, step.feasible) == ("accelerator", 1.0, True)
    assert (step.cause, step.basis) == ("model", "measured: given as accelerator_rate")


def test_a_rate_that_is_given_goes_before_the_catalogue_and_before_the_formula():
    for assumed in (TUTORIAL, PUBLISHED):
        step = WALL.solve(accelerator_rate="1000 img/s", assumptions=assumed)
        assert ms(step.stage_times["model"]) == pytest.approx(256)
        assert step.basis == "measured: given as accelerator_rate"


def test_a_batch_that_does_not_fit_is_flagged_whatever_its_rate():
    assert not WALL.solve(accelerator_rate="1000 img/s", batch_size=4096, phase="training").feasible


@pytest.mark.parametrize("assumed", [TUTORIAL, PUBLISHED], ids=lambda a: a.name)
def test_a_framework_names_the_measured_rate_to_take(assumed):
    step = WALL.solve(framework="MXNet", phase="training", assumptions=assumed)
    assert ms(step.stage_times["model"]) == pytest.approx(256 / 3410.52 * 1e3)
    assert step.basis.startswith("measured: MXNet, NVIDIA/DeepLearningExamples")


def test_the_cost_of_a_step_comes_on_top_and_binds_with_the_accelerator():
    step = KNOWN.solve(step_overhead="25 ms")
    assert ms(step.resource_times["accelerator"]) == pytest.approx(125)
    assert step.throughput.m_as("img/s") == pytest.approx(800)
    assert step.utilization == 1
    assert KNOWN.solve(step_overhead="101 ms").cause == "overhead"
    assert WALL.solve(step_overhead="1 ms", batch_size=256).cause == "compute"
    assert WALL.solve(step_overhead="2 ms", batch_size=256).cause == "overhead"


def test_the_rate_at_which_an_accelerator_decodes_is_what_decoding_on_it_costs():
    rate = Hardware.Cloud.A100.image_decode_rate
    step = KNOWN.solve(device_input_time=Q_("1 img") / rate)
    assert ms(step.stage_times["input on device"]) == pytest.approx(12.765, abs=5e-4)


def test_workers_wait_and_hand_over_and_have_only_so_many_cores():
    assert ms(KNOWN.solve(handover_time="20 ms").stage_times["transform"]) == pytest.approx(55)
    assert ms(KNOWN.solve(read_wait="6 ms").stage_times["transform"]) == pytest.approx(200)
    assert ms(KNOWN.solve(workers=64, cores=2).stage_times["transform"]) == pytest.approx(100)
    assert KNOWN.solve(read_wait="6 ms").bottleneck == "CPU"


def test_accelerators_share_cores_and_drive_and_each_has_its_link():
    one = FULL.solve()
    eight = FULL.solve(accelerators=8)
    for resource, times in (("storage", 8), ("CPU", 8), ("link", 1), ("accelerator", 1)):
        assert ms(eight.resource_times[resource]) == pytest.approx(times * ms(one.resource_times[resource]))
    assert eight.demand_at_ceiling.m_as("GB/s") == pytest.approx(8 * one.demand_at_ceiling.m_as("GB/s"))


def test_eight_accelerators_that_are_fed_do_eight_times_the_work_of_one():
    assert KNOWN.solve(accelerators=8, workers=32).throughput.m_as("img/s") == pytest.approx(8000)


def test_a_starved_host_prepares_no_more_for_eight_accelerators_than_for_one():
    one, eight = (WALL.solve(accelerators=n) for n in (1, 8))
    assert eight.throughput.m_as("img/s") == pytest.approx(one.throughput.m_as("img/s"))
    assert eight.utilization == pytest.approx(one.utilization / 8)


def test_a_copy_that_does_not_overlap_makes_the_accelerator_wait():
    step = KNOWN.solve(link="1 GB/s", transfer_size="100 KB", copy_overlaps=False)
    assert list(step.resource_times) == ["CPU", "accelerator"]
    assert ms(step.stage_times["serialized copy"]) == pytest.approx(10)
    assert ms(step.step_time) == pytest.approx(110)
    assert (step.bottleneck, step.headroom["accelerator"]) == ("accelerator", 0)
    assert step.utilization == pytest.approx(100 / 110)
    assert step.stall == pytest.approx(10 / 110)


@given(pipelines(overlap=st.just(True)))
def test_overlapping_the_copy_never_hurts(pipe):
    apart, in_turn = (pipe.solve(copy_overlaps=overlaps) for overlaps in (True, False))
    assert ms(apart.step_time) <= ms(in_turn.step_time) * NEVER


@given(pipelines(cpu_throughput=st.none()), st.integers(1, 64))
def test_more_cores_never_hurt(pipe, cores):
    fewer, more = (ms(pipe.solve(cores=n).step_time) for n in (cores, cores + 1))
    assert more <= fewer * NEVER


@given(pipelines(cpu_throughput=st.none(), assumptions=st.just(TUTORIAL)))
def test_where_workers_do_not_crowd_a_host_as_many_cores_as_workers_are_enough(pipe):
    assert ms(pipe.solve(cores=pipe.workers).step_time) == ms(pipe.solve(cores=None).step_time)


@given(pipelines(), st.integers(2, 16))
def test_more_accelerators_never_lower_the_throughput_and_never_raise_it_more_than_in_number(pipe, times):
    many = pipe.solve(accelerators=pipe.accelerators * times).throughput.m_as("img/s")
    few = pipe.solve().throughput.m_as("img/s")
    assert few / NEVER <= many <= times * few * NEVER


# ---- Fields ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sample_size", "5 MB"),
        ("transfer_size", "1 MB"),
        ("worker_rate", "100 img/s"),
        ("cpu_throughput", "2 GB/s"),
        ("storage", "7 GB/s"),
        ("link", "32 GB/s"),
        ("device_input_time", "0.1 ms"),
        ("accelerator_rate", "2470 img/s"),
        ("step_overhead", "1 ms"),
        ("cpu_time", "2 ms"),
        ("read_wait", "1 ms"),
        ("handover_time", "20 ms"),
    ],
)
def test_a_text_becomes_a_quantity_in_every_field_that_has_a_unit(name, text):
    assert getattr(WALL.replace(**{name: text}), name) == Q_(text)


def test_changing_a_pipeline_leaves_the_first_as_it_was():
    assert WALL.replace(workers=16).workers == 16
    assert WALL.workers == 8


def test_a_pipeline_shows_its_fields_in_one_line():
    assert repr(FULL.replace(batch_size=64, sample_size="5 MB", assumptions=PUBLISHED)) == (
        "Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=64, sample_size=5 MB, "
        "storage=Storage.NVMe_Gen4, link=Links.PCIe4_x16, device_input_time=0.01 ms, assumptions=PUBLISHED)"
    )


def test_a_step_shows_what_binds_and_how_idle_the_others_are():
    text = repr(WALL.solve())
    assert text.startswith("A step of 64 ms, 4000 img/s: the CPU binds, and the accelerator is busy 18.3 %\n")
    assert "accelerator" in text
    assert "81.7 %" in text
    assert "<caption>A step of 64 ms" in WALL.solve()._repr_html_()


def test_a_sweep_of_steps_shows_its_shape_instead_of_a_million_figures():
    many = WALL.solve(batch_size=np.arange(1, 1001))
    assert repr(many).startswith("1000 steps, an array of shape (1000,)")
    assert len(repr(many)) < 2000


@pytest.mark.parametrize("roundtrip", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_pipelines_and_steps_survive_copies_and_pickles(roundtrip):
    assert roundtrip(FULL) == FULL
    step = FULL.solve()
    again = roundtrip(step)
    assert again == step
    assert again.step_time.units == step.step_time.units


def test_equal_pipelines_are_equal_and_hash_alike():
    same = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    assert same == WALL
    assert hash(same) == hash(WALL)
    assert same != WALL.replace(workers=9)


# ---- Bad input ---------------------------------------------------------------------------------------------

BARE = '{name} needs a unit, got the bare int 5. Write for example Q_(5, "{unit}").'
RATE = (
    "{name} must be a rate in samples or in bytes, got {came}. "
    'Write for example Q_("100 img/s") or Q_("250 MB/s").'
)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("sample_size", "KB"),
        ("transfer_size", "KB"),
        ("device_input_time", "ms"),
        ("storage", "GB/s"),
        ("link", "GB/s"),
    ],
)
def test_a_bare_number_is_refused_and_not_given_a_unit(name, unit):
    assert refused(InputError, **{name: 5}) == BARE.format(name=name, unit=unit)


@pytest.mark.parametrize("name", ["worker_rate", "cpu_throughput"])
def test_a_rate_of_preparing_counts_samples_or_bytes_and_nothing_else(name):
    assert refused(InputError, **{name: 5}) == RATE.format(name=name, came="5")
    assert refused(InputError, **{name: "5 ms"}) == RATE.format(name=name, came="5 ms")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sample_size": "5 ms"}, "sample_size must be convertible to KB, got 5 ms. Check what it counts."),
        (
            {"transfer_size": "5 GB/s"},
            "transfer_size must be convertible to KB, got 5 GB/s. Check what it counts.",
        ),
        ({"storage": "5 GB"}, "storage must be convertible to GB/s, got 5 GB. Check what it counts."),
        ({"link": "5 img/s"}, "link must be convertible to GB/s, got 5 img/s. Check what it counts."),
        (
            {"device_input_time": "5 KB"},
            "device_input_time must be convertible to ms, got 5 KB. Check what it counts.",
        ),
    ],
)
def test_a_figure_of_the_wrong_dimension_is_refused(fields, message):
    assert refused(InputError, **fields) == message


@pytest.mark.parametrize("figure", [-1, 0, float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("sample_size", "KB"),
        ("transfer_size", "KB"),
        ("storage", "GB/s"),
        ("link", "GB/s"),
        ("worker_rate", "MB/s"),
        ("worker_rate", "img/s"),
        ("cpu_throughput", "GB/s"),
    ],
)
def test_negative_zero_nan_and_infinite_figures_are_refused(name, unit, figure):
    message = f"{name} must be finite and positive, got {figure:g} {unit}. Check the value and its sign."
    assert refused(InputError, **{name: Q_(figure, unit)}) == message


def test_input_work_on_the_accelerator_may_be_nothing_but_not_less():
    assert WALL.solve(device_input_time="0 ms") is not None
    message = refused(InputError, device_input_time="-1 ms")
    assert (
        message
        == "device_input_time must be finite and not negative, got -1 ms. Check the value and its sign."
    )


@pytest.mark.parametrize("name", ["batch_size", "workers", "accelerators"])
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (2.5, "must be a whole number, got 2.5. Round it to the one you mean."),
        (True, "must be a whole number, got True. Pass an int such as 256."),
        ("64", "must be a whole number, got '64'. Pass an int such as 256."),
        (None, "must be a whole number, got None. Pass an int such as 256."),
        (0, "must be finite and positive, got 0. Check the value and its sign."),
        (-256, "must be finite and positive, got -256. Check the value and its sign."),
        (float("nan"), "must be finite and positive, got nan. Check the value and its sign."),
        ([8, 2.5], "must be a whole number, got 2.5. Round it to the one you mean."),
    ],
)
def test_a_count_that_is_no_whole_number_of_at_least_one_is_refused(name, value, problem):
    assert refused(InputError, **{name: value}) == f"{name} {problem}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"model": "ResNet50"},
            "model must be an entry of Models, got 'ResNet50'. Pass for example Models.ResNet50.",
        ),
        (
            {"hardware": Models.ResNet50},
            "hardware must be an entry of Hardware, got Models.ResNet50. Pass for example "
            "Hardware.Cloud.A100.",
        ),
        (
            {"storage": Models.ResNet50},
            "storage must be an entry of Storage or Hardware or a bandwidth, got Models.ResNet50. "
            'Pass storage=Storage.NVMe_Gen4 or bandwidth=Q_("7 GB/s").',
        ),
        (
            {"link": "32 GB/s", "transfer_size": "600 KB", "dtype": "uint8"},
            "The bytes of a sample on the link are transfer_size, or follow from dtype, got both. Pass one "
            "of them.",
        ),
        (
            {"link": Storage.HDD},
            "link must be an entry of Links or Hardware or a bandwidth, got Storage.HDD. "
            'Pass link=Links.PCIe4_x16 or Q_("32 GB/s").',
        ),
        (
            {"sample_size": Datasets.KiTS19},
            "sample_size must be a quantity, got Datasets.KiTS19. Pass one of its values: "
            "Datasets.KiTS19.<name>.",
        ),
        (
            {"assumptions": "PUBLISHED"},
            "assumptions must be TUTORIAL, PUBLISHED or your own, got 'PUBLISHED'. "
            "Pass for example assumptions=PUBLISHED, without quotes.",
        ),
        (
            {"phase": "backward"},
            "phase must be one of forward, training, got 'backward'. Pass one of these.",
        ),
        (
            {"precision": "fp8"},
            "precision must be one of fp32, tf32, bf16, fp16, got 'fp8'. Pass one of these.",
        ),
    ],
)
def test_a_field_that_is_not_what_it_should_be_says_what_to_pass(fields, message):
    assert refused(InputError, **fields) == message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"model": None},
            "The accelerator's time comes from model and hardware, or from a measured accelerator_rate, got "
            "no model. Pass model=Models.ResNet50, hardware=Hardware.Cloud.A100, or "
            'accelerator_rate="2470 img/s".',
        ),
        (
            {"cpu_throughput": "2 GB/s", "read_wait": "1 ms"},
            "read_wait goes with workers, got it with cpu_throughput. Pass workers=... instead.",
        ),
        (
            {"cpu_time": "2 ms", "worker_rate": "100 img/s"},
            "One worker's speed is worker_rate or cpu_time, got both. Pass one of them, None for the other.",
        ),
        (
            {"framework": "MXNet", "accelerator_rate": "1000 img/s"},
            "framework names a measured rate of the catalogue, got 'MXNet' beside accelerator_rate. Pass one "
            "of them.",
        ),
        (
            {"accelerator_rate": 2470},
            'accelerator_rate needs a unit, got the bare int 2470. Write for example Q_(2470, "img/s").',
        ),
        (
            {"accelerator_rate": "2470 MB/s"},
            "accelerator_rate must be convertible to img/s, got 2470 MB/s. Check what it counts.",
        ),
        (
            {"step_overhead": "-1 ms"},
            "step_overhead must be finite and not negative, got -1 ms. Check the value and its sign.",
        ),
        ({"cores": 0}, "cores must be finite and positive, got 0. Check the value and its sign."),
        (
            {"pinned": False},
            "pinned=False describes a copy over a link, got it without a link. Pass link=Links.PCIe4_x16 as "
            "well, or leave pinned out.",
        ),
    ],
)
def test_a_measured_figure_that_cannot_be_meant_is_refused(fields, message):
    assert refused(InputError, **fields) == message


def test_neither_model_nor_hardware_nor_rate_is_no_accelerator():
    with pytest.raises(InputError, match="got no model and no hardware"):
        Pipeline()


def test_a_framework_that_nobody_measured_is_refused_with_those_that_were():
    assert refused(MissingValueError, framework="Caffe", phase="training") == (
        "No rate of ResNet-50 on NVIDIA A100 80GB SXM was measured in 'Caffe', or can be extrapolated at "
        "fp16, training. ResNet-50 was measured in MXNet, MXNet (20.12), PyTorch, PyTorch (Lambda v2), "
        "PyTorch (Lambda), TensorFlow. Pass one of these, or your own accelerator_rate."
    )


def test_shapes_that_do_not_go_together_are_refused_by_their_fields():
    assert refused(InputError, batch_size=[1, 2], workers=[1, 2, 3]) == (
        "Swept fields must have shapes that broadcast, got batch_size of shape (2,), workers of shape (3,). "
        "Use sweep(...) for every combination."
    )


def test_an_unknown_field_says_which_was_meant():
    assert (
        refused(UnknownNameError, batchsize=3)
        == "A pipeline has no field 'batchsize'. Did you mean batch_size?"
    )
    assert refused(UnknownNameError, zzz=3).startswith(
        "A pipeline has no field 'zzz'. There is: model, hardware, "
    )
    assert refused(UnknownNameError, requests_in_flight=1) == (
        "A pipeline has no field 'requests_in_flight': it is one of its assumptions. "
        "Pass assumptions=PUBLISHED.replace(requests_in_flight=...)."
    )


def test_where_requests_limit_a_drive_the_result_says_what_one_is_taken_to_bring():
    said = "Each request reads one sample, a file of its own: of packed ones pass samples_per_request."
    disk = WALL.replace(storage=Storage.HDD, assumptions=PUBLISHED)
    assert said in repr(disk.solve())
    # Not where it was given, where the bytes limit, and where something else does.
    for changes in ({"samples_per_request": 36}, {"sample_size": "1 GB"}, {"drives": 1000}):
        assert "samples_per_request" not in repr(disk.solve(**changes))


def test_a_host_without_a_drive_is_refused_where_the_pipeline_is_made():
    with pytest.raises(MissingValueError, match="NVIDIA T4 lists none"):
        WALL.replace(storage=Hardware.Cloud.T4)


def test_a_pipeline_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        WALL.workers = 16


def test_the_tutorial_is_what_a_pipeline_assumes_when_nobody_says():
    assert WALL.assumptions is TUTORIAL
