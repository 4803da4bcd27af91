"""Explorers: the picture follows the controls, and what goes wrong is shown where it went wrong."""

import re
from itertools import combinations

import ipywidgets
import pytest

from starvelab import PUBLISHED, Q_, TUTORIAL, Cache, Drive, Hardware, InputError, Models, Pipeline, Storage
from starvelab.lesson.widgets._measured import CHANGES, mixed
from starvelab.runtime import GRADING, Runtime, use
from starvelab.widgets import Drawing, explore, predict
from tests.rejected import message

A100 = Hardware.Cloud.A100
PIPE = Pipeline(model=Models.ResNet50, hardware=A100)


def svg(text="") -> str:
    return f'<svg role="img"><title>{text}</title></svg>'


def shows(**values) -> Drawing:
    return Drawing(svg(values), f"It is {values}.", headers=["name", "value"], rows=list(values.items()))


def test_the_picture_the_sentence_and_the_table_follow_the_control():
    explorer = explore(shows, workers=(1, 64))
    assert "{&#x27;workers&#x27;: 1}" in explorer.sentence.value
    explorer.controls["workers"].value = 8
    assert explorer.figure.value == svg({"workers": 8})
    assert "It is {&#x27;workers&#x27;: 8}." in explorer.sentence.value
    assert "<td>8</td>" in explorer.table.value
    assert "<summary" in explorer.table.value
    # Many controls stand on a board beside their picture.
    few, many = (explore(shows, **{f"n{i}": True for i in range(count)}) for count in (6, 7))
    assert ("starvelab-board" in few._dom_classes, "starvelab-board" in many._dom_classes) == (False, True)
    assert "starvelab-figure" in many.figure._dom_classes


def test_a_value_that_does_not_change_draws_nothing_and_an_svg_string_has_no_words():
    drawn = []
    explorer = explore(lambda x: drawn.append(x) or svg(x), x=(1, 9))
    explorer.controls["x"].value = 5
    explorer.controls["x"].value = 5
    explorer._redraw()
    assert drawn == [1, 5]
    assert (explorer.figure.value, explorer.sentence.value, explorer.table.value) == (svg(5), "", "")


def test_nothing_is_drawn_while_a_notebook_is_graded():
    drawn = []
    with use(GRADING):
        explorer = explore(lambda x: drawn.append(x) or svg(x), x=(1, 9))
    assert (repr(explorer), explorer.controls["x"].disabled, drawn) == ("[Explorer: x]", False, [])


@pytest.mark.parametrize(("described", "kind", "label", "first", "drawn"), [
    ((1, 64), ipywidgets.IntSlider, "n", 1, 1),
    ((0.5, 2.5), ipywidgets.FloatSlider, "n", 0.5, 0.5),
    ((1, 2.5, 0.5), ipywidgets.FloatSlider, "n", 1, 1),
    ([1, 2, 4], ipywidgets.SelectionSlider, "n", "1", 1),
    ((1, 2, 4, 8), ipywidgets.SelectionSlider, "n", "1", 1),
    (range(3, 6), ipywidgets.SelectionSlider, "n", "3", 3),
    (["forward", "training"], ipywidgets.ToggleButtons, "n", "forward", "forward"),
    (list("abcde"), ipywidgets.Dropdown, "n", "a", "a"),
    ({"one": 1, "two": None}, ipywidgets.ToggleButtons, "n", "one", 1),
    (True, ipywidgets.Checkbox, "n", True, True),
    ((Q_("1 GB/s"), Q_("50 GB/s")), ipywidgets.FloatSlider, "n (GB/s)", 1, Q_("1 GB/s")),
    ((Q_("100 KB"), Q_("5 MB")), ipywidgets.FloatSlider, "n (KB)", 100, Q_("100 KB")),
    ([Q_("1 GB/s"), Q_("500 MB/s")], ipywidgets.SelectionSlider, "n", "1 GB/s", Q_("1 GB/s")),
    ([A100, Hardware.Cloud.V100], ipywidgets.ToggleButtons, "n", A100.name, A100),
])  # fmt: skip
def test_a_description_makes_the_control_that_fits_it(described, kind, label, first, drawn):
    seen = []
    explorer = explore(lambda n: seen.append(n) or svg(), n=described)
    control = explorer.controls["n"]
    assert type(control) is kind
    assert (control.description, control.value) == (label, first)
    assert getattr(control, "continuous_update", True), "a slider reports while it is dragged"
    assert seen == [drawn]


def test_a_slider_without_a_step_moves_in_round_ones_and_a_quantity_keeps_its_unit():
    for ends, step, readout in (((0.0, 1.0), 0.01, ".2f"), ((0.5, 50.0), 0.1, ".1f"), ((1.0, 1e3), 1, ".0f")):
        control = explore(shows, x=ends).controls["x"]
        assert (control.step, control.readout_format) == (pytest.approx(step), readout)
    seen = []
    size = (Q_("100 KB"), Q_("5 MB"), Q_("100 KB"))
    control = explore(lambda size: seen.append(size) or svg(), size=size).controls["size"]
    assert (control.min, control.max, control.step) == (100, 5000, 100)
    control.value = 500
    assert seen[-1] == Q_("500 KB")


def test_a_control_starts_at_the_default_of_its_argument():
    half = Q_("500 KB")

    def draw(workers=8, size=half, phase="training", pinned=False, odd="not offered"):
        return svg((workers, f"{size:~}", phase, pinned, odd))

    explorer = explore(
        draw, workers=[1, 8, 16], size=(Q_("0.1 MB"), Q_("1 MB")), phase=["forward", "training"], pinned=True,
        odd=["a", "b"],
    )  # fmt: skip
    assert [control.value for control in explorer.controls.values()] == ["8", 0.5, "training", False, "a"]


@pytest.mark.parametrize(("described", "said"), [
    ("CPU", "The control 'x' must be a range, some values or a switch, got 'CPU'. Write (low, high)"),
    ([], "must be a range, some values or a switch, got []."),
    (3, "must be a range, some values or a switch, got 3."),
    ((5, 1), "The control 'x' must run from a low to a high value, got (5, 1)."),
    ((1, 1), "must run from a low to a high value, got (1, 1)."),
    ((1, 5, 0), "must run from a low to a high value, got (1, 5, 0)."),
    ((1, float("inf")), "must run from a low to a high value, got (1, inf)."),
    ((Q_("1 KB"), 5), "The ends of the control 'x' must be quantities of one kind, got "),
    ((5, Q_("1 KB")), "The ends of the control 'x' must be quantities of one kind, got "),
    ((Q_("1 KB"), Q_("5 s")), "The ends of the control 'x' must be quantities of one kind, got "),
    (["one"], "The control 'x' must offer two or more values, got ['one']."),
])  # fmt: skip
def test_a_control_that_cannot_be_made_is_refused(described, said):
    assert said in message(InputError, explore, shows, x=described)


def test_an_explorer_without_controls_or_a_drawing_is_refused():
    assert "needs something to move, got no controls. Pass for example" in message(InputError, explore, shows)
    said = message(InputError, explore, "picture", x=(1, 2))
    assert "draws with a function or a Pipeline, got 'picture'. Pass one of" in said


def test_an_error_while_drawing_is_shown_and_goes_away_with_it():
    explorer = explore(lambda x: svg(1 / (x - 1)), x=(1, 3))
    assert "Problem." in explorer.message.value
    assert "ZeroDivisionError: division by zero" in explorer.message.value
    assert explorer.figure.value == ""
    explorer.controls["x"].value = 2
    assert explorer.message.value == ""
    assert explorer.figure.value == svg(1.0)
    explorer = explore(lambda batch: svg(PIPE.solve(batch_size=batch - 1)), batch=(1, 3))
    assert "Problem.</strong> batch_size must be finite and positive, got 0." in explorer.message.value


@pytest.mark.parametrize(("drawn", "said"), [
    (None, "must return a Drawing or an SVG string, got None. Return Drawing(svg, sentence)."),
    ("a text", "must return a Drawing or an SVG string, got Drawing("),
    (Drawing(svg(), headers=["a"]), "A Drawing has both headers and rows or neither. Pass the one that is"),
])  # fmt: skip
def test_what_is_no_drawing_is_explained(drawn, said):
    assert said in explore(lambda **_: drawn, x=(1, 3)).message.value


def test_until_its_prediction_is_locked_an_explorer_is_shut_and_then_opens():
    predict("cpu-wall", question="What **binds**?", choices=["CPU", "GPU"])
    explorer = explore(shows, after="cpu-wall", workers=(1, 64))
    assert explorer.controls["workers"].disabled
    assert "opens when you have locked your prediction above. The question is" in explorer.message.value
    assert ": &quot;What binds?&quot;</p>" in explorer.message.value
    assert "cpu-wall" not in explorer.message.value
    assert explorer.figure.value == ""
    predict("cpu-wall", "CPU")
    assert not explorer.controls["workers"].disabled
    assert explorer.message.value == ""
    assert explorer.figure.value == svg({"workers": 1})
    assert explore(shows, after="cpu-wall", workers=(1, 64)).figure.value == svg({"workers": 1})
    assert repr(explorer) == "[Explorer: workers]"


def test_a_pipeline_draws_its_own_bars_explains_itself_and_lists_its_times():
    pipe = PIPE.replace(batch_size=256, workers=8)
    explorer = explore(
        pipe, {"dataset.size": (Q_("100 KB"), Q_("1 MB"))}, batch_size=(1, 1024), workers=[4, 8, 16],
        overlap=True,
    )  # fmt: skip
    assert [control.value for control in explorer.controls.values()] == [
        500, 256, "8", True, "round numbers",
    ]  # fmt: skip
    assert explorer.controls["dataset.size"].description == "sample size (KB)"
    assert explorer.figure.value.count("<svg") == 1
    assert 'role="img"' in explorer.figure.value
    assert "The workers bind" in explorer.sentence.value
    assert "<td>64 ms</td>" in explorer.table.value
    explorer.controls["batch_size"].value = 16
    assert "The GPU binds" in explorer.sentence.value


def test_a_field_of_a_part_goes_by_the_name_that_people_have_for_it():
    pipe = PIPE.replace(storage=Drive("1 GB/s", cache=Cache(0.5)))
    paths = {"workers.cores": [4, 8], "hardware.count": (1, 8), "storage.cache.share": (0.0, 1.0)}
    explorer = explore(pipe, paths, batch_size=(1, 64))
    labels = [control.description for control in explorer.controls.values()]
    assert labels == ["CPU cores", "GPUs", "share in the cache", "batch size", "assumptions"]
    assert repr(explorer) == f"[Explorer: {', '.join(labels)}]"
    assert "It shows CPU cores = 4, GPUs = 1, " in explorer.html()
    assert "A pipeline has no field &#x27;speed&#x27;" in explore(PIPE, speed=(1, 2)).message.value
    rate = explore(Pipeline(hardware="826 img/s"), hardware=(Q_("200 img/s"), Q_("2000 img/s")))
    assert rate.controls["hardware"].value == 826
    drives = {"one drive": Storage.NVMe_Gen4, "not modeled": None}
    assert explore(PIPE, storage=drives).controls["storage"].value == "not modeled"


def test_a_page_without_widgets_shows_one_setting_once_the_prediction_is_locked():
    with use(Runtime(has_widgets=False)):
        held_back = explore(shows, after="k", workers=(1, 64))._repr_mimebundle_()["text/html"]
        predict("k", 3)
        html = explore(shows, after="k", workers=(1, 64))._repr_mimebundle_()["text/html"]
    assert "This explorer opens when" in held_back
    assert "svg" not in held_back
    assert "It shows workers = 1. In JupyterLab they move." in html
    assert svg({"workers": 1}) in html
    # Of a pipeline it says what both kinds of numbers give.
    explorer = explore(PIPE.replace(batch_size=256, workers=32), batch_size=[256, 512])
    html = explorer.html()
    assert "It shows batch size = 256, assumptions = round numbers. " in html
    first, _, other = html.partition("Switched to measured:")
    assert ("The workers bind" in first, "The GPU binds" in other) == (True, True)
    assert explorer.controls["assumptions"].value == "round numbers"


def test_a_pipeline_with_round_numbers_gets_a_switch_to_measured_ones_and_its_verdict_follows():
    pipe = PIPE.replace(batch_size=256, workers=32)
    explorer = explore(pipe, workers=(1, 64))
    switch = explorer.controls["assumptions"]
    assert list(explorer.controls) == ["workers", "assumptions"]
    assert (type(switch), switch.options) == (ipywidgets.ToggleButtons, ("round numbers", "measured"))
    assert "The workers bind" in explorer.sentence.value
    switch.value = "measured"
    assert "The GPU binds" in explorer.sentence.value
    assert explorer.switch.assumptions is PUBLISHED
    for changes in (
        {"assumptions": PUBLISHED},
        {"assumptions": TUTORIAL.replace(flop_per_mac=2)},
        {"hardware": "826 img/s"},
    ):
        assert list(explore(PIPE.replace(**changes), workers=(1, 64)).controls) == ["workers"]
    # So does a function that draws with assumptions.
    explorer = explore(lambda x, assumptions=PUBLISHED: svg(assumptions.name), x=(1, 3))
    assert (explorer.controls["assumptions"].value, explorer.figure.value) == ("measured", svg("PUBLISHED"))
    own = explore(lambda x, assumptions: svg(assumptions), x=(1, 3), assumptions=["a", "b"])
    assert own.controls["assumptions"].options == ("a", "b")


def test_the_switch_lists_what_it_changes_and_each_change_can_be_made_alone():
    explorer = explore(PIPE.replace(batch_size=256, workers=32), workers=(1, 64))
    ticks, buttons = explorer.switch.ticks, explorer.controls["assumptions"]
    said = [tick.description for tick in ticks.values()]
    assert said == [
        "training, not a forward pass",
        "the GPU's measured rate, not half of its peak",
        "launches of 0.2556 ms a layer beside the work, not 0.1 ms on top of it",
        "images of 114.7 KB, not 500 KB",
        "145.6 img/s a worker, not 250 MB/s",
        "workers share the host's cores",
    ]
    assert set(ticks.values()) < set(explorer.switch.row.children)
    size = next(tick for tick in ticks.values() if "images of" in tick.description)
    size.value = True
    # Of 32 workers with 250 MB/s each.
    assert "<td>3.669 ms</td>" in explorer.table.value
    assert (buttons.value, explorer.switch.assumptions.sample_size) == (None, PUBLISHED.sample_size)
    assert explorer.switch.assumptions.phase == "forward"
    buttons.value = "measured"
    assert {tick.value for tick in ticks.values()} == {True}
    for tick in ticks.values():
        tick.value = False
    assert (buttons.value, explorer.switch.assumptions) == ("round numbers", TUTORIAL)
    # What a picture does not show is not listed.
    explorer = explore(lambda x, assumptions=TUTORIAL: svg(assumptions.sample_size), x=(1, 3))
    assert [tick.description for tick in explorer.switch.ticks.values()] == [said[3]]


def test_each_change_of_the_switch_is_solved_once_and_alone():
    asked = []
    explore(lambda x, assumptions=TUTORIAL: asked.append(assumptions) or svg(assumptions), x=(1, 3))
    assert asked == [TUTORIAL, *(mixed([change]) for change in CHANGES), TUTORIAL], "the last is the picture"


@pytest.mark.parametrize("change", CHANGES)
def test_a_range_of_no_width_is_not_said_beside_its_value(change):
    """Of round numbers but for one measured value the range was "4000 to 4000 img/s"."""
    some = PIPE.replace(batch_size=256, workers=8, assumptions=mixed([change]))
    for said in (some.solve().summary, some.bill(price="2 USD/h", samples=1000).summary):
        assert not re.search(r"range (\S+) (% )?to \1 ", said)


def test_the_changes_of_the_switch_hold_each_assumption_in_which_the_two_differ_and_each_mixture_solves():
    changed = [name for names in CHANGES.values() for name in names]
    differ = {name for name in PUBLISHED.numbers if PUBLISHED.numbers[name] != TUTORIAL.numbers[name]}
    ranged = {name for name, fact in PUBLISHED.facts.items() if fact.low is not None}
    assert len(changed) == len(set(changed))
    assert set(changed) == differ | ranged
    full = PIPE.replace(storage=Storage.NVMe_Gen4, link=A100, workers=8, batch_size=256)
    for number in (0, 1, 2, len(CHANGES) - 1, len(CHANGES)):
        for some in combinations(CHANGES, number):
            assert full.solve(assumptions=mixed(some)).throughput.magnitude > 0
    assert (mixed([]), mixed(CHANGES)) == (TUTORIAL, PUBLISHED)
