"""Photographs are made once and kept; a folder of one's own serves as well."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from starvelab import InputError, Pipeline
from starvelab.measure import folder, photo_transforms, photos, samples
from starvelab.measure.devices import VirtualAccelerator
from starvelab.measure.samples import COUNT, GIVEN, KINDS, given_samples
from starvelab.measure.session import run
from starvelab.measure.setup import setup_of

from .scenes import described
from .scenes import images as squares

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
from starvelab.measure.samples import _temporary_folder
photos(count=6)
assert _temporary_folder() is _temporary_folder()
print(_temporary_folder())
"""


def test_two_programs_at_once_make_whole_files_and_their_temporary_folders_end_with_them(cache, tmp_path):
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
        )
        for _ in range(2)
    ]  # fmt: skip
    for program in programs:
        printed, said = program.communicate(timeout=120)
        assert program.returncode == 0, said
        made = Path(printed.strip())
        assert (made.parent, made.exists()) == (tmp_path, False)
    for path in photos(count=6).contents:
        Image.open(path).load()  # raises where a file is cut off
    assert sorted(path.name for path in (cache / "photos-100KB-v1").iterdir()) == [
        f"{number:03d}.jpg" for number in range(6)
    ]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder for what cannot go into the cache."""
    home = tmp_path / "elsewhere"
    home.mkdir()
    monkeypatch.setattr(samples, "_temporary_folder", lambda: home)
    return home


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path, monkeypatch, elsewhere):
    (tmp_path / "file").touch()
    monkeypatch.setenv("STARVELAB_CACHE", str(tmp_path / "file" / "cache"))
    samples = photos(count=1)
    assert samples.contents[0].is_relative_to(elsewhere)
    assert photos(count=1).contents == samples.contents


def test_a_cache_that_cannot_be_written_is_used_as_far_as_it_is_full(cache, monkeypatch, elsewhere):
    kept = photos(count=1).contents
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert photos(count=1).contents == kept
    assert photos(count=2).contents[1].is_relative_to(elsewhere)


def test_a_folder_holds_images_at_any_depth(tmp_path):
    squares(tmp_path / "some", 300, 200)
    squares(tmp_path / "some" / "more", 250)
    (tmp_path / "some" / "notes.txt").write_text("no image")
    (tmp_path / "some" / "also.JPG").write_bytes((tmp_path / "some" / "0.png").read_bytes())
    samples = folder(tmp_path / "some")
    assert [path.name for path in samples.contents] == ["0.png", "1.png", "also.JPG", "0.png"]
    assert samples.name == str(tmp_path / "some")


def test_images_of_ones_own_run_through_the_usual_stages(tmp_path):
    pipe = described(
        samples=folder(squares(tmp_path / "own", 300, 250)),
        transforms=photo_transforms(),
        batch_size=2,
        device=VirtualAccelerator(0.001),
    )
    record = run(pipe, seconds="0.1 s", progress=False)
    assert set(record.stage_times) >= {"read", "decode", "crop", "normalize", "collate"}


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(InputError) as caught:
        folder(tmp_path)
    assert str(caught.value) == (
        f"folder needs at least one image, and {tmp_path} has none. "
        "It looks for .jpg, .jpeg, .png, .bmp, .tif, .tiff, .webp."
    )


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
