"""A record survives its file, and shows what came out."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from starvelab import Q_, InputError
from starvelab.measure import InputPipeline, Record, SimulatedClock, VirtualAccelerator, run
from starvelab.measure.quality import Quality

from .scenes import pipeline

RECORD = run(
    InputPipeline(accelerator=VirtualAccelerator(step_time="64 ms")),
    clock=SimulatedClock({"decode": "5 ms", "transform": "3 ms"}),
)


def same(one, other):
    for field in dataclasses.fields(Record):
        before, after = getattr(one, field.name), getattr(other, field.name)
        if field.name == "trace":
            for column, values in vars(before).items():
                assert np.all(getattr(after, column) == values if isinstance(values, str)
                              else np.abs(getattr(after, column) - values) <= 5.1e-4)  # fmt: skip
        else:
            assert after == before
    return True


def test_a_record_comes_back_as_it_was(tmp_path):
    RECORD.save(tmp_path / "record.json")
    back = Record.load(tmp_path / "record.json")
    assert same(RECORD, back)
    assert repr(back) == repr(RECORD)


def test_a_measured_record_comes_back_too(tmp_path):
    record = run(pipeline(tmp_path), seconds="0.1 s", progress=False)
    record.save(tmp_path / "record.json")
    assert same(record, Record.load(tmp_path / "record.json"))


def test_what_is_saved_is_plain_json(tmp_path):
    RECORD.save(tmp_path / "record.json")
    content = json.loads((tmp_path / "record.json").read_text())
    assert content["format"] == "starvelab record 1"
    assert content["throughput"] == {"magnitude": pytest.approx(250), "unit": "img/s"}


def load(tmp_path, text):
    file = tmp_path / "record.json"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Record.load(file)
    return str(caught.value).replace(str(file), "FILE")


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    assert load(tmp_path, '{"format": ') == (
        "A record is a JSON file, and FILE is not readable as one: Expecting value: line 1 column 12 "
        "(char 11). Save it again with record.save(path)."
    )


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "record.json").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(InputError, match="is not readable as one: 'utf-8' codec can't decode"):
        Record.load(tmp_path / "record.json")


@pytest.mark.parametrize("text", ["[1, 2]", "{}", '{"format": "starvelab calibration 1"}', "3"])
def test_another_file_is_refused(tmp_path, text):
    assert load(tmp_path, text) == (
        "A record begins with the format 'starvelab record 1', and FILE does not. "
        "Pass a file that record.save wrote."
    )


def drop(content):
    del content["trace"]["worker"]


def shorten(content):
    del content["trace"]["worker"][0]


def put_a_word(content):
    content["trace"]["step_end"][0] = "soon"


def nest(content):
    content["trace"]["step_end"][0] = [1, 2]


def lose_a_field(content):
    del content["throughput"]


def lose_the_quality(content):
    content["quality"] = 3


def change_a_unit(content):
    content["throughput"]["unit"] = "bananas"


def add_a_field(content):
    content["color"] = "red"


@pytest.mark.parametrize(
    "damage",
    [drop, shorten, put_a_word, nest, lose_a_field, lose_the_quality, change_a_unit, add_a_field],
)
def test_a_damaged_record_is_refused(tmp_path, damage):
    RECORD.save(tmp_path / "whole.json")
    content = json.loads((tmp_path / "whole.json").read_text())
    damage(content)
    said = load(tmp_path, json.dumps(content))
    assert said.startswith("FILE is a damaged record: ")
    assert said.endswith("Save it again with record.save(path).")


def test_a_record_shows_its_figures():
    assert repr(RECORD).splitlines() == [
        "250 img/s simulated (threads loader, 2 workers), the accelerator is busy 50.0 %.",
        "figure                             value",
        "----------------------  ----------------",
        "throughput                     250 img/s",
        "95 % interval           250 to 250 img/s",
        "time between batches              128 ms",
        "accelerator busy                  50.0 %",
        "accelerator waits                 50.0 %",
        "loop waits in next()              75.0 %",
        "decode, each sample                 5 ms",
        "transform, each sample              3 ms",
    ]
    assert RECORD._repr_html_().count("<tr>") == 9


def test_a_record_that_is_not_trusted_says_so():
    doubtful = dataclasses.replace(RECORD, quality=Quality(0.4, 0.0, 9))
    assert doubtful.summary.endswith(" Not to be trusted: other programs used 40% of the cores.")


def test_quantities_of_a_record_have_their_dimensions():
    assert RECORD.period == Q_(128, "ms")
    assert RECORD.step_time == Q_(64, "ms")
