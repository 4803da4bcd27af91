"""The moving picture without a page: what its script is given, and what stands where no script runs."""

import json
from html import unescape

import numpy as np
import pytest

from starvelab import Q_, Hardware, InputError, Models, Pipeline
from starvelab.lesson.widgets._moving import SCRIPT, data_of, run_of
from starvelab.model.resources import RESOURCES
from starvelab.widgets import play, predict
from tests.rejected import message

WALL = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8)


def test_the_script_travels_with_the_package_and_asks_nobody():
    script = SCRIPT.read_text(encoding="utf-8")
    assert "import " not in script.replace("import it", "").replace("game import", "")
    assert "fetch(" not in script
    assert script.count("http") == 2  # the names of SVG and HTML


def test_what_the_script_is_given_is_small_and_says_how_each_resource_looks():
    data = data_of(WALL.replace(workers=64))
    assert len(json.dumps(data)) < 60_000
    assert [(one["color"], one["hatch"]) for one in data["resources"]] == [
        (one.color, one.hatch) for one in RESOURCES.values()
    ]
    assert "Infinity" not in json.dumps(data_of(WALL.replace(hardware="12 ms")))


def test_a_slider_at_rest_has_the_new_setting_simulated():
    widget = play(WALL, workers=[4, 44], batch_size=[64, 256])
    picture = widget.children[0]
    assert picture.data["controls"] == {"workers": [4, 8, 44], "batch": [64, 256]}
    picture.setting = {"batch": 256, "workers": 44}
    assert picture.data["belts"][0]["run"]["lanes"] == 44
    assert len(set(widget.trace.worker)) == 44
    assert picture.data["controls"] == {"workers": [4, 8, 44], "batch": [64, 256]}
    supplied = play(WALL.replace(workers=Q_("2 GB/s")), batch_size=[64, 256])
    supplied.children[0].setting = {"batch": 64, "workers": 1}
    assert supplied.trace.batch_size == 64


def test_where_no_widget_is_shown_the_same_run_stands_still_with_its_table():
    html = play(WALL.replace(storage="7 GB/s")).html()
    assert 'role="img"' in html
    assert "ms of a loader, 8 workers; the GPU is busy 18.3 %</title>" in html
    assert all(f">{lane}</text>" in html for lane in ("worker 8", "queue, up to 0", "GPU"))
    assert "the workers bind" in html
    assert "the GPU waits 81.7 % of the time" in html
    assert "<td>" in html


def test_several_pipelines_are_played_on_one_clock_with_the_same_sliders():
    widget = play({"A100": WALL, "B200": WALL.replace(hardware=Hardware.Cloud.B200)}, workers=[8, 44])
    picture = widget.children[0]
    assert [belt["name"] for belt in picture.data["belts"]] == ["A100", "B200"]
    picture.setting = {"batch": 256, "workers": 44}
    assert [belt["run"]["lanes"] for belt in picture.data["belts"]] == [44, 44]
    html = widget.html()
    assert html.index("<strong>A100</strong>") < html.index("<strong>B200</strong>")
    assert html.count('role="img"') == 2


def test_a_picture_that_follows_a_prediction_shows_nothing_before_it_is_locked():
    predict("cpu-wall", unit="%", question="How busy is the GPU?")
    widget = play(WALL, after="cpu-wall", workers=[8, 44])
    assert "opens" not in widget.html()
    assert 'The question is: "How busy is the GPU?"' in unescape(widget.html())
    assert len(widget.children) == 2
    predict("cpu-wall", 20, unit="%")
    assert "waits 81.7 % of the time" in widget.html()
    assert "This picture" not in widget.html()


def test_ones_own_times_are_played():
    times = [180 if number % 11 == 7 else 20 for number in range(440)]
    widget = play(WALL.replace(workers=2), prepare_times=Q_(times, "ms"))
    took = widget.trace.prepared - widget.trace.prepare_start
    assert took.max() == pytest.approx(180)
    assert took.min() == pytest.approx(20)
    _, _, _, shown = run_of(WALL.replace(workers=2), Q_(times, "ms"))
    assert shown > 420  # whole: a part of them may wait longer, or less


def test_of_several_hosts_the_slowest_is_played():
    slow = play(WALL.replace({"hardware.ranks.hosts": 4, "hardware.ranks.slow": 2.0}))
    assert "This is the slowest of 4 hosts." in slow.html()
    even = play(WALL.replace({"hardware.ranks.hosts": 4}))
    assert "slowest" not in even.html()
    took = [float(np.mean(one.trace.prepared - one.trace.prepare_start)) for one in (slow, even)]
    assert took[0] == pytest.approx(2 * took[1])


def test_a_slider_that_cannot_be_made_is_rejected():
    for controls, got in (({"cores": [8, 16]}, "cores=[8, 16]"), ({"workers": [8]}, "workers=[8]")):
        assert message(InputError, play, WALL, **controls) == (
            "A moving picture has sliders of two or more values for batch_size and workers, got "
            f"{got}. Pass for example workers=range(1, 65)."
        )
    assert message(InputError, play, WALL.replace(workers=Q_("2 GB/s")), workers=[4, 8]) == (
        "A slider of workers needs a pipeline that counts them, got workers="
        "<Quantity(2.0, 'gigabyte / second')>. Pass Pipeline(..., workers=8)."
    )
    assert message(InputError, play, WALL, find="batch_size", workers=[4, 8]) == (
        "find must name a slider of the picture, got find='batch_size'. Pass batch_size=...."
    )
