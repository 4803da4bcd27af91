"""The moving picture in a page: its rule is the model's, its run the trace, and it can be stopped."""

import json
import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from playwright.sync_api import BrowserContext, Page, Route, expect

from starvelab import (
    PUBLISHED,
    Q_,
    Accelerator,
    Drive,
    Handover,
    Hardware,
    Jitter,
    Models,
    OnDevice,
    Pipeline,
    Ranks,
    Samples,
    Storage,
    Workers,
)
from starvelab.lesson.widgets._moving import SCRIPT, data_of, rule_of
from starvelab.widgets import play
from tests.browser.lab_in_browser import serious
from tests.strategies import batch_sizes, pipelines, worker_counts

RESNET = {"model": Models.ResNet50, "hardware": Hardware.Cloud.A100, "batch_size": 256}
WALL = Pipeline(**RESNET, workers=8, storage="7 GB/s", link="25 GB/s")
# Ahead of the workers and by them, in order and not, with chance, beside and in turn.
RUNS = {
    "the wall": WALL,
    "no drive": WALL.replace(storage=None, link=None),
    "the drive": WALL.replace(storage="1 GB/s"),
    "workers read": WALL.replace(storage=Drive("3 GB/s", read_ahead=False)),
    "chance": WALL.replace(dataset=Samples(jitter=Jitter(spread=0.8))),
    "any order": WALL.replace(workers=Workers(8, in_order=False), dataset=Samples(jitter=Jitter(spread=0.8))),
    "the accelerator": WALL.replace(workers=64, storage="30 GB/s"),
    "measured": WALL.replace(assumptions=PUBLISHED, workers=20),
    "no workers": WALL.replace(workers=0),
    "many workers": WALL.replace(workers=64, storage="12.7 GB/s"),
    "in turn": WALL.replace(overlap=False),
    "far": WALL.replace(workers=Workers(8, prefetch=1, handover=Handover(way="50 ms", loop="2 ms"))),
    "slow": WALL.replace(hardware=Accelerator(Hardware.Cloud.A100, ranks=Ranks(4, slow=1.5))),
    "eight": WALL.replace(workers=64, hardware=Accelerator(Hardware.Cloud.A100, count=8)),
}  # fmt: skip
DALI = WALL.replace(
    dataset=Samples(on_device=OnDevice(decoder_time="0.12765 ms")), workers="50 GB/s", storage=None,
    phase="training",
)  # fmt: skip
SIMPLE = [name for name in RUNS if name not in ("workers read", "chance", "any order", "no workers")]
HTML = """<!doctype html><html lang="en"><title>Moving</title><meta name="color-scheme" content="light dark">
<main><h1>Moving</h1><div id="one"></div><div id="space"></div><div id="two"></div></main>
<script type="module">window.moving = await import("/moving.js");</script></html>"""


@pytest.fixture(scope="module")
def still(browser: BrowserContext) -> Iterator[Page]:
    """A page that has loaded the script."""
    page = browser.new_page()
    _open(page)
    yield page
    page.close()


@pytest.fixture
def moving(browser: BrowserContext) -> Iterator[Page]:
    """The same, for one test."""
    page = browser.new_page()
    page.set_viewport_size({"width": 800, "height": 600})
    _open(page)
    yield page
    page.close()


def _open(page: Page) -> None:
    def answer(route: Route) -> None:
        if route.request.url.endswith(".js"):
            route.fulfill(path=SCRIPT, content_type="text/javascript")
        else:
            route.fulfill(body=HTML, content_type="text/html")

    page.route("**/*", answer)
    page.goto("http://moving.test/")
    page.wait_for_function("() => window.moving")


def ask(page: Page, code: str, *given: object) -> object:
    """What an expression in the script's names gives for these arguments, as text: faster than one by one."""
    text = page.evaluate(
        f"([given]) => JSON.stringify((({code}))(...JSON.parse(given)))", [json.dumps(given)]
    )
    return json.loads(text)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pipeline=pipelines(), batch=batch_sizes, count=worker_counts)
def test_the_rule_is_the_models_for_every_pipeline_batch_size_and_number_of_workers(
    still, pipeline, batch, count
):
    counted = isinstance(pipeline.workers, Workers)
    changed = pipeline.replace(batch_size=batch, **({"workers": count} if counted else {}))
    expected, rule = changed.solve(), rule_of(pipeline)
    found = ask(still, "(...given) => moving.solve(...given)", rule, {"batch": batch, "workers": count})
    times = {name: time.m_as("s") for name, time in expected.resource_times.items()}
    assert found["times"] == pytest.approx(times, rel=1e-9)
    assert found["step"] == pytest.approx(expected.step_time.m_as("s"), rel=1e-9)
    assert found["utilization"] == pytest.approx(float(expected.utilization), rel=1e-9, abs=1e-12)
    assert found["bottleneck"] == expected.bottleneck


# One batch in eleven takes nine times as long.
STEP = Accelerator(rate="20 ms", in_flight=1)
BURSTS = Pipeline(dataset=Samples(cpu_time="34.5 ms"), batch_size=1, workers=2, hardware=STEP)
TIMES = Q_([180 if number % 11 == 7 else 20 for number in range(440)], "ms")


@pytest.mark.parametrize(("pipeline", "times"), [
    *((RUNS[name], None) for name in SIMPLE),
    *((BURSTS.replace(workers=count), TIMES) for count in (1, 2, 5, 8)),
])  # fmt: skip
def test_where_nothing_is_left_to_chance_the_run_of_the_page_is_the_simulation(still, pipeline, times):
    data = data_of(pipeline, times)
    found = ask(
        still, "({rule, setting}) => moving.follow(moving.solve(rule, setting), {...rule, ...setting})", data
    )
    for column, moments in data["run"].items():
        if moments is not None:
            assert np.allclose(found[column], moments, atol=2e-3), column


def test_the_workers_that_late_batches_need_get_their_tick(moving):
    data = {**data_of(BURSTS, TIMES), "controls": {"workers": [2, 3, 4, 5, 6]}, "find": "workers"}
    show(moving, "one", BURSTS, **data)
    moving.get_by_role("slider", name="workers").focus()
    for said in ("Find the fewest", "Find the fewest", "✓ 5: it never waits."):
        moving.keyboard.press("ArrowRight")
        expect(moving.locator(".sl-act")).to_contain_text(said)


def test_the_smallest_batch_is_that_beyond_which_a_sample_takes_as_long(moving):
    decoder = DALI.replace(batch_size=256)
    show(moving, "one", decoder, controls={"batch": [64, 256, 512, 1024]}, find="batch")
    moving.get_by_role("slider", name="batch size").focus()
    expect(moving.locator(".sl-act")).to_have_text("Find the smallest batch beyond which more bring nothing.")
    moving.keyboard.press("ArrowRight")
    expect(moving.locator(".sl-act")).to_have_text("✓ 512: the decoder binds, and more bring nothing.")


@pytest.mark.parametrize("name", ["many workers", "the accelerator", "the drive"])
def test_a_gauge_shows_what_a_resource_does_in_the_long_run(still, name):
    data = data_of(RUNS[name])
    code = """data => { const solved = moving.solve(data.rule, data.setting);
        const run = moving.follow(solved, {...data.rule, ...data.setting});
        return [solved, moving.state(run, run.end).busy]; }"""
    solved, busy = ask(still, code, data)
    # Workers that ask all at once keep the drive busy for long after they have begun.
    for resource, share in busy.items():
        assert share == pytest.approx(solved["times"][resource] / solved["step"], abs=0.03), resource


@pytest.mark.parametrize("name", RUNS)
def test_at_any_time_the_picture_is_the_trace(still, name):
    widget = play(RUNS[name])
    trace, data = widget.trace, data_of(RUNS[name])
    end = data["run"]["end"]
    # Between events: the page has its times to a thousandth of a millisecond.
    times = np.random.default_rng(7).uniform(0, end, 60)
    found = ask(still, "(run, times) => times.map(t => moving.state(run, t))", data["run"], times.tolist())

    def share(start: np.ndarray, done: np.ndarray, t: float) -> float:
        return float(np.maximum(0, np.minimum(done, t) - np.maximum(start, 0)).sum() / t)

    def within(start: np.ndarray, done: np.ndarray, t: float) -> set[int]:
        return set(np.flatnonzero((start <= t) & (t < done)))

    def depth(t: float, *, in_turn: bool) -> int:
        changes, depths = trace.queue_depth(in_turn=in_turn)
        return int(np.append(0, depths)[np.searchsorted(changes, t, "right")])

    for t, one in zip(times, found, strict=True):
        held = depth(t, in_turn=False) - depth(t, in_turn=True)
        assert (len(one["queue"]), len(one["held"])) == (depth(t, in_turn=False), held)
        assert set(one["chip"]) == within(trace.step_start, trace.step_end, t)
        assert one["waits"] == (not one["chip"])
        prepares = within(trace.prepare_start, trace.prepared, t)
        assert set(one["worker"]) == prepares
        assert set(one["idle"]) == set(range(data["run"]["lanes"])) - set(
            np.maximum(trace.worker, 0)[[*prepares]]
        )
        assert one["busy"]["accelerator"] == pytest.approx(
            share(trace.step_start, trace.step_end, t), abs=1e-4
        )
        workers = share(trace.prepare_start, trace.prepared, t) / data["run"]["lanes"]
        assert one["busy"]["CPU"] == pytest.approx(workers, abs=1e-4)
        if trace.read_start is not None:
            assert set(one["reading"]) == within(trace.read_start, trace.read_done, t)


def show(page: Page, where: str, pipeline: Pipeline, **more: object) -> None:
    page.evaluate(
        "([id, data]) => { (window.all ??= {})[id] = moving.mount(document.getElementById(id), data,"
        " setting => { window.rested = setting; }); }",
        [where, {**data_of(pipeline), **more}],
    )


def test_it_plays_stops_steps_and_follows_its_slider(moving):
    show(moving, "one", WALL, controls={"workers": [4, 8, 40, 44, 48], "batch": [64, 256]})
    picture, clock = moving.get_by_role("img"), moving.locator("#one .sl-row span").last
    expect(picture).to_have_accessible_name("The workers bind: the GPU waits 82\u00a0% of the time.")
    assert serious(moving) == []
    expect(clock).to_have_text(re.compile(r"1,\d"))  # where three digits would tell no step from the next
    moving.get_by_role("button", name="Pause").click()
    stopped = clock.text_content()
    moving.wait_for_timeout(200)
    assert clock.text_content() == stopped
    moving.get_by_role("button", name="One step").click()
    expect(clock).not_to_have_text(stopped)
    expect(moving.get_by_role("button", name="Slow")).to_have_attribute("aria-pressed", "false")

    workers = moving.get_by_role("slider", name="workers")
    workers.focus()
    for key in ("ArrowRight",) * 3:
        moving.keyboard.press(key)
    expect(workers).to_have_attribute("aria-valuetext", "48")
    expect(moving.get_by_role("status")).to_have_text("The drive binds: the GPU waits 36\u00a0% of the time.")
    expect(moving.locator("#one .binds").first).to_have_text("drive")
    moving.wait_for_function("() => window.rested")
    assert moving.evaluate("rested") == {"batch": 256, "workers": 48}
    moving.get_by_text("The same as a table").click()
    expect(moving.locator("tbody tr")).to_have_text(
        ["drive18.3 ms100\u00a0%", "workers10.7 ms58\u00a0%", "link6.17 ms34\u00a0%",
         "GPU11.7 ms64\u00a0%"],
    )  # fmt: skip


def test_what_is_to_be_found_gets_its_tick_and_neither_more_nor_fewer_do(moving):
    show(moving, "one", WALL.replace(storage=None), controls={"workers": [42, 43, 44, 45]}, find="workers")
    act, workers = moving.locator(".sl-act"), moving.get_by_role("slider", name="workers")
    expect(act).to_have_text("Find the fewest workers beyond which more bring nothing.")
    workers.focus()
    for key, said in (
        ("ArrowRight", "Find the fewest workers beyond which more bring nothing."),
        ("ArrowRight", "✓ 44: it never waits."),
        ("ArrowRight", "45 are enough. Are fewer, too?"),
    ):
        moving.keyboard.press(key)
        expect(act).to_have_text(said)
    assert serious(moving) == []
    # Where something else binds behind them, it is named.
    show(moving, "two", WALL.replace(batch_size=512), controls={"workers": [8, 27, 28, 29]}, find="workers")
    workers = moving.locator("#two").get_by_role("slider")
    workers.focus()
    for _ in range(2):
        moving.keyboard.press("ArrowRight")
    expect(moving.locator("#two .sl-act")).to_have_text("✓ 28: the drive binds, and more bring nothing.")


def test_a_share_that_is_enough_can_be_asked_for(moving):
    show(moving, "one", WALL, controls={"workers": [8, 21, 22, 23]}, find="workers", until=0.5)
    act, workers = moving.locator(".sl-act"), moving.get_by_role("slider", name="workers")
    expect(act).to_have_text("Find the fewest workers with which the GPU is busy for 50\u00a0% of the time.")
    workers.focus()
    moving.keyboard.press("ArrowRight")
    moving.keyboard.press("ArrowRight")
    expect(act).to_have_text("✓ 22: the GPU is busy for 50\u00a0% of the time.")


def test_workers_that_wait_are_hatched_and_no_slow_cpu_and_kernels_that_decode_are_no_training(moving):
    far = WALL.replace(assumptions=PUBLISHED, storage=Storage.S3_connection)
    show(moving, "one", far)
    said = str(far.explain()).partition(":")[0]
    expect(moving.get_by_role("status")).to_contain_text(f"{said}: the GPU waits")
    times = far.solve().resource_times["CPU"]
    work = far.replace(storage=None).solve().resource_times["CPU"]
    share = round(100 * float((work / times).m_as("")))
    expect(moving.locator("#one svg")).to_contain_text(f"▲ waits {100 - share}\u00a0%")
    expect(moving.locator("#one svg")).to_contain_text(f"busy {share}\u00a0%")
    kernels = WALL.replace(
        dataset=Samples(on_device=OnDevice("0.5106 ms")), workers=64, phase="training", batch_size=512
    )
    show(moving, "two", kernels)
    step = kernels.solve()
    trains = round(100 * float((step.stage_times["model"] / step.step_time).m_as("")))
    expect(moving.locator("#two svg")).to_contain_text("busy 100\u00a0%▲ trains")
    expect(moving.locator("#two svg")).to_contain_text(f"▲ trains {trains}\u00a0%")


def test_several_belts_move_on_one_clock_with_one_slider_and_each_has_its_tick(moving):
    fast = WALL.replace(storage=None, hardware=Hardware.Cloud.B200)
    belts = [
        {"name": name, **data_of(pipeline)}
        for name, pipeline in (("A100", WALL.replace(storage=None)), ("B200", fast))
    ]
    belts[0]["parts"] = ["CPU"]
    show(moving, "one", WALL, belts=belts, controls={"workers": [8, 43, 44, 64]}, find="workers")
    expect(moving.get_by_role("img")).to_have_count(2)
    expect(moving.locator(".sl-name")).to_have_text(["A100", "B200"])
    expect(moving.locator("rect.parts")).to_have_count(1)
    expect(moving.get_by_text("≠ 8 workers")).to_be_visible()
    expect(moving.get_by_role("slider")).to_have_count(1)
    moving.get_by_role("button", name="Pause").click()
    moving.get_by_role("slider").focus()
    moving.keyboard.press("ArrowRight")
    moving.keyboard.press("ArrowRight")
    statuses = moving.locator(".sl-belt [role=status]")
    expect(statuses.first).to_have_text("The GPU binds: it never waits.")
    expect(statuses.last).to_contain_text("The workers bind: the GPU waits")
    expect(moving.locator(".sl-act")).to_have_text("✓ A100: 44: it never waits. B200: even 64 are too few.")
    moving.get_by_text("The same as a table").click()
    expect(moving.locator("tbody th")).to_have_text(
        ["A100: workers", "A100: link", "A100: GPU", "B200: workers", "B200: link", "B200: GPU"]
    )
    moving.get_by_role("button", name="One step").click()
    assert serious(moving) == []


def test_a_gpu_that_waits_for_late_batches_is_not_said_to_bind(moving):
    late = BURSTS.replace(hardware="20 ms")
    show(moving, "one", late, **data_of(late, TIMES))
    expect(moving.get_by_role("status")).to_contain_text("On average nothing is slower than the GPU, and yet")
    expect(moving.locator("#one .binds")).to_have_count(0)


def test_a_batch_after_the_hundredth_has_its_number_within_its_box(moving):
    show(moving, "one", BURSTS, **data_of(BURSTS, TIMES))
    boxes = moving.evaluate(
        """() => [...document.querySelectorAll('#one .token')].filter(one => one.textContent > 99)
            .map(one => [...one.children].map(part => part.getBoundingClientRect().width))"""
    )
    numbered = [(box, number) for box, number in boxes if number]
    assert len(numbered) > 10
    assert not [pair for pair in numbered if pair[1] >= pair[0] - 2], numbered


def test_on_paper_it_has_its_table_and_no_buttons(moving):
    show(moving, "one", WALL)
    moving.emulate_media(media="print")
    expect(moving.get_by_role("cell", name="64 ms")).to_be_in_viewport()
    table = moving.locator("#one table")
    assert table.evaluate("node => node.checkVisibility({contentVisibilityAuto: true})")
    expect(moving.get_by_role("button")).to_have_count(0)


def test_one_picture_moves_at_a_time_and_only_where_it_is_seen(moving):
    show(moving, "one", WALL)
    expect(moving.locator("#one").get_by_role("button", name="Pause")).to_be_visible()
    show(moving, "two", WALL)
    expect(moving.locator("#two").get_by_role("button", name="Pause")).to_be_visible()
    expect(moving.locator("#one").get_by_role("button", name="Play")).to_be_visible()
    clock = moving.locator("#two .sl-row span").last
    moving.locator("#space").evaluate("node => { node.style.height = '3000px'; scrollTo(0, 0); }")
    moving.wait_for_timeout(200)
    stopped = clock.text_content()
    moving.wait_for_timeout(200)
    assert clock.text_content() == stopped
    moving.evaluate("() => { for (const one of Object.values(all)) one.end(); }")
    expect(moving.get_by_role("img")).to_have_count(0)


def test_who_wants_no_motion_sees_a_still_picture_that_steps(moving):
    moving.emulate_media(reduced_motion="reduce")
    show(moving, "one", WALL)
    clock = moving.locator("#one .sl-row span").last
    stopped = clock.text_content()
    moving.wait_for_timeout(200)
    assert clock.text_content() == stopped
    expect(moving.get_by_role("button")).to_have_text(["One step"])
    moving.get_by_role("button").click()
    expect(clock).not_to_have_text(stopped)


@pytest.mark.parametrize("width", [240, 300, 390, 578, 800])
def test_nothing_overlaps_and_nothing_leaves_the_picture_or_the_page(moving, width):
    moving.set_viewport_size({"width": width, "height": 700})
    for pipeline in (WALL, RUNS["the accelerator"], RUNS["the drive"], RUNS["eight"]):
        show(moving, "one", pipeline, controls={"workers": [1, 8, 64]})
        boxes = moving.evaluate(
            """() => [...document.querySelectorAll('#one svg > text, #one button, #one input, #one p')]
                .filter(one => one.textContent || one.type === 'range')
                .map(one => one.getBoundingClientRect())
                .map(({left, right, top, bottom}) => [left, right, top, bottom])"""
        )
        cut_off = moving.evaluate(
            """() => {
                const svg = document.querySelector('#one svg'), whole = svg.getBoundingClientRect();
                return [...svg.querySelectorAll(':scope > text')].filter(one => {
                    const { left, right } = one.getBoundingClientRect();
                    return one.textContent && (left < whole.left - 1 || right > whole.right + 1);
                }).map(one => one.textContent);
            }"""
        )
        assert cut_off == []
        for place, (left, right, top, bottom) in enumerate(boxes):
            assert 0 <= left < right <= width
            for other in boxes[:place]:
                apart = left >= other[1] or other[0] >= right or top >= other[3] - 3 or other[2] >= bottom - 3
                assert apart
        moving.evaluate("() => all.one.end()")


def test_in_the_lab_a_slider_at_rest_brings_the_simulation_and_its_keys_stay_in_the_box(opened):
    notebook = opened(
        "from starvelab import *\nfrom starvelab.widgets import play",
        """picture = play(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256,
                        dataset=Samples(jitter=Jitter(spread=0.8)), workers=8), workers=[8, 40, 64])
picture""",
        "len(set(picture.trace.worker))",
    )
    notebook.run_all()
    box = notebook.cell(1).locator(".starvelab-box")
    said = box.get_by_role("status")
    expect(said).to_contain_text("The workers bind: the GPU waits")
    slider = box.get_by_role("slider", name="workers")
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "x", "b"):
        notebook.page.keyboard.press(key)
    # With every batch alike nobody would wait here: this is what chance costs in the kernel's run.
    expect(said).to_contain_text("On average nothing is slower than the GPU, and yet")
    assert len(notebook.cells()) == 3
    # The next frame of the picture does not close the table that was just opened.
    table = box.locator("details")
    clock = "it.parentElement.querySelector('.sl-row > span').textContent"
    table.evaluate(f"it => {{ it.open = true; {clock} = ''; }}")
    expect(table).to_have_attribute("open", "")
    notebook.page.wait_for_timeout(500)
    expect(table).to_have_attribute("open", "")
    assert notebook.errors() == []
