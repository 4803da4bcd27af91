"""Bars of shares and of costs: as long as what they stand for, and told in words."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from starvelab.lesson.show import svg
from starvelab.model.resources import ACCELERATOR, CPU, STORAGE

NAME = "{http://www.w3.org/2000/svg}"


def widths(drawing: str) -> list[float]:
    return [float(rect.get("width")) for rect in ElementTree.fromstring(drawing).iter(f"{NAME}rect")]


def test_a_share_fills_its_part_of_the_outline():
    drawing = svg.share_bars({"loop": 0.5, "<accelerator>": 0.25}, title="Who waits")
    assert widths(drawing) == [380, 190, 380, 95]
    title, description = list(ElementTree.fromstring(drawing))[:2]
    assert (title.text, description.text) == ("Who waits", "loop 50.0 %, <accelerator> 25.0 %.")


def test_a_share_of_more_than_the_whole_fills_the_outline_in_another_color():
    drawing = svg.share_bars({"workers": 0.5, "drive": 1.5}, title="Asked")
    assert widths(drawing) == [380, 190, 380, 380]
    fills = [rect.get("fill") for rect in ElementTree.fromstring(drawing).iter(f"{NAME}rect")]
    assert fills[1::2] == [CPU.color, STORAGE.color]
    assert "drive 150.0 %." in drawing


def test_the_accelerator_has_its_own_color_and_a_bar_may_have_another_label():
    drawing = svg.share_bars(
        {"GPUs busy": 0.9, "of 200 USD": 0.5}, labels={"of 200 USD": "100 USD"}, title="A host"
    )
    fills = [rect.get("fill") for rect in ElementTree.fromstring(drawing).iter(f"{NAME}rect")]
    assert fills[1::2] == [ACCELERATOR.color, CPU.color]
    assert "GPUs busy 90.0 %, of 200 USD 100 USD." in drawing


def test_what_a_part_adds_fills_the_outline_of_what_it_costs():
    drawing = svg.cost_bars({"read": 10, "compute": 40}, {"read": 5, "compute": 40}, title="A ladder")
    assert widths(drawing) == pytest.approx([41.2, 82.5, 330, 330], abs=0.1)
    assert "read costs 10.0 ms, compute costs 40.0 ms." in drawing
    assert ">costs 10.0, adds 5.0 ms</text>" in drawing
