"""A training script is read by what it does, and its four faults are faults."""

from __future__ import annotations

import pytest

from starvelab.errors import InputError
from starvelab.measure.training_parts import blur, counting, crop, decode, read_labels
from starvelab.measure.training_script import (
    changed_training,
    script_text,
    simulated_throughput,
    starved_script,
    what_it_does,
)

# Each repair, and the numbers that it changes.
REPAIRS = {
    "workers": [("workers=3", "workers=4")],
    "order": [('Transform("blur", blur),', ""), ("crop),", 'crop), Transform("blur", blur),')],
    "labels": [("    labels = read_labels()", ""), ("def look_up", "labels = read_labels()\n\ndef look_up")],
    "bytes": [('Transform("normalize", normalize),', "")],
}
CHANGED = {
    "workers": {"workers": 4},
    "order": {"blurred pixels": 224 * 224},
    "labels": {"label reads": 0},
    "bytes": {"bytes sent": 3 * 224 * 224},
}


def repaired(*names):
    text = starved_script()
    for old, new in (pair for name in names for pair in REPAIRS[name]):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def starved():
    return what_it_does(starved_script())


def test_the_starved_script_is_counted(starved):
    assert starved == {
        "workers": 3,
        "batch size": 32,
        "shape": [3, 224, 224],
        "bytes sent": 4 * 3 * 224 * 224,
        "decoded pixels": 500 * 375,
        "blurred pixels": 500 * 375,
        "label reads": 1,
    }


@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_changes_one_number_and_makes_it_faster_with_the_others(starved, name):
    done = what_it_does(repaired(name))
    assert done == starved | CHANGED[name]
    others = what_it_does(repaired(*(one for one in REPAIRS if one != name)))
    everything = simulated_throughput(what_it_does(repaired(*REPAIRS)))
    assert simulated_throughput(starved) <= simulated_throughput(done) < everything
    assert simulated_throughput(others) < 2 * simulated_throughput(starved) < everything


def test_what_belongs_to_the_training_is_told_from_its_speed(starved):
    assert changed_training(starved) == "nothing"
    assert changed_training(starved | {"batch size": 16}) == "batch size"
    assert changed_training(starved | {"shape": [3, 112, 112]}) == "pixels"
    assert changed_training(starved | {"blurred pixels": 0}) == "blur"
    assert changed_training(starved | {"decoded pixels": 0}) == "images"


def test_a_script_that_runs_nothing_or_twice_is_rejected():
    with pytest.raises(InputError, match=r"A training script runs one pipeline, got 0\. Call run"):
        what_it_does("print('hello')")
    with pytest.raises(InputError, match=r"got 2\."):
        what_it_does(starved_script() + "\n    run(pipeline)\n")


def test_the_starved_script_is_given_once_and_what_was_edited_stays(tmp_path):
    path = tmp_path / "train.txt"
    assert script_text(path) == starved_script() == path.read_text()
    path.write_text("edited")
    assert script_text(path) == "edited"


def test_parts_are_counted_while_somebody_counts():
    import io

    from PIL import Image

    stored = io.BytesIO()
    Image.new("RGB", (300, 200)).save(stored, "JPEG")
    image = decode(stored.getvalue())
    with counting() as counter:
        blur(crop(image))
        assert read_labels()["00000.jpg"] == 0
    assert counter == {"cropped pixels": 60_000, "blurred pixels": 224 * 224, "label reads": 1}
