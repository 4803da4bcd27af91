"""The datasets for whoever brings none: each item has one shape, and is the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from starvelab.errors import UnknownNameError
from starvelab.measure.given_datasets import COUNT, GIVEN, given_pipeline


@pytest.mark.parametrize(
    ("name", "shape"), [("recordings", (398, 201)), ("tables", (256, 40)), ("volumes", (24, 24, 24))]
)
def test_its_items_have_one_shape_and_are_the_same_each_time(name, shape):
    pipe, again = given_pipeline(name), given_pipeline(name)
    assert len(pipe.samples) == COUNT
    assert pipe.samples.contents == again.samples.contents
    assert len(set(pipe.samples.contents)) == COUNT
    assert pipe.samples.read(COUNT + 1) == pipe.samples.read(1)
    assert pipe.batch_shape == (16, *shape)
    assert pipe.dtype == np.float32


def test_a_spectrogram_shows_the_pitch_of_a_recording():
    spectrum = GIVEN["recordings"][2](np.sin(2 * np.pi * 400 * np.arange(16_000) / 16_000))
    assert spectrum.mean(axis=0).argmax() == 10  # each column is 40 Hz


def test_another_name_is_rejected():
    with pytest.raises(UnknownNameError, match=r"recordings, tables, volumes, got 'photos'\. Choose one"):
        given_pipeline("photos")


def test_recordings_are_called_recordings_and_not_images():
    recordings = given_pipeline("recordings")
    assert str(recordings).startswith("recordings with ")
    assert repr(recordings.samples).startswith("8 recordings, ")
