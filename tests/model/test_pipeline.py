"""The rule of the pipeline: stages on one resource add, stages on different resources overlap."""

from functools import partial
from math import inf
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Accelerator,
    Datasets,
    Framework,
    Hardware,
    InputError,
    Link,
    Links,
    MissingValueError,
    Models,
    Pipeline,
    Samples,
    Storage,
    UnknownNameError,
)
from starvelab.model import parts
from starvelab.model.fields import meanings
from starvelab.model.paths import PATHS
from starvelab.model.stages import STAGES
from starvelab.model.stages.single_node import launch_wait
from starvelab.units import Quantity
from tests.cases import WALL
from tests.rejected import (
    bare,
    message,
    negative,
    no_entry,
    no_rate,
    no_share,
    none_of,
    not_positive,
    not_whole,
    other_dimension,
)
from tests.strategies import batch_sizes, pipelines, worker_counts

RESOURCE_OF = {stage.NAME: stage.RESOURCE.name for stage in STAGES}
FULL = WALL.replace({"dataset.on_device.time": "0.01 ms"}, storage=Storage.NVMe_Gen4, link=Links.PCIe4_x16)
NEVER = 1 + 1e-9  # what rounding may add
# A measured pipeline: 100 ms of the accelerator, and 50 ms of the CPU, for each batch.
KNOWN = Pipeline(hardware="1000 img/s", batch_size=100, dataset=Samples(cpu_time="2 ms"), workers=4)


def ms(quantity):
    return quantity.m_as("ms")


def images(step):
    return step.throughput.m_as("img/s")


def refused(error, **fields):
    return message(error, WALL.solve, **fields)


# ---- Invariants --------------------------------------------------------------------------------------------


@given(pipelines())
def test_the_figures_of_a_step_go_together(pipe):
    step = pipe.solve()
    assert 0 < step.utilization <= 1
    assert step.utilization + step.stall == pytest.approx(1, abs=1e-12)
    own = ms(step.resource_times["accelerator"]) - sum(ms(step.stage_times[name]) for name in step.awaited)
    own -= 1e3 * launch_wait(pipe.inputs["model"], pipe.batch_size)
    assert step.utilization * ms(step.step_time) == pytest.approx(own)
    assert step.slowdown * own == pytest.approx(ms(step.step_time))
    assert images(step) * ms(step.step_time) == pytest.approx(1e3 * pipe.batch_size * pipe.hardware.count)
    ceiling = step.demand_at_ceiling.m_as("GB/s")
    assert step.actual_demand.m_as("GB/s") == pytest.approx(ceiling * step.utilization)
    for resource, time in step.resource_times.items():
        stages = [ms(t) for stage, t in step.stage_times.items() if RESOURCE_OF[stage] == resource]
        assert ms(time) == pytest.approx(sum(stages))
        share = step.headroom[resource]
        assert 0 <= share <= 1
        # Only a drive that is spared every read has nothing to do.
        assert share < 1 or (resource, pipe.numbers["cached_fraction"]) == ("storage", 1)
        assert (1 - share) * ms(step.step_time) == pytest.approx(ms(time))


@given(pipelines(overlap=st.just(True)))
def test_the_step_is_as_long_as_its_slowest_resource_which_binds_and_the_slowest_of_the_others_is_next(pipe):
    step = pipe.solve()
    times = {name: ms(t) for name, t in step.resource_times.items()}
    if ms(step.step_time) > NEVER * max(times.values()):
        # A loop that may not run ahead of its steps, or workers that may not run ahead of the loop.
        assert pipe.hardware.in_flight < inf or pipe.workers.prefetch == 1
        ahead = {"hardware.in_flight": inf} if pipe.hardware.in_flight < inf else {"workers.prefetch": 2}
        assert ms(pipe.solve(ahead).step_time) <= ms(step.step_time)
        return
    assert ms(step.step_time) == max(times.values())
    assert times.pop(step.bottleneck) == pytest.approx(ms(step.step_time), rel=1e-11)
    assert step.headroom[step.bottleneck] == pytest.approx(0, abs=1e-11)
    assert times[step.next_bottleneck] == pytest.approx(max(times.values()), rel=1e-11)


@given(pipelines(overlap=st.just(False)))
def test_without_overlap_the_step_is_the_sum_of_all_stages_and_never_shorter_than_with_it(pipe):
    step = pipe.solve()
    assert ms(step.step_time) == pytest.approx(sum(ms(t) for t in step.stage_times.values()))
    assert ms(pipe.solve(overlap=True).step_time) <= ms(step.step_time) * NEVER


@given(pipelines(), st.integers(1, 64), st.integers(1, 50), st.integers(2, 8))
def test_more_of_anything_never_hurts(pipe, cores, more, times):
    now = pipe.solve()
    if not isinstance(pipe.workers, Quantity):
        assert ms(pipe.solve(workers=pipe.workers.count + more).step_time) <= ms(now.step_time) * NEVER
        fewer, many = (ms(pipe.solve({"workers.cores": n}).step_time) for n in (cores, cores + 1))
        assert many <= fewer * NEVER
    # Every cost is a straight line or the larger of two, so a larger batch only spreads what is fixed.
    assert images(pipe.solve(batch_size=pipe.batch_size * times)) * NEVER >= images(now)
    several = images(pipe.solve({"hardware.count": pipe.hardware.count * times}))
    assert images(now) / NEVER <= several <= times * images(now) * NEVER
    linked = pipe.replace(link=pipe.link or "32 GB/s", overlap=True)
    apart, in_turn = (ms(linked.solve({"link.overlaps": copy}).step_time) for copy in (True, False))
    assert apart <= in_turn * NEVER


@pytest.mark.parametrize(("pinned", "overlaps"), [(False, True), (True, False), (False, False)])
def test_a_copy_takes_its_turn_without_pinned_memory_or_a_stream_of_its_own(pinned, overlaps):
    # Of 100 ms and a copy of 10 ms.
    pipe = KNOWN.replace({"dataset.transfer": "100 KB"}, link="1 GB/s")
    assert ms(pipe.solve().step_time) == pytest.approx(100)
    step = pipe.solve({"link.pinned": pinned, "link.overlaps": overlaps})
    assert list(step.resource_times) == ["CPU", "accelerator"]
    assert ms(step.stage_times["serialized copy"]) == pytest.approx(10)
    assert (ms(step.step_time), step.bottleneck) == (pytest.approx(110), "accelerator")
    assert step.utilization == pytest.approx(100 / 110)


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
            for name in ("utilization", "bottleneck", "next_bottleneck", "cause", "feasible"):
                assert getattr(grid, name)[i, j] == getattr(one, name)


@pytest.mark.parametrize("swept", [
    {"batch_size": np.array([[1], [2]]), "workers": [1, 2, 3]},
    {"dataset.size": Q_([1, 2], "MB"), "workers.rate": "100 img/s"},
    {"workers": Q_([1, 2, 3], "GB/s")},
    {"storage": Q_([1, 7], "GB/s"), "link": Q_([16, 32], "GB/s"), "link.overlaps": False},
    {"dataset.on_device.time": Q_([0, 0.1], "ms"), "hardware.step_overhead": Q_([0, 1], "ms")},
    {"dataset.cpu_time": Q_([1, 2], "ms"), "workers.cores": [[2], [4], [8]]},
    {"hardware.count": [1, 8], "model": None, "hardware.of": None, "hardware.rate": "1000 img/s"},
    {"batch_size": np.arange(1, 1)},
], ids=str)  # fmt: skip
def test_every_result_has_the_shape_of_what_was_swept(swept):
    values = (getattr(value, "magnitude", value) for value in swept.values())
    shape = np.broadcast_shapes(*(np.shape(n) for n in values if not isinstance(n, str | bool | None)))
    step = FULL.solve(**swept)
    shapes = {np.shape(t.magnitude) for t in (*step.stage_times.values(), *step.resource_times.values())}
    names = "step_time throughput demand_at_ceiling actual_demand utilization stall slowdown"
    for name in (names + " bottleneck next_bottleneck cause feasible").split():
        found = getattr(step, name)
        shapes.add(np.shape(getattr(found, "magnitude", found)))
    assert shapes | {np.shape(share) for share in step.headroom.values()} == {shape}


def test_a_single_point_gives_plain_numbers_and_words():
    step = FULL.solve()
    assert {type(step.utilization), type(step.stall), type(step.slowdown)} == {float}
    assert {type(step.bottleneck), type(step.next_bottleneck), type(step.cause)} == {str}
    assert type(step.feasible) is bool
    assert {type(t.magnitude) for t in step.stage_times.values()} == {float}


# ---- Stages and resources ----------------------------------------------------------------------------------


def test_only_what_is_modeled_has_a_time_in_the_order_of_the_flow():
    step, full = WALL.solve(), FULL.solve()
    assert list(step.stage_times) == ["transform", "model"]
    assert list(step.resource_times) == ["CPU", "accelerator"]
    assert list(full.stage_times) == ["read", "transform", "copy", "input on device", "model"]
    assert list(full.resource_times) == ["storage", "CPU", "link", "accelerator"]


def test_input_work_on_the_accelerator_adds_to_the_models_step_and_is_its_cause_if_it_takes_most():
    step = WALL.solve({"dataset.on_device.time": "0.1 ms"})
    assert ms(step.resource_times["accelerator"]) == pytest.approx(11.743205 + 25.6, abs=1e-6)
    assert step.cause == "input"
    assert WALL.solve({"dataset.on_device.time": "0.001 ms"}).cause == "compute"


def test_rounding_does_not_turn_a_tie_into_a_bottleneck():
    # 2790 images a second on both sides, but by way of bytes the float comes out one bit longer.
    h100 = WALL.replace(hardware=Hardware.Cloud.H100, assumptions=PUBLISHED)
    step = h100.solve(
        {"hardware.rate": Framework("PyTorch (Lambda)"), "dataset.size": "3 KB"},
        workers=Q_(3 * 2790 / 1000, "MB/s"),
    )
    assert step.resource_times["CPU"] > step.resource_times["accelerator"]
    assert step.bottleneck == "accelerator"


def test_a_decoder_works_beside_the_kernels_and_kernels_that_decode_take_turns_with_them():
    # 512 images of 0.12765 ms are 65.36 ms; the training step of 512 images is 55.38 ms under TUTORIAL.
    fed = WALL.replace(batch_size=512, phase="training", workers="50 GB/s")
    beside, inside = (
        fed.solve({"dataset.on_device.decoder_time": "0.12765 ms"}),
        fed.solve({"dataset.on_device.time": "0.12765 ms"}),
    )
    assert ms(beside.step_time) == pytest.approx(65.357, abs=1e-3)
    assert beside.bottleneck == "decoder"
    assert beside.throughput.m_as("img/s") == pytest.approx(7834, abs=0.5)
    assert ms(inside.step_time) == pytest.approx(65.357 + 55.384, abs=1e-3)
    assert inside.bottleneck == "accelerator"


# Two values of each field that make different pipelines, on top of one that has a drive and a link.
TWO = {
    "model": (Models.ResNet18, Models.ViT_B16),
    "hardware": (Hardware.Cloud.H100, Hardware.Cloud.V100),
    "dataset": (Datasets.ImageNet, Datasets.ImageNet.replace(sample_size="5 MB", preparation_time="20 ms")),
    "workers.count": (2, 3),
    "dataset.size": ("5 MB", "50 KB"),
    "workers.rate": ("10 img/s", "20 img/s"),
    "workers": ("10 img/s", "20 img/s"),
    "storage": (Storage.EBS_gp3, Storage.NVMe_Gen4),
    "storage.count": (2, 3),
    "storage.requests.samples": (2, 3),
    "storage.cache.share": (0.2, 0.4),
    "link": (Links.PCIe3_x16, Links.PCIe5_x16),
    "dataset.transfer": ("1 KB", "uint8"),
    "link.pinned": (True, False),
    "link.overlaps": (True, False),
    "dataset.on_device.time": ("1 ms", "2 ms"),
    "hardware.rate": ("100 img/s", "200 img/s"),
    "hardware.step_overhead": ("1 ms", "2 ms"),
    "hardware.host.time": ("1 ms", "2 ms"),
    "workers.kind": ("pool", "processes"),
    "dataset.cpu_time": ("1 ms", "2 ms"),
    "workers.cores": (4, 6),
    "storage.requests.latency": ("1 ms", "2 ms"),
    "workers.handover.worker": ("1 ms", "2 ms"),
    "workers.handover.loop": ("1 ms", "2 ms"),
    "workers.handover.objects": (1, 113),
    "hardware.count": (1, 2),
    "hardware.precision": ("fp16", "tf32"),
    "phase": ("forward", "training"),
}
# What the docstring of a pipeline says: the first goes before the others.
BEFORE = {
    "hardware.rate": {"model", "hardware.precision", "phase"},
    "workers.rate": {"workers.kind"},
    "dataset.cpu_time": {"workers.kind"},
    "workers.kind": {"workers.handover.objects"},  # a pool's threads share the memory of the loop
    "workers": {"storage.requests.samples"},  # nobody knows how many requests are open
}


@pytest.mark.parametrize("first", TWO)
def test_no_field_takes_another_one_away_without_a_word(first):
    whole = FULL.replace({"dataset.on_device.time": None}, assumptions=PUBLISHED)
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


def test_a_measured_rate_needs_neither_model_nor_hardware():
    step = KNOWN.solve()
    assert ms(step.resource_times["accelerator"]) == pytest.approx(100)
    assert ms(step.resource_times["CPU"]) == pytest.approx(50)
    assert (step.bottleneck, step.utilization, step.feasible) == ("accelerator", 1.0, True)
    assert (step.cause, step.basis) == ("model", "measured: given as the rate of the GPU")


@pytest.mark.parametrize("assumed", [TUTORIAL, PUBLISHED], ids=lambda a: a.name)
def test_a_rate_or_a_framework_that_is_given_goes_before_the_catalogue_and_before_the_formula(assumed):
    step = WALL.solve({"hardware.rate": "1000 img/s"}, assumptions=assumed)
    assert ms(step.stage_times["model"]) == pytest.approx(256)
    assert step.basis == "measured: given as the rate of the GPU"
    step = WALL.solve(
        {"hardware.rate": Framework("MXNet")}, phase="training", assumptions=assumed, batch_size=512
    )
    assert ms(step.stage_times["model"]) == pytest.approx(512 / 3410.52 * 1e3)
    assert step.basis.startswith("measured: MXNet, NVIDIA/DeepLearningExamples")


def test_the_cost_of_a_step_comes_on_top_and_binds_with_the_accelerator():
    step = KNOWN.solve({"hardware.step_overhead": "25 ms"})
    assert ms(step.resource_times["accelerator"]) == pytest.approx(125)
    assert step.throughput.m_as("img/s") == pytest.approx(800)
    assert step.utilization == 1
    assert KNOWN.solve({"hardware.step_overhead": "101 ms"}).cause == "overhead"
    assert WALL.solve({"hardware.step_overhead": "1 ms"}, batch_size=256).cause == "compute"
    assert WALL.solve({"hardware.step_overhead": "2 ms"}, batch_size=256).cause == "overhead"


def test_accelerators_share_cores_and_drive_and_each_has_its_link():
    one, eight = (FULL.solve({"hardware.count": n}) for n in (1, 8))
    for resource, times in (("storage", 8), ("CPU", 8), ("link", 1), ("accelerator", 1)):
        assert ms(eight.resource_times[resource]) == pytest.approx(times * ms(one.resource_times[resource]))
    assert eight.demand_at_ceiling.m_as("GB/s") == pytest.approx(8 * one.demand_at_ceiling.m_as("GB/s"))
    assert images(KNOWN.solve({"hardware.count": 8}, workers=32)) == pytest.approx(8000)
    # A starved host prepares no more for eight than for one.
    assert images(eight) == pytest.approx(images(one))
    assert eight.utilization == pytest.approx(one.utilization / 8)


# ---- Fields ------------------------------------------------------------------------------------------------


CUSTOMARY = {"B": "KB", "B/s": "GB/s", "s": "ms", "sample/s": "img/s", "": "img/s"}
MADE = {part for part in vars(parts).values() if isinstance(part, type) and issubclass(part, parts.Part)}
WITH_UNIT = sorted(
    (made.__name__, name)
    for made in MADE
    for name, meaning in meanings(made).items()
    if meaning.kind in ("quantity", "supply")
)


@pytest.mark.parametrize(("part", "field"), WITH_UNIT)
def test_a_field_with_a_unit_takes_a_quantity_or_a_text_and_nothing_else(part, field):
    meaning = meanings(getattr(parts, part))[field]
    needed = {"of": "1 GB/s"} if part in ("Drive", "Link") and field != "of" else {}
    made = partial(getattr(parts, part), **needed)
    unit, label = CUSTOMARY[meaning.unit], meaning.label or f"{part}.{field}"
    assert getattr(made(**{field: f"5 {unit}"}), field) == Q_(5, unit)
    rows = [
        no_rate(**{label: 5}) if meaning.kind == "supply" else bare(unit, **{label: 5}),
        no_rate(**{label: "5 W"}) if meaning.kind == "supply" else other_dimension(unit, **{label: "5 W"}),
    ]
    if meaning.zero:
        assert made(**{field: f"0 {unit}"}).named[meaning.stage or field] == 0
        rows.append(negative(**{label: f"-1 {unit}"}))
    else:
        rows += [not_positive(**{label: Q_(figure, unit)}) for figure in (-1, 0, float("nan"), float("inf"))]
    for wrong, expected in rows:
        assert message(InputError, made, **{field: wrong[label]}) == expected


def test_a_pipeline_is_changed_only_in_a_copy_and_is_equal_to_one_like_it():
    assert (WALL.replace(workers=16).workers.count, WALL.workers.count) == (16, 8)
    with pytest.raises(InputError):
        WALL.workers = 16
    same = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    assert (same, hash(same)) == (WALL, hash(WALL))
    assert same != WALL.replace(workers=9)
    assert WALL.assumptions is TUTORIAL


def test_a_pipeline_shows_its_fields_in_one_line():
    assert repr(FULL.replace({"dataset.size": "5 MB"}, batch_size=64, assumptions=PUBLISHED)) == (
        'Pipeline(model=Models.ResNet50, batch_size=64, dataset=Samples(size="5 MB", '
        'on_device=OnDevice("0.01 ms")), '
        "storage=Storage.NVMe_Gen4, link=Links.PCIe4_x16, hardware=Hardware.Cloud.A100, "
        "assumptions=PUBLISHED)"
    )
    scattered = Samples(size="97480 B", cpu_time="7.258 ms", transfer="602100 B", jitter=parts.Jitter(0.36))
    assert repr(Pipeline(dataset=scattered, hardware="1200 img/s")) == (
        'Pipeline(batch_size=256, dataset=Samples(size="97480 B", cpu_time="7.258 ms", transfer="602100 B", '
        'jitter=Jitter(0.36)), hardware=Accelerator(rate="1200 img/s"))'
    )


def test_a_sweep_of_steps_shows_its_shape_instead_of_a_million_figures():
    many = WALL.solve(batch_size=np.arange(1, 1001))
    assert repr(many).startswith("1000 steps, an array of shape (1000,)")
    assert len(repr(many)) < 2000


# ---- Bad input ---------------------------------------------------------------------------------------------


SHARES = ("Cache.share", "Jitter.slow_share")


COUNTS = [path for path, meaning, _ in PATHS if meaning.kind == "count" and not meaning.zero]


@pytest.mark.parametrize("name", ["batch_size", *COUNTS])
def test_a_count_that_is_no_whole_number_of_at_least_one_is_refused(name):
    part, _, field = name.rpartition(".")
    label = f"{type(attrgetter(part)(FULL)).__name__}.{field}" if part else name
    wrong = {2.5: not_whole, True: not_whole, "64": not_whole, 0: not_positive, -256: not_positive}
    for value, row in (*wrong.items(), (float("nan"), not_positive)):
        assert message(InputError, FULL.replace, {name: value}) == row(**{label: value})[1]


@pytest.mark.parametrize("name", [*SHARES, "Jitter.spread", "Ranks.spread"])
def test_a_number_without_a_unit_is_not_negative_and_a_share_is_one_at_most(name):
    part, field = name.split(".")
    rows = [negative(**{name: -0.1}), *([no_share(**{name: 1.5})] if name in SHARES else [])]
    for wrong, expected in rows:
        assert message(InputError, getattr(parts, part), **{field: wrong[name]}) == expected


@pytest.mark.parametrize(("part", "field", "value", "described"), [
    (parts.Drive, "cache", 0.9, "Cache"),
    (parts.Drive, "requests", "10 ms", "Requests"),
    (parts.Drive, "requests", parts.Cache(0.9), "Requests"),
    (parts.Workers, "handover", "5 ms", "Handover"),
    (parts.Workers, "handover", None, "Handover"),
    (parts.Samples, "jitter", 0.3, "Jitter"),
    (parts.Samples, "on_device", "1 ms", "OnDevice"),
    (parts.Accelerator, "host", "30 ms", "Host"),
    (parts.Accelerator, "ranks", 8, "Ranks"),
])  # fmt: skip
def test_a_small_value_in_a_part_is_never_left_out_without_a_word(part, field, value, described):
    assert message(InputError, part, **{field: value}) == (
        f"{part.__name__}.{field} is described by {described}, got {value!r}. Pass {field}={described}(...)."
    )


def test_a_name_of_an_accelerator_is_no_framework_and_a_numpy_zero_is_no_worker():
    _, expected = no_entry("Hardware.Cloud.A100", hardware="A100")
    assert message(InputError, Pipeline, model=Models.ResNet50, hardware="A100") == expected
    assert KNOWN.replace(workers=np.int64(0)).solve() == KNOWN.replace(workers=0).solve()


@pytest.mark.parametrize(("part", "field", "value"), [
    (parts.Workers, "prefetch", [1, 2]),
    (parts.Workers, "start_up", Q_([1, 2], "s")),
    (parts.Jitter, "spread", [0.1, 0.2]),
    (parts.Accelerator, "in_flight", [1, 2]),
])  # fmt: skip
def test_what_only_runs_and_simulations_read_has_one_value(part, field, value):
    assert message(InputError, part, **{field: value}) == (
        f"{part.__name__}.{field} is one value, got an array. Make one pipeline for each."
    )


@pytest.mark.parametrize(("fields", "expected"), [
    not_whole(batch_size=None),
    ({"workers": [8, 2.5]}, not_whole(workers=2.5)[1]),
    no_entry("Models.ResNet50", model="ResNet50"),
    no_entry("Storage.NVMe_Gen4", storage="S3"),
    no_entry("Links.PCIe4_x16", link="PCIe5_x16"),
    ({"workers": [0, 1]}, "workers=0 is solved by itself, got it among several values. Leave it out."),
    ({"hardware": Models.ResNet50},
     "hardware must be an entry of Hardware, got Models.ResNet50. Pass for example Hardware.Cloud.A100."),
    ({"dataset.size": Datasets.KiTS19},
     "Samples.size must be a quantity, got Datasets.KiTS19. Pass one of its values: Datasets.KiTS19.<name>."),
    (
        {"assumptions": "PUBLISHED"},
        "assumptions must be TUTORIAL, PUBLISHED or your own, got 'PUBLISHED'. "
        "Pass for example assumptions=PUBLISHED, without quotes.",
    ),
    none_of("forward, training", phase="backward"),
    ({"hardware.precision": "fp8"}, none_of("fp32, tf32, bf16, fp16", **{"Accelerator.precision": "fp8"})[1]),
    ({"workers.kind": "dali"}, none_of("processes, threads, pool, torch", **{"Workers.kind": "dali"})[1]),
    (
        {"model": None},
        "The accelerator's time comes from model and hardware, or from a measured rate, got no model. "
        'Pass model=Models.ResNet50, hardware=Hardware.Cloud.A100, or the rate, such as "2470 img/s".',
    ),
    (
        {"workers": "2 GB/s", "storage.requests.latency": "1 ms"},
        "Requests.latency is that of one worker, got it with what all workers supply together. "
        "Pass workers=8 instead.",
    ),
    (
        {"workers": "2 GB/s", "dataset.cpu_time": "1 ms"},
        "Samples.cpu_time is that of one worker, got it with what all workers supply together. "
        "Pass workers=8 instead.",
    ),
    ({"storage": None, "storage.cache.share": 0.5},
     "storage.cache qualifies a part that the pipeline does not have. Pass storage=Drive(..., cache=...)."),
    ({"hardware.ranks.slow": 0.5}, "Ranks.slow must be 1 or more, got 0.5. Pass 1 or more."),
    ({"link.pinned": False},
     "link.pinned qualifies a part that the pipeline does not have. Pass link=Link(..., pinned=...)."),
    ({"workers": "2 GB/s", "workers.cores": 4},
     "workers.cores qualifies a part that the pipeline does not have. Pass workers=Workers(..., cores=...)."),
    ({"storage": Link("1 GB/s")},
     'storage is described by Drive, got Link("1 GB/s"). Pass storage=Drive(...).'),
    (
        {"batch_size": [1, 2], "workers": [1, 2, 3]},
        "Swept fields must have shapes that broadcast, got batch_size of shape (2,), workers of shape "
        "(3,). Use sweep(...) for every combination.",
    ),
])  # fmt: skip
def test_fields_that_cannot_be_meant_say_what_to_pass(fields, expected):
    assert refused(InputError, **fields) == expected


def test_what_the_catalogue_does_not_know_is_refused():
    assert refused(MissingValueError, phase="training", **{"hardware.rate": "Caffe"}) == (
        "No rate of ResNet-50 on NVIDIA A100 80GB SXM was measured in 'Caffe', or can be extrapolated at "
        "fp16, training. ResNet-50 was measured in MXNet, MXNet (20.12), PyTorch, PyTorch (Lambda v2), "
        "PyTorch (Lambda), TensorFlow. Pass one of these, or a rate of your own."
    )
    assert "got no model and no hardware" in message(InputError, Pipeline)
    # Where the pipeline is made, and not only where it is solved.
    assert "NVIDIA T4 lists none" in message(MissingValueError, WALL.replace, storage=Hardware.Cloud.T4)


@pytest.mark.parametrize("changes", [[1], {3: 3}, "workers", 16])
def test_changes_are_values_by_their_paths(changes):
    for question in (WALL.replace, WALL.solve, WALL.sweep):
        assert message(InputError, question, changes) == (
            f"Changes are values by the paths of fields, got {changes!r}. "
            'Pass for example {"workers.cores": 16}.'
        )


@pytest.mark.parametrize(("field", "expected"), [
    ("batchsize", "A pipeline has no field 'batchsize'. Did you mean batch_size?"),
    ("zzz", "A pipeline has no field 'zzz'. Pass it in its part: dataset=Samples(...), "),
    ("workers.zzz", "Workers has no field 'zzz'. There is: count, rate, "),
    ("model.name", "model has no fields, got 'model.name'. Change model itself."),
    ("workers.cores.count",
     "workers.cores has no fields, got 'workers.cores.count'. Change workers.cores itself."),
    ("open_requests", "A pipeline has no field 'open_requests': it is one of its assumptions. Pass "
     "storage=Drive(..., requests=Requests(open=...))."),
    ("efficiency", "A pipeline has no field 'efficiency': it is one of its assumptions. Pass "
     "assumptions=TUTORIAL.replace(efficiency=...)."),
])  # fmt: skip
def test_an_unknown_field_says_which_was_meant(field, expected):
    assert refused(UnknownNameError, **{field: 3}).startswith(expected)


@pytest.mark.parametrize(("ask", "said"), [
    (lambda: Samples(sise="5 MB"), "Samples has no field 'sise'. Did you mean size?"),
    (lambda: Accelerator(cout=3), "Accelerator has no field 'cout'. Did you mean count?"),
    (lambda: WALL.sweep(workers=[1, 2])["worker"], "A sweep has no column 'worker'. Did you mean workers?"),
    (lambda: setattr(WALL, "wrkers", 3), "A pipeline does not change, got a value for wrkers. Pass it to "),
    (lambda: Pipeline(Models.ResNet50), "The parts of a pipeline are passed by name, got Models.ResNet50 "),
])  # fmt: skip
def test_a_name_that_is_wrong_or_missing_is_said_in_the_words_of_the_lab(ask, said):
    # These were raw errors of Python, or nothing.
    assert message((InputError, UnknownNameError), ask).startswith(said)


@pytest.mark.parametrize("made", [
    lambda *n: parts.Workers(np.array(n)), lambda *n: parts.Drive(Q_(n, "GB/s")),
    lambda *n: parts.Requests(samples=[*n]),
    lambda *n: Pipeline(hardware="5 ms", workers=np.array(n)),
    lambda *n: Pipeline(hardware="5 ms", workers=np.array(n)).solve(),
    lambda *n: Pipeline(hardware="5 ms").sweep(workers=n),
    lambda *n: Pipeline(hardware="5 ms", workers=np.array(n)).bill(price="2 USD/h"),
])  # fmt: skip
def test_what_holds_arrays_equals_what_holds_the_same_and_nothing_else(made):
    assert made(1, 2) == made(1, 2)
    for other in (made(1, 3), made(1, 2, 3), made(1), parts.Workers(1), parts.Drive("1 GB/s"), None, "1"):
        assert made(1, 2) != other
        assert other != made(1, 2)


def test_parts_and_pipelines_of_single_values_are_keys_of_a_dictionary():
    pipes = {WALL: 1, WALL.replace(workers=9): 2}
    assert (pipes[WALL.replace()], {parts.Workers(3): 4}[parts.Workers(3)]) == (1, 4)
