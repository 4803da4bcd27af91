"""SVG for explorers: well formed, announced to screen readers, escaped, readable on any theme."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from starvelab import (
    PUBLISHED,
    TUTORIAL,
    Hardware,
    InputError,
    Models,
    Pipeline,
    Samples,
    SingleNodeModel,
    Storage,
    Workers,
)
from starvelab.lesson.show import svg
from starvelab.model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE
from tests.lesson.show.drawn import boxes

NAME = "{http://www.w3.org/2000/svg}"
PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
DALI = PIPE.replace({"dataset.on_device.time": "0.12765 ms"}, workers="50 GB/s", phase="training").replace(
    batch_size=512
)
FULL = PIPE.replace(storage=Storage.NVMe_Gen4, link=Hardware.Cloud.A100)
EVERY = FULL.replace({"workers.handover.loop": "1 ms", "dataset.on_device.decoder_time": "0.1 ms"})


def parts(batch_size=256, assumptions=None, **changes):
    model = SingleNodeModel() if assumptions is None else SingleNodeModel(assumptions)
    return model.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=batch_size, **changes)


DRAWINGS = {
    "step bars": lambda: svg.step_bars(PIPE.solve()),
    "step bars of four resources": lambda: svg.step_bars(FULL.solve()),
    "step bars without overlap": lambda: svg.step_bars(FULL.solve(overlap=False)),
    "step parts": lambda: svg.step_parts(parts()),
    "step parts of a measured step": lambda: svg.step_parts(parts(assumptions=PUBLISHED)),
    "lines over the batch": lambda: svg.lines_over_batch(FULL.replace(batch_size=64)),
    "lines that do not cross": lambda: svg.lines_over_batch(PIPE.replace(batch_size=1, workers=500)),
    "lines of every resource": lambda: svg.lines_over_batch(EVERY),
    "step bars with decoding on the GPU": lambda: svg.step_bars(DALI.solve()),
    "a frame": lambda: svg.frame("", height=10, title="A <title> & more", description='It\'s "so"'),
}


def words(drawing: str) -> list[str]:
    return [text.text for text in ElementTree.fromstring(drawing).iter(f"{NAME}text")]


def rects(drawing: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawing).iter(f"{NAME}rect"))


def bars(drawing: str) -> list[ElementTree.Element]:
    """The bars themselves, without what is hatched in them."""
    return [one for one in rects(drawing) if one.get("fill") != "url(#hatched)"]


def width(rect: ElementTree.Element) -> float:
    return float(rect.get("width"))


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_each_drawing_is_well_formed_named_and_takes_the_color_of_the_page(draw):
    root = ElementTree.fromstring(draw())
    assert (root.tag, root.get("role"), root.get("fill")) == (f"{NAME}svg", "img", "currentColor")
    title, description = list(root)[:2]
    assert (title.tag, description.tag) == (f"{NAME}title", f"{NAME}desc")
    assert title.text
    assert description.text
    assert all(text.get("fill") is None for text in root.iter(f"{NAME}text"))
    assert all(line.get("stroke") == "currentColor" for line in root.iter(f"{NAME}line"))


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_title_and_description_are_escaped(text):
    root = ElementTree.fromstring(svg.frame("", height=10, title=text, description=text))
    assert [part.text for part in root] == [text, text]


def reach_of(text: ElementTree.Element) -> float:
    """Width in pixels in DejaVu Sans, one of the widest fonts a browser may take."""
    font = FontProperties(family="DejaVu Sans", weight=text.get("font-weight", "normal"))
    return TextPath((0, 0), text.text, size=float(text.get("font-size", 14)), prop=font).get_extents().width


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_everything_stands_inside_the_picture(draw):
    root = ElementTree.fromstring(draw())
    left, top, right, bottom = map(float, root.get("viewBox").split())
    for shape in root.iter(f"{NAME}rect"):
        assert left <= float(shape.get("x")) <= float(shape.get("x")) + width(shape) <= right
        assert top <= float(shape.get("y")) <= float(shape.get("y")) + float(shape.get("height")) <= bottom
    for text in root.iter(f"{NAME}text"):
        start, reach = float(text.get("x")), reach_of(text)
        low, high = (start - reach, start) if text.get("text-anchor") == "end" else (start, start + reach)
        assert left <= low < high <= right
        assert float(text.get("y")) < bottom


def test_the_bars_are_as_long_as_their_times():
    storage, cpu, link, accelerator, gauge, busy = map(width, bars(svg.step_bars(FULL.solve())))
    assert storage / cpu == pytest.approx((256 * 0.5 / 7) / 64, abs=0.01)
    assert link / cpu == pytest.approx((256 * 602112 / 32e6) / 64, abs=0.01)
    assert accelerator / cpu == pytest.approx(0.183488, abs=0.01)
    assert busy / gauge == pytest.approx(0.183488, abs=0.01)


def test_the_title_names_what_binds_and_the_description_has_every_time():
    title, description = list(ElementTree.fromstring(svg.step_bars(FULL.solve())))[:2]
    assert title.text == "The workers bind; the GPU is busy 18.3 %"
    assert description.text == (
        "Time for one batch: drive 18.29 ms, workers 64 ms, link 4.817 ms, GPU 11.74 ms. "
        "A step takes 64 ms. GPU, hatched: launches 5.015 ms. "
        "Busy: the share of it in which the GPU works, its launches among them."
    )
    by_storage = svg.step_bars(PIPE.solve(workers="50 GB/s", storage=Storage.SATA_SSD))
    assert ElementTree.fromstring(by_storage)[0].text.startswith("The drive binds;")


QUICK = TUTORIAL.replace(overhead_per_layer="0 ms", overhead_per_step="0 ms")
AT_8 = FULL.replace(batch_size=8)
S3 = Pipeline(dataset=Samples(size="115 KB"), batch_size=64, storage=Storage.S3_connection,
              workers=Workers(8, cores=16), hardware="138 img/s", assumptions=PUBLISHED)  # fmt: skip


@pytest.mark.parametrize(("pipeline", "fill", "hatched", "gauge", "said"), [
    # Each fill is of the resource whose bar is hatched, by the share of it; the gauge by the share of a step.
    (DALI.replace(assumptions=QUICK), ACCELERATOR, 65.357 / 105.696, None,
     "GPU, hatched: input on device 65.36 ms."),
    (DALI, ACCELERATOR, 80.402 / 120.741, 15.045 / 120.741, "65.36 ms, launches 15.02 ms."),
    (AT_8, ACCELERATOR, 5.015 / 5.22526, 5.015 / 5.22526,
     "Busy counts 5.015 ms of launches as work: without them it is 4.0 %."),
    (FULL, ACCELERATOR, 5.015 / 11.7432, 5.015 / 64,
     "Busy: the share of it in which the GPU works, its launches among them."),
    (AT_8.replace(assumptions=PUBLISHED), ACCELERATOR, 21.751 / 24.99, None,
     "Busy counts 3.239 ms of the GPU's 24.99 ms: for the rest it waits for launches."),
    (S3, CPU, 807 / 865.9, None, "Workers, hatched: waiting for the bucket 807 ms."),
    (PIPE.replace(hardware="100 img/s"), None, 0, None, "Busy: the share of it in which the GPU works."),
], ids=["decoding", "and launches", "mostly launches", "launches", "awaited", "waiting", "none"])  # fmt: skip
def test_what_is_not_the_work_of_a_resource_is_hatched_and_busy_says_what_counts(
    pipeline, fill, hatched, gauge, said
):
    drawing = svg.step_bars(pipeline.solve())
    of = [i for i, one in enumerate(rects(drawing)) if one.get("fill") == "url(#hatched)"]
    assert len(of) == bool(fill) + (gauge is not None)
    if fill:
        bar = rects(drawing)[of[0] - 1]
        assert bar.get("fill") == fill.color
        assert width(rects(drawing)[of[0]]) / width(bar) == pytest.approx(hatched, abs=0.003)
    if gauge is not None:
        assert width(rects(drawing)[of[1]]) / 330 == pytest.approx(gauge, abs=0.003)
    assert any(said in text for text in words(drawing))


def points(drawing):
    """The lines of a drawing, each as pairs of x and y."""
    lines = ElementTree.fromstring(drawing).iter(f"{NAME}polyline")
    return [[tuple(map(float, pair.split(","))) for pair in line.get("points").split()] for line in lines]


def test_the_lines_cross_where_the_accelerator_begins_to_wait_and_follow_the_workers():
    for workers, crossing in ((8, 22.4), (2, 5.1), (32, 138.5)):
        drawing = svg.lines_over_batch(PIPE.replace(batch_size=64, workers=workers))
        cpu, accelerator = points(drawing)
        # A point for each batch size; y grows downward.
        pairs = enumerate(zip(cpu, accelerator, strict=True))
        first = next(i for i, (own, other) in pairs if own[1] < other[1])
        (circle,) = ElementTree.fromstring(drawing).iter(f"{NAME}circle")
        assert float(circle.get("cx")) == pytest.approx(crossing * 500 / 160, abs=0.5)
        assert first < crossing <= first + 1
        assert accelerator[-1][1] == pytest.approx(200 * (1 - 9.22 / 24), abs=0.1), "the axes stay"
    assert "cross at 22.4" in svg.lines_over_batch(PIPE)
    apart = svg.lines_over_batch(PIPE.replace(workers=500))
    assert "circle" not in apart
    assert "Dashed" not in apart  # a line that is not drawn is not explained
    assert "Dashed: where the lines cross." in svg.lines_over_batch(PIPE)


def test_each_resource_has_a_line_with_dashes_of_its_own():
    lines = list(ElementTree.fromstring(svg.lines_over_batch(EVERY)).iter(f"{NAME}polyline"))
    assert [one.get("stroke") for one in lines] == [resource.color for resource in RESOURCES.values()]
    assert len({one.get("stroke-dasharray") for one in lines}) == len(RESOURCES)


def test_what_binds_is_bold_and_says_so():
    root = ElementTree.fromstring(svg.step_bars(FULL.solve()))
    bold = [text.text for text in root.iter(f"{NAME}text") if text.get("font-weight") == "bold"]
    assert bold == ["workers", "64 ms binds"]
    assert "11.74 ms (18.3 %)" in words(svg.step_bars(FULL.solve()))
    assert "80 % range 491.5 to 2142 img/s." in words(svg.step_bars(PIPE.solve(assumptions=PUBLISHED)))
    assert "range" not in svg.step_bars(PIPE.solve())


def test_without_overlap_nothing_binds_and_the_step_is_the_sum():
    step = FULL.solve(overlap=False)
    drawing = svg.step_bars(step)
    assert "binds" not in drawing
    assert "A step takes 98.85 ms (dashed line): nothing overlaps, so it is their sum." in words(drawing)
    *times, gauge, _ = map(width, bars(drawing))
    assert sum(times) == pytest.approx(gauge, abs=0.5)


def test_a_step_consists_of_compute_or_memory_and_overhead():
    drawing = svg.step_parts(parts())
    assert ElementTree.fromstring(drawing)[0].text == "The largest part of the step is compute"
    assert {"6.728 ms (57.3 %)", "0.6668 ms (5.7 %)", "5.015 ms (42.7 %)"} <= set(words(drawing))
    assert "That makes 21800 img/s." in words(drawing)
    assert "largest part of the step is overhead" in svg.step_parts(parts(22))
    # A measured step is not said to be made of its parts; what takes no time has no bar.
    measured = svg.step_parts(parts(assumptions=PUBLISHED))
    assert any(", as measured; the parts are the formula's." in said for said in words(measured))
    assert not any("+ overhead" in said for said in words(measured))
    _, memory, overhead = map(width, rects(measured))
    assert (memory >= 1, overhead) == (True, 0)


@pytest.mark.parametrize(("draw", "given", "said"), [
    (svg.step_bars, PIPE, "step_bars looks at a solved pipeline, got Pipeline. Pass pipeline.solve()."),
    (svg.step_bars, PIPE.solve(batch_size=[8, 16]), "step_bars looks at one point, got 2. Solve for one."),
    (svg.step_parts, parts([8, 16]),
     "step_parts draws one result of SingleNodeModel, got a sweep. Solve one batch size."),
    (svg.step_parts, PIPE.solve(), "step_parts draws one result of SingleNodeModel, got Step. Solve one"),
    (svg.loader_lanes, 7, "loader_lanes draws a trace, got int. Pass pipeline.simulate"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused(draw, given, said):
    with pytest.raises(InputError, match=re.escape(said)):
        draw(given)


def lanes(**changes):
    samples = Samples(cpu_time="30 ms", transfer="5 MB")
    pipeline = Pipeline(dataset=samples, batch_size=1, link="1 GB/s", hardware="20 ms").replace(**changes)
    return svg.loader_lanes(pipeline.simulate(batches=60, replicas=1).trace())


def test_lanes_end_where_the_picture_ends():
    for resource in (CPU, LINK, ACCELERATOR):
        assert all(0 <= start <= end <= 1.002 for start, end in boxes(lanes(workers=2), resource.color))


@pytest.mark.parametrize(("whole", "count"), [(False, 20), (True, 60)])
def test_the_whole_of_a_trace_is_seen_where_that_is_asked_for(whole, count):
    """With one worker a slider of batches changed nothing beyond the five that 600 ms show."""
    trace = Pipeline(dataset=Samples(cpu_time="30 ms"), batch_size=1, workers=1, hardware="20 ms").simulate(
        batches=60, replicas=1, warm_up=0
    )
    assert len(boxes(svg.loader_lanes(trace.trace(), whole=whole), CPU.color)) == count


# --- shares and costs


@pytest.mark.parametrize(("shares", "widths", "colors", "said"), [
    ({"loop": 0.5, "<device>": 0.25}, [190, 95], [CPU] * 2, "loop 50.0 %, &lt;device&gt; 25.0 %."),
    # Of more than the whole, the outline is filled in another color.
    ({"workers": 0.5, "drive": 1.5}, [190, 380], [CPU, STORAGE], "drive 150.0 %."),
    ({"GPUs busy": 0.9, "of it": 0.5}, [342, 190], [ACCELERATOR, CPU], "GPUs busy 90.0 %, of it 50.0 %."),
])  # fmt: skip
def test_a_share_fills_its_part_of_the_outline_in_a_color(shares, widths, colors, said):
    drawing = svg.share_bars(shares, title="Who waits")
    found = rects(drawing)
    assert [width(rect) for rect in found] == [widths[0], 380, widths[1], 380]
    assert [rect.get("fill") for rect in found[0::2]] == [one.color for one in colors]
    assert "<title>Who waits</title>" in drawing
    assert said in drawing


def test_what_a_part_adds_fills_the_outline_of_what_it_costs():
    drawing = svg.cost_bars({"read": 10, "compute": 40}, {"read": 5, "compute": 40}, title="A ladder")
    assert [*map(width, rects(drawing))] == pytest.approx([41.2, 82.5, 330, 330], abs=0.1)
    assert "read costs 10.0 ms, compute costs 40.0 ms." in drawing
    assert ">costs 10.0, adds 5.0 ms</text>" in drawing
