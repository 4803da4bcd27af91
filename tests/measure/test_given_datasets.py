"""The datasets for whoever brings none: each item has one shape, and is the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from starvelab import Pipeline
from starvelab.errors import UnknownNameError
from starvelab.measure.samples import COUNT, GIVEN, given_samples
from starvelab.measure.setup import setup_of


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


def test_another_name_is_rejected():
    with pytest.raises(UnknownNameError, match=r"recordings, tables, volumes, got 'photos'\. Choose one"):
        given_samples("photos")


def test_recordings_are_called_recordings_and_not_images():
    recordings = given_samples("recordings")
    assert str(setup_of(Pipeline(dataset=recordings))).startswith("recordings with ")
    assert repr(recordings.source).startswith("8 recordings, ")
