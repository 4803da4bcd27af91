"""A worker does each transform to each sample, times it, and can begin from a cache."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from PIL import Image

from starvelab import InputError
from starvelab.measure import PARTS, Transform, folder, photo_transforms, photos
from starvelab.measure.preparation import (
    CACHED_BYTES,
    CACHED_SAMPLES,
    DEVIATION,
    MEAN,
    Preparer,
    RandomResizedCrop,
    decode,
    flip,
    jitter,
    normalize,
    to_array,
    weight,
)

from .scenes import images, pipeline, tiny_samples


def preparer(samples, transforms, batch_size=4):
    return Preparer(samples, transforms, batch_size, lambda size: None)


@pytest.fixture
def picture():
    return photos(count=1).read(0)


def test_the_parts_are_the_rungs_of_the_ladder():
    assert PARTS == ("read", "decode", "transform", "collate", "copy", "compute")


def test_photo_stages_are_the_usual_ones_of_imagenet():
    names = [transform.name for transform in photo_transforms()]
    assert names == ["decode", "crop", "flip", "jitter", "to array", "normalize"]
    assert [transform.name for transform in photo_transforms(send="uint8")] == names[:-1]
    assert [transform.part for transform in photo_transforms()] == ["decode"] + ["transform"] * 5


def test_photo_stages_send_one_of_two_types():
    with pytest.raises(InputError) as caught:
        photo_transforms(send="float16")
    assert str(caught.value) == "send must be float32 or uint8, got 'float16'. Pass one of these."


def test_a_stage_belongs_to_decoding_or_transforming():
    with pytest.raises(InputError) as caught:
        Transform("read", decode, part="read")
    assert str(caught.value) == (
        "The part of a transform must be decode or transform, got 'read'. Pass one of these."
    )


def test_a_stage_takes_a_function_and_not_its_result():
    with pytest.raises(InputError) as caught:
        Transform("crop", 224)
    assert str(caught.value) == (
        "A transform needs a function of a sample, got 224. Pass the function without calling it."
    )


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


def test_grey_and_palette_images_have_three_channels_too():
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


def test_each_stage_of_a_batch_is_timed(tmp_path):
    maker = pipeline(tmp_path).preparer(lambda size: None)
    array, work = maker.batch(0)
    assert array.shape == (4, 3, 4, 4)
    assert list(work.seconds) == ["read", "blank", "collate"]
    assert all(seconds > 0 for seconds in work.seconds.values())
    assert sum(work.seconds.values()) <= work.end - work.start


def test_a_batch_can_be_written_where_it_shall_stand(tmp_path):
    place = np.ones((4, 3, 4, 4), np.uint8)
    array, _ = pipeline(tmp_path).preparer(lambda size: None).batch(0, out=place)
    assert array is place
    assert not place.any()


def test_the_storage_is_told_the_bytes(tmp_path):
    told = []
    Preparer(tiny_samples(tmp_path), pipeline(tmp_path).transforms, 2, told.append).batch(0)
    assert told == [1000, 1000]


def counting(calls):
    def note(name, result):
        def function(value):
            calls.append(name)
            return result

        return function

    return (
        Transform("decode", note("decode", "pixels"), part="decode"),
        Transform("crop", note("crop", np.zeros(2))),
        Transform("scale", note("scale", np.zeros(2))),
    )


@pytest.mark.parametrize(
    ("rung", "still"),
    [(0, ["decode", "crop", "scale"]), (1, ["decode", "crop", "scale"]), (2, ["crop", "scale"]), (3, [])],
)
def test_on_each_rung_one_part_less_is_done(tmp_path, rung, still):
    calls = []
    maker = preparer(tiny_samples(tmp_path, 1), counting(calls), batch_size=1)
    maker.batch(0, rung)  # fills the cache
    calls.clear()
    _, work = maker.batch(1, rung)
    assert calls == still
    assert work.rung == rung
    assert (work.seconds["read"] > 0) == (rung == 0)


def test_a_cache_holds_several_samples_but_only_so_many_bytes(tmp_path):
    samples = tiny_samples(tmp_path, 40)
    small = preparer(samples, [Transform("s", lambda raw: np.zeros(1))], batch_size=1)
    small.batch(0, 3)
    assert len(small._kept[3]) == CACHED_SAMPLES
    large = preparer(samples, [Transform("s", lambda raw: np.empty(int(CACHED_BYTES / 2 + 1), np.uint8))], 1)
    large.batch(0, 3)
    assert len(large._kept[3]) == 2


def test_samples_that_differ_in_shape_cannot_be_joined(tmp_path):
    samples = folder(images(tmp_path / "mixed", 8, 9))
    transforms = [Transform("decode", decode, part="decode"), Transform("to array", to_array)]
    with pytest.raises(InputError) as caught:
        preparer(samples, transforms).batch(0)
    assert str(caught.value) == (
        "All samples of a batch must have one shape and type, got uint8 (3, 9, 9) after uint8 (3, 8, 8). "
        "Let the last transform bring them to one size."
    )


def test_a_stage_that_fails_is_named_with_its_sample(tmp_path):
    samples = tiny_samples(tmp_path)
    with pytest.raises(InputError) as caught:
        preparer(samples, photo_transforms()).batch(0)
    assert str(caught.value).startswith(
        f"Transform 'decode' failed on {samples.path(0)}: UnidentifiedImageError: cannot identify image file"
    )
    assert str(caught.value).endswith("Try the function on that sample by itself.")


def test_a_stage_that_fails_while_the_cache_is_filled_is_named_too(tmp_path):
    with pytest.raises(InputError, match="Transform 'decode' failed on"):
        preparer(tiny_samples(tmp_path), photo_transforms()).batch(0, 2)


def test_the_weight_of_a_sample_is_that_of_what_it_holds():
    assert weight(b"abc") == 3
    assert weight(np.zeros(5, np.float32)) == 20
    assert weight(Image.new("RGB", (4, 5))) == 60
    assert weight((np.zeros(5), {"label": np.zeros(1), "name": b"ab"})) == 40 + 8 + 2
    assert weight(7) == 0
