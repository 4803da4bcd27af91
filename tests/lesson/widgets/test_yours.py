"""The learner's model beside the lab's: they agree, or the picture and a sentence say where they part."""

from html import unescape

import pytest

from starvelab import runtime
from starvelab.lesson.my_model import PARTS, save_part
from starvelab.widgets import beside_lab, predict

RIGHT = {
    "step_time": "def step_time(b):\n    return Q_(41 / 1560 * b + 5.015, 'ms')",
    "data_demand": "def data_demand(throughput, size):\n    return throughput * size / Q_('1 img')",
    "cpu_time": "def cpu_time(b, size, workers, rate):\n    return b * size / workers / rate",
    "utilization": "def utilization(cpu, gpu):\n    return (gpu / max(cpu, gpu)).m_as('')",
    "starved_from": "def starved_from(cpu, gpu, more):\n    return floor((more / (cpu - gpu)).m_as('')) + 1",
    "how_many_workers": "def how_many_workers(b, size, rate, step):\n"
    "    return ceil((b * size / rate / step).m_as(''))",
}


def keep(**other: str) -> None:
    for name, text in (RIGHT | other).items():
        save_part(name, text)


def test_without_a_function_a_sentence_says_how_one_gets_there():
    assert str(beside_lab()).startswith("my_model.py holds no function yet. When a check above passes")
    keep()
    with runtime.use(runtime.GRADING):
        assert "holds no function" in str(beside_lab())


def test_where_all_is_right_both_belts_have_the_same_times_and_the_sentence_says_that_they_agree():
    keep()
    widget = beside_lab(storage="7 GB/s")
    assert RIGHT.keys() == PARTS.keys()
    for setting in ({"batch": 256, "workers": 8}, {"batch": 512, "workers": 40}, {"batch": 8, "workers": 64}):
        widget.children[0].setting = setting
        said = unescape(widget.message.value)
        assert "Your model and the lab's agree here: the GPU is busy" in said, said
        assert "<td>no" not in said
        yours, lab = widget.children[0].data["belts"]
        assert yours["parts"] == []
        assert yours["run"]["lanes"] == lab["run"]["lanes"] == setting["workers"]
        for column in ("read_done", "prepared", "step_start", "step_end"):
            assert yours["run"][column] == pytest.approx(lab["run"][column], rel=1e-3, abs=0.1), column


@pytest.mark.parametrize(
    ("name", "text", "station", "said"),
    [
        ("cpu_time", "def cpu_time(b, size, workers, rate):\n    return b * size / rate", "CPU",
         "They differ at cpu_time. Given 256, 500 KB, 8, 250 MB/s, "
         "yours returns 512 ms, and the lab's 64 ms."),
        ("step_time", "def step_time(b):\n    return Q_(41 / 1560 * b, 'ms')", "accelerator",
         "They differ at step_time. Given 256, yours returns 6.728 ms, and the lab's 11.74 ms."),
        ("data_demand", "def data_demand(throughput, size):\n    return 8 * throughput * size / Q_('1 img')",
         "storage", "They differ at data_demand."),
        ("how_many_workers", "def how_many_workers(b, size, rate, step):\n    return 1", None,
         "They differ at how_many_workers. Given 256, 500 KB, 250 MB/s, 11.74 ms, yours returns 1, and "
         "the lab's 44."),
    ],
)  # fmt: skip
def test_the_picture_shows_where_they_part(name, text, station, said):
    keep(**{name: text})
    widget = beside_lab(storage="7 GB/s")
    assert said in unescape(widget.message.value)
    assert widget.children[0].data["belts"][0]["parts"] == ([station] if station else [])
    assert said in unescape(widget.html())


@pytest.mark.parametrize("value", ["None", "Q_('-5 ms')", "'fast'", "1 / 0", "Q_(7, 'KB')"])
def test_what_no_picture_can_show_has_the_labs_in_its_place(value):
    keep(cpu_time=f"def cpu_time(b, size, workers, rate):\n    return {value}")
    said = unescape(beside_lab().message.value)
    assert "Your cpu_time " in said
    assert "The lab's is used instead." in said


def test_it_is_shown_when_a_prediction_is_locked():
    keep()
    predict("cpu-wall", unit="%", question="How busy is the GPU?")
    widget = beside_lab(after="cpu-wall")
    assert "18.3 %" not in widget.html()
    predict("cpu-wall", 20, unit="%")
    assert "the GPU is busy 18.3 % of the time" in unescape(widget.html())
