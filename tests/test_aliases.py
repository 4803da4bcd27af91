"""Modules by their second names: the same objects, with a warning where the name goes away."""

from __future__ import annotations

import re
import sys
from importlib import import_module

import pytest

import starvelab
from starvelab import TUTORIAL
from starvelab._aliases import DEPRECATED, SHORT


@pytest.fixture(autouse=True)
def not_imported_yet(monkeypatch):
    for name in [*SHORT, *DEPRECATED]:
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("name", sorted(SHORT))
def test_a_short_name_is_the_same_module_without_a_word(name):
    assert import_module(name) is import_module(SHORT[name])
    assert import_module(name).__spec__.name == SHORT[name]


def test_what_stands_in_a_module_is_found_by_its_short_name_too():
    assert import_module("starvelab.show.style") is import_module("starvelab.lesson.show.style")


@pytest.mark.parametrize("name", sorted(DEPRECATED))
def test_an_old_name_works_and_says_what_the_new_one_is(name):
    expected = re.escape(f"{name} is now {DEPRECATED[name]}. Import it from there.")
    with pytest.warns(DeprecationWarning, match=f"^{expected}$"):
        assert import_module(name) is import_module(DEPRECATED[name])


def test_a_name_that_never_was_stays_unknown():
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        import_module("starvelab.show.nothing")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("starvelab.lesson.show", "looks", "style"),
        ("starvelab.lesson.show.figure", "picture", "render_figure"),
        ("starvelab.lesson.show.style", "COLOURS", "COLORS"),
        ("starvelab.measure", "Record", "Measurement"),
        ("starvelab.measure", "Stage", "Transform"),
        ("starvelab.measure", "photo_stages", "photo_transforms"),
    ],
)
def test_an_old_name_in_a_module_works_and_says_what_the_new_one_is(module, old, new, monkeypatch):
    home = import_module(module)
    monkeypatch.delitem(vars(home), old, raising=False)  # left there where a test has imported it as a module
    expected = re.escape(f"{module}.{old} is now {module}.{new}. Use that name.")
    with pytest.warns(DeprecationWarning, match=f"^{expected}$"):
        assert getattr(home, old) is getattr(home, new)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = home.nothing


def old_names_of_values(tmp_path):
    """What the old names of fields and methods in `starvelab.measure` give, and what the new ones give."""
    from starvelab.measure import InputPipeline, Samples, diagnose
    from starvelab.measure.quality import Quality

    found = diagnose({"nothing": "1 / s", "device batch": "2 / s"})
    quality = Quality(0.1, 0.2, 3)
    pipe = InputPipeline(samples=Samples("none", (tmp_path,)))
    return {
        "Finding.culprit is now called Finding.bottleneck": (lambda: found.culprit, found.bottleneck),
        "Quality.foreign_load is now called Quality.background_load": (lambda: quality.foreign_load, 0.1),
        "InputPipeline.but is now called InputPipeline.replace": (lambda: pipe.but(workers=3).workers, 3),
    }


def test_old_fields_and_methods_of_measuring_work_and_say_what_the_new_ones_are(tmp_path):
    for said, (old, new) in old_names_of_values(tmp_path).items():
        with pytest.warns(DeprecationWarning, match=f"^{re.escape(said)}. Use that name.$"):
            assert old() == new


def test_old_names_of_the_model_and_the_simulation_work_and_say_what_the_new_ones_are():
    loader = starvelab.simulate.Loader(step_time="20 ms", prepare_time="50 ms")
    wall = starvelab.Pipeline(accelerator_rate="1000 img/s")
    step = wall.solve()
    for said, old, new in (
        ("but is now called replace", lambda: wall.but(workers=9), wall.replace(workers=9)),
        ("but is now called replace", lambda: loader.but(workers=9), loader.replace(workers=9)),
        ("but is now called replace", lambda: TUTORIAL.but(efficiency=1), TUTORIAL.replace(efficiency=1)),
        ("binding is now called bottleneck", lambda: step.binding, step.bottleneck),
        (
            "MissingFigureError is now called MissingValueError",
            lambda: starvelab.MissingFigureError,
            starvelab.MissingValueError,
        ),
    ):
        with pytest.warns(DeprecationWarning, match=f"^{said}. Use that name.$"):
            assert old() == new
