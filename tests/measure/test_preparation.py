"""A worker does each transform to each sample, times it, and can begin from a cache."""

import numpy as np
import pytest
from PIL import Image

from starvelab import InputError
from starvelab.measure import StoredSource, Transform, photo_transforms
from starvelab.measure.batches import memory_size
from starvelab.measure.preparation import CACHED_BYTES, CACHED_SAMPLES, Preparer

from .scenes import pipeline, tiny_samples


def preparer(samples, transforms, batch_size=4):
    return Preparer(samples, transforms, batch_size, lambda size: None)


def test_each_transform_of_a_batch_is_timed(tmp_path):
    maker = pipeline(tmp_path).preparer(lambda size: None)
    work = maker.batch(0)
    assert work.array.shape == (4, 3, 4, 4)
    assert list(work.seconds) == ["read", "blank", "collate"]
    assert all(seconds > 0 for seconds in work.seconds.values())
    assert sum(work.seconds.values()) <= work.end - work.start


def test_a_batch_can_be_written_where_it_shall_stand(tmp_path):
    place = np.ones((4, 3, 4, 4), np.uint8)
    array = pipeline(tmp_path).preparer(lambda size: None).batch(0, out=place).array
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
    work = maker.batch(1, rung)
    assert calls == still
    assert work.rung == rung
    assert (work.seconds["read"] > 0) == (rung == 0)


def test_a_cache_holds_several_samples_but_only_so_many_bytes(tmp_path):
    samples = tiny_samples(tmp_path, 40)
    small = preparer(samples, [Transform("s", lambda raw: np.zeros(1))], batch_size=1)
    small.batch(0, 3)
    assert len(small.kept[3]) == CACHED_SAMPLES
    large = preparer(samples, [Transform("s", lambda raw: np.empty(int(CACHED_BYTES / 2 + 1), np.uint8))], 1)
    large.batch(0, 3)
    assert len(large.kept[3]) == 2


def test_samples_that_differ_in_shape_cannot_be_joined():
    mixed = StoredSource("mixed", (bytes(8), bytes(9)))
    with pytest.raises(InputError) as caught:
        preparer(mixed, [Transform("as array", lambda raw: np.frombuffer(raw, np.uint8))]).batch(0)
    assert str(caught.value) == (
        "All samples of a batch must have one shape and type, got uint8 (9,) after uint8 (8,). "
        "Let the last transform bring them to one size."
    )


@pytest.mark.parametrize("rung", [0, 2])  # where the cache is filled, too
def test_a_transform_that_fails_is_named_with_its_sample(tmp_path, rung):
    samples = tiny_samples(tmp_path)
    with pytest.raises(InputError) as caught:
        preparer(samples, photo_transforms()).batch(0, rung)
    assert str(caught.value).startswith(
        f"Transform 'decode' failed on {samples.contents[0]}: UnidentifiedImageError: cannot identify "
    )
    assert str(caught.value).endswith("Try the function on that sample by itself.")


def test_the_weight_of_a_sample_is_that_of_what_it_holds():
    assert memory_size(b"abc") == 3
    assert memory_size(np.zeros(5, np.float32)) == 20
    assert memory_size(Image.new("RGB", (4, 5))) == 60
    assert memory_size(7) == 0
