"""Transforms turn a stored photograph into what a network takes."""

import io
import random

import numpy as np
import pytest
from PIL import Image

from starvelab.measure import disturbance, photo_transforms, photos
from starvelab.measure.transforms import (
    DEVIATION,
    MEAN,
    RandomResizedCrop,
    as_jpeg,
    decode,
    decode_times,
    flip,
    jitter,
    jpeg_size,
    normalize,
    to_array,
)


@pytest.fixture
def picture():
    return photos(count=1).read(0)


def test_a_photograph_becomes_what_a_network_takes(picture):
    value = picture
    for transform in photo_transforms(side=32):
        value = transform.function(value)
    assert value.shape == (3, 32, 32)
    assert value.dtype == np.float32
    assert np.abs(value).max() < 3  # 1 less the lowest mean, over the lowest deviation, is 2.6


def test_normalizing_gives_mean_colors_zero():
    mean = np.round(255 * MEAN * np.ones((3, 2, 2))).astype(np.uint8)
    assert np.abs(normalize(mean)).max() < 0.5 / 255 / DEVIATION.min() + 1e-6


def test_gray_and_palette_images_have_three_channels_too():
    for mode in ("L", "P", "RGBA"):
        file = io.BytesIO()
        Image.new(mode, (9, 7)).save(file, format="PNG")
        assert to_array(decode(file.getvalue())).shape == (3, 7, 9)


def test_a_crop_has_its_side_whatever_came():
    random.seed(1)
    for size in ((500, 20), (8, 8), (1, 300)):
        for _ in range(20):
            assert RandomResizedCrop(16)(Image.new("RGB", size)).size == (16, 16)


def test_an_image_is_mirrored_half_of_the_time():
    random.seed(2)
    image = Image.new("RGB", (2, 1))
    image.putpixel((0, 0), (255, 0, 0))
    mirrored = sum(flip(image).getpixel((1, 0)) == (255, 0, 0) for _ in range(400))
    assert 150 < mirrored < 250


def test_jitter_moves_colors_and_leaves_the_size():
    random.seed(3)
    image = Image.new("RGB", (5, 4), (90, 120, 150))
    assert jitter(image).size == (5, 4)
    assert jitter(image).getpixel((0, 0)) != jitter(image).getpixel((0, 0))


PHOTO = Image.effect_noise((64, 32), 50).convert("RGB")


def test_a_file_of_higher_quality_has_more_bytes_and_the_same_size():
    coarse, fine = as_jpeg(PHOTO, 10), as_jpeg(PHOTO, 95)
    assert len(fine) > 2 * len(coarse)
    assert jpeg_size(coarse) == jpeg_size(fine) == (64, 32)


def test_each_file_is_decoded_in_turn_and_the_median_counts(monkeypatch):
    # Two looks at the clock a file: three rounds take 1, 9 and 2 s for the first, and 4 s each for the other.
    ticks = iter([0, 1, 0, 4, 0, 9, 0, 4, 0, 2, 0, 4])
    monkeypatch.setattr("starvelab.measure.transforms.perf_counter", lambda: next(ticks))
    raw = as_jpeg(PHOTO, 50)
    times = decode_times({"one": raw, "other": raw}, rounds=3)
    assert {name: time.m_as("s") for name, time in times.items()} == pytest.approx({"one": 2, "other": 4})
    # Three quarters of 1, 2 and 9 s are below 5.5 s, one quarter below 1.5 s.
    assert (times.quality.variation, times.quality.windows) == (pytest.approx((5.5 - 1.5) / 2), 3)
    assert "the windows differ by 200 %" in disturbance(times)
