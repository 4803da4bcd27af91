"""A student's figure reaches a check as data."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from starvelab_grader.sandbox.codec import Decoder, Encoder, describe_figure
from tests.hostile.tiny import execute, notebook, points, printed


def a_figure() -> Figure:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot(np.array([1, 2]), [3.0, 4.0], label="measured")
    left.set(title="Sweep", xlabel="batch", ylabel="ms", xscale="log")
    left.legend()
    right.bar([0, 1], [5, 6])
    right.barh([2], [7], label="lying")
    return figure


def test_all_that_is_drawn_and_written_is_told():
    told = Decoder().decode(Encoder().encode(a_figure()))
    left, right = told["figure"]
    assert {name: left[name] for name in ("title", "xlabel", "ylabel", "xscale", "yscale", "legend")} == {
        "title": "Sweep",
        "xlabel": "batch",
        "ylabel": "ms",
        "xscale": "log",
        "yscale": "linear",
        "legend": ["measured"],
    }
    assert left["lines"] == [{"label": "measured", "x": [1, 2], "y": [3.0, 4.0]}]
    standing, lying = right["bars"]
    assert (standing["at"], standing["length"], standing["lying"]) == ([0.0, 1.0], [5, 6], False)
    assert (lying["at"], lying["length"], lying["lying"], lying["label"]) == ([2.0], [7], True, "lying")


def test_axes_are_a_figure_of_one():
    assert len(describe_figure(a_figure().axes[0])["figure"]) == 1


@pytest.mark.parametrize("other", [None, 5, "figure", object()])
def test_anything_else_is_no_figure(other):
    assert describe_figure(other) is None


@pytest.mark.grading
def test_a_check_can_look_at_a_figure(tmp_path):
    answer = (
        "def draw(x):\n"
        "    from matplotlib.figure import Figure\n"
        "    axes = Figure().add_subplot(xlabel='batch')\n"
        "    axes.plot(x, [2 * one for one in x])\n"
        "    return axes.figure"
    )
    test = (
        "(axes,) = draw([1, 2])['figure']\n"
        "assert axes['xlabel'] == 'batch'\n"
        "assert axes['lines'][0]['y'] == [2, 4]"
    )
    nb = execute(notebook(answer, drawn=(3, test)), tmp_path)
    assert points(nb) == {"drawn": 3}, printed(nb, "drawn")
