"""Reading and decoding are told apart in a dataset that does both."""

from __future__ import annotations

import cProfile
import io
import sys
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from starvelab.measure.datasets import DatasetPipeline
from starvelab.measure.diagnosis import _stages
from starvelab.measure.item_times import EVERY, ItemTimes, part_of

FUNCTIONS = {
    "<built-in method _io.open>": "read",
    "<method 'read' of '_io.BufferedReader' objects>": "read",
    "<built-in method posix.open>": "read",
    "<built-in method numpy.fromfile>": "read",
    "<method 'read' of '_io.BytesIO' objects>": "",
    "<method 'decode' of 'ImagingDecoder' objects>": "decode",
    "<built-in method imdecode>": "decode",
    "<built-in method zlib.decompress>": "decode",
    "<method 'decode' of 'bytes' objects>": "",
    "<method 'append' of 'list' objects>": "",
    "<built-in method time.sleep>": "",
}


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    """A file that takes much longer to decode than to read."""
    path = tmp_path_factory.mktemp("photo") / "noise.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (600, 800, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path, quality=90)
    return path


class Items:
    """Items that are made by a function, and perhaps transformed."""

    def __init__(self, make, transform=None):
        self.make, self.transform = make, transform

    def __len__(self):
        return 40

    def __getitem__(self, index):
        item = self.make()
        return self.transform(item) if self.transform else item


def spent(dataset, items=3):
    """Seconds by stage for a few items, after a first."""
    preparer = DatasetPipeline.around(dataset, step_time="1 ms").preparer(None)
    preparer.sample(0, 0, preparer.no_seconds())
    seconds = preparer.no_seconds()
    for index in range(items):
        preparer.sample(index, 0, seconds)
    return seconds


def largest(seconds):
    return max(seconds, key=seconds.__getitem__)


@pytest.mark.parametrize(("function", "part"), FUNCTIONS.items())
def test_functions_of_c_are_known_by_name(function, part):
    assert part_of(function) == part


def test_an_image_is_decoded_for_longer_than_it_is_read(photo):
    seconds = spent(Items(lambda: Image.open(photo).convert("RGB")))
    assert largest(seconds) == "decode"
    assert seconds["read"] > 0


def test_raw_bytes_are_read_and_not_decoded(tmp_path):
    path = tmp_path / "raw.bin"
    path.write_bytes(bytes(30_000_000))
    seconds = spent(Items(path.read_bytes))
    assert largest(seconds) == "read"
    assert seconds["decode"] == 0


def test_what_is_in_memory_is_not_read():
    packed = zlib.compress(np.random.default_rng(0).integers(0, 9, 500_000, dtype=np.uint8).tobytes())
    seconds = spent(Items(lambda: zlib.decompress(io.BytesIO(packed).read())))
    assert largest(seconds) == "decode"
    assert seconds["read"] == 0


def test_other_work_is_the_dataset_s_own():
    seconds = spent(Items(lambda: time.sleep(0.003)))
    assert seconds["__getitem__"] >= 0.009
    assert (seconds["read"], seconds["decode"]) == (0, 0)


def test_what_a_transform_decodes_is_its_own_time(photo):
    # Pillow opens a file and decodes it when somebody needs the pixels.
    seconds = spent(Items(lambda: Image.open(photo), np.asarray))
    assert largest(seconds) == "asarray"
    assert seconds["decode"] == 0
    assert seconds["read"] > 0


def test_one_item_of_many_is_watched_and_the_others_are_split_alike():
    times = ItemTimes()
    watched = []
    for _ in range(EVERY + 2):
        with times.watching():
            watched.append(times.profile is not None)
            if watched[-1]:
                zlib.decompress(zlib.compress(bytes(100)))
        parts = times.split(1.0)
    assert [number for number, each in enumerate(watched) if each] == [1, EVERY + 1]
    share = times.spent["decode"] / 2.0
    assert parts["decode"] == pytest.approx(share)
    assert times.split(4.0)["decode"] == pytest.approx(4 * share)
    assert share > 0


def test_a_profiler_of_the_user_goes_on():
    own = cProfile.Profile()
    before = sys.getprofile()
    own.enable()
    try:
        times = ItemTimes()
        for _ in range(2):
            with times.watching():
                zlib.compress(b"")
            assert times.profile is None
    finally:
        own.disable()
    assert any("zlib.compress" in str(entry.code) for entry in own.getstats())
    assert times.split(1.0) == {"read": 0.0, "decode": 0.0}
    assert sys.getprofile() is before


def test_an_item_that_fails_ends_the_watching():
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        spent(Items(lambda: 1 / 0))
    assert sys.getprofile() is before


def test_a_finding_lists_only_what_occurred():
    pipe = DatasetPipeline.around(Items(bytes), batch_size=4, workers=2, step_time="1 ms")
    seconds = {"read": 0.001, "decode": 0.003, "__getitem__": 0.0, "collate": 0.0}
    whole = "read + decode + transform"
    stages = _stages(pipe, seconds)
    assert stages[whole] == pytest.approx({"read": 2.0, "decode": 6.0})
    assert stages["collate"] == {"collate": 0.0}
