"""What does not fit into memory is drawn apart in each figure, and named in its words and its table."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from starvelab import Hardware, Models, Pipeline, SingleNodeModel
from starvelab.lesson.show import svg
from starvelab.lesson.show.figure import COLORS
from starvelab.show import over_workers, stage_bars
from starvelab.widgets import explore

# A batch of 2048 needs about 91 GB for training, of the 80 GB that there are.
FITS = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, phase="training")
TOO_LARGE = FITS.replace(batch_size=2048)
WHY = "is not feasible. The step needs about 90.11 GB of memory, and NVIDIA A100 80GB SXM has 80 GB."


def test_the_bars_of_a_step_that_does_not_fit_say_so_in_words_and_table():
    picture, fitting = stage_bars(TOO_LARGE.solve()), stage_bars(FITS.solve())
    for text in (picture.caption, picture.alt):
        assert f"What is drawn hollow {WHY}" in text
    assert picture.headers[-1] == "feasible"
    assert {row[-1] for row in picture.rows} == {"no"}
    assert "feasible" not in (*fitting.headers, *fitting.caption.split())


def test_a_line_of_steps_that_do_not_fit_is_pale():
    picture = over_workers({"small": FITS, "large": TOO_LARGE}, workers=[8, 16])
    assert picture.svg.count("opacity: 0.4") == 2, "the line, and its name"
    assert picture.headers == ["workers", "small", "large (not feasible)"]
    for text in (picture.caption, picture.alt):
        assert f"Large: the workers bind, up to 16 of them. What is drawn pale {WHY}" in text


@pytest.mark.parametrize("draw", [
    lambda p: svg.step_bars(p.solve()),
    lambda p: svg.step_parts(
        SingleNodeModel().solve(
            model=p.model, hardware=p.hardware.of, batch_size=p.batch_size, phase=p.phase
        )
    ),
], ids=["step_bars", "step_parts"])  # fmt: skip
def test_the_bars_of_an_explorer_are_hollow_and_its_title_says_why(draw):
    hollow, filled = (ElementTree.fromstring(draw(pipe)) for pipe in (TOO_LARGE, FITS))
    colors = {*COLORS.values()}
    assert not colors & {part.get("fill") for part in hollow.iter()}
    assert colors & {part.get("stroke") for part in hollow.iter()}
    assert colors & {part.get("fill") for part in filled.iter()}
    title, description = (part.text for part in list(hollow)[:2])
    assert title.startswith("Not feasible. ")
    assert f"What is drawn hollow {WHY}" in description
    shown = [part.text for part in hollow.iter() if part.tag.endswith("}text")]
    assert "What is drawn hollow is not feasible." in shown
    height = float(hollow.get("viewBox").split()[-1])
    assert all(float(part.get("y")) < height for part in hollow.iter() if part.tag.endswith("}text"))
    assert "feasible" not in "".join(filled.itertext())


def test_an_explorer_of_batch_sizes_hatches_those_that_do_not_fit():
    drawing = svg.lines_over_batch(FITS, batches=2000)
    [hatched] = [
        part for part in ElementTree.fromstring(drawing).iter() if part.get("fill") == "url(#cannot-run)"
    ]
    # 500 pixels are 2,000 batches, and 1,817 of them fit.
    assert float(hatched.get("x")) == pytest.approx(1818 / 4, abs=0.06)
    assert float(hatched.get("x")) + float(hatched.get("width")) == pytest.approx(500)
    shown = [part.text for part in ElementTree.fromstring(drawing).iter() if part.tag.endswith("}text")]
    assert "What is drawn hatched is not feasible." in shown
    assert "What is drawn hatched is not feasible." in drawing.split("</desc>")[0]
    assert "cannot-run" not in svg.lines_over_batch(FITS)


def test_the_table_of_an_explorer_says_what_does_not_fit():
    explorer = explore(FITS, batch_size=[256, 2048])
    assert "feasible" not in explorer.table.value
    explorer.controls["batch_size"].value = "2048"
    assert '<th scope="col" style="text-align:left">feasible</th>' in explorer.table.value
    assert explorer.sentence.value.count("The step needs about 90.11 GB") == 1
