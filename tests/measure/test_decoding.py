"""Files and what decoding them costs on one core."""

from __future__ import annotations

import pytest
from PIL import Image

from starvelab.measure.decoding import as_jpeg, decode_times, jpeg_size

PHOTO = Image.effect_noise((64, 32), 50).convert("RGB")


def test_a_file_of_higher_quality_has_more_bytes_and_the_same_size():
    coarse, fine = as_jpeg(PHOTO, 10), as_jpeg(PHOTO, 95)
    assert len(fine) > 2 * len(coarse)
    assert jpeg_size(coarse) == jpeg_size(fine) == (64, 32)


def test_each_file_is_decoded_in_turn_and_the_median_counts(monkeypatch):
    # Two looks at the clock a file: three rounds take 1, 9 and 2 s for the first, and 4 s each for the other.
    ticks = iter([0, 1, 0, 4, 0, 9, 0, 4, 0, 2, 0, 4])
    monkeypatch.setattr("starvelab.measure.decoding.perf_counter", lambda: next(ticks))
    raw = as_jpeg(PHOTO, 50)
    times = decode_times({"one": raw, "other": raw}, rounds=3)
    assert {name: time.m_as("s") for name, time in times.items()} == pytest.approx({"one": 2, "other": 4})
