"""Levers belong to parts of an input pipeline, and say how to tell, what to change, and why it works."""

import pytest

from starvelab.measure import PARTS
from starvelab.model.resources import LEVERS, levers_for


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_a_lever_is_told_in_full(lever):
    assert lever.parts
    assert set(lever.parts) <= set(PARTS)
    assert len(set(lever.parts)) == len(lever.parts)
    for name in ("diagnose", "change", "why"):
        text = getattr(lever, name)
        assert text[0].isupper() or text.split()[0].split("=")[0].isidentifier()
        assert text.endswith(".")
        assert text == text.strip()
        assert "  " not in text


@pytest.mark.parametrize("part", PARTS)
def test_there_is_something_to_try_for_each_part(part):
    found = levers_for(part)
    assert len({lever.name for lever in found}) == len(found) >= 2
    assert all(part in lever.parts for lever in found)
    # In the order of the list, which is that of trying.
    assert list(found) == [lever for lever in LEVERS if lever in found]
