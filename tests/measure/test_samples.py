"""Photographs are made once and kept; the small datasets are the same each time."""

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from starvelab import Pipeline
from starvelab.measure import photo_transforms, photos
from starvelab.measure.devices import VirtualAccelerator
from starvelab.measure.samples import COUNT, GIVEN, KINDS, given_samples
from starvelab.measure.session import run
from starvelab.measure.setup import setup_of

from .scenes import described

pytestmark = pytest.mark.programs


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STARVELAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("size", KINDS)
def test_photographs_have_their_size(size):
    # In the cache of the whole run: the largest take a second to make.
    samples = photos(size, count=2 if size == "5 MB" else None)
    wanted = float(size.split()[0]) * (1e6 if size.endswith("MB") else 1e3)
    tolerance = 0.4 if size == "5 MB" else 0.25  # two of them differ more from their mean
    assert samples.mean_size.m_as("B") == pytest.approx(wanted, rel=tolerance)
    image = Image.open(io.BytesIO(samples.read(0)))
    assert (image.format, image.size) == ("JPEG", (KINDS[size].width, KINDS[size].height))


def test_photographs_differ_and_go_round():
    samples = photos(count=3)
    assert len(samples) == 3
    assert samples.read(0) != samples.read(1)
    assert samples.read(5) == samples.read(2)
    assert repr(samples).startswith("3 images of about 100 KB, ")


def test_photographs_are_made_once_and_the_same_everywhere(cache, tmp_path, monkeypatch):
    first = photos(count=2)
    made = [path.stat().st_mtime_ns for path in first.contents]
    again = photos(count=3)
    assert [path.stat().st_mtime_ns for path in again.contents[:2]] == made
    assert all(path.is_relative_to(cache) for path in again.contents)
    kept = again.read(0)
    monkeypatch.setenv("STARVELAB_CACHE", str(tmp_path / "another"))
    assert photos(count=1).read(0) == kept


PROGRAM = """
from starvelab.measure import photos
photos(count=6)
"""


def test_two_programs_at_once_make_whole_files(cache):
    programs = [subprocess.Popen([sys.executable, "-c", PROGRAM]) for _ in range(2)]
    assert [program.wait(timeout=120) for program in programs] == [0, 0]
    for path in photos(count=6).contents:
        Image.open(path).load()  # raises where a file is cut off
    assert sorted(path.name for path in (cache / "photos-100KB-v1").iterdir()) == [
        f"{number:03d}.jpg" for number in range(6)
    ]


def test_without_a_cache_that_can_be_written_what_is_made_stays_in_memory(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("STARVELAB_CACHE", str(tmp_path / "file" / "cache"))
    samples = photos(count=2)
    assert [type(content) for content in samples.contents] == [bytes, bytes]
    assert samples.mean_size.m_as("KB") == pytest.approx(100, rel=0.5)


def test_images_run_through_the_usual_stages():
    pipe = described(
        samples=photos(count=2), transforms=photo_transforms(), batch_size=2,
        device=VirtualAccelerator(0.001),
    )  # fmt: skip
    record = run(pipe, seconds="0.1 s", progress=False)
    assert set(record.stage_times) >= {"read", "decode", "crop", "normalize", "collate"}


@pytest.mark.parametrize(
    ("name", "shape"), [("recordings", (398, 201)), ("tables", (256, 40)), ("volumes", (24, 24, 24))]
)
def test_its_items_have_one_shape_and_are_the_same_each_time(name, shape):
    given, again = given_samples(name).source, given_samples(name).source
    assert len(given) == COUNT
    assert given.contents == again.contents
    assert len(set(given.contents)) == COUNT
    assert given.read(COUNT + 1) == given.read(1)
    setup = setup_of(Pipeline(dataset=given_samples(name), batch_size=16))
    assert setup.layout.shape == (16, *shape)
    assert setup.layout.dtype == np.float32


def test_a_spectrogram_shows_the_pitch_of_a_recording():
    spectrum = GIVEN["recordings"][2](np.sin(2 * np.pi * 400 * np.arange(16_000) / 16_000))
    assert spectrum.mean(axis=0).argmax() == 10  # each column is 40 Hz


def test_recordings_are_called_recordings_and_not_images():
    recordings = given_samples("recordings")
    assert str(setup_of(Pipeline(dataset=recordings))).startswith("recordings with ")
    assert repr(recordings.source).startswith("8 recordings, ")
