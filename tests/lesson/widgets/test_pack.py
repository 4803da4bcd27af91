"""Packing a submission: what goes in, what is said, and where nothing is packed."""

from __future__ import annotations

import zipfile

import pytest

from starvelab import InputError
from starvelab.lesson.widgets._report import SAVED, UNPACKED
from starvelab.runtime import GRADING, use
from starvelab.widgets import pack


def test_the_link_downloads_the_file_and_names_what_is_in_it(folder):
    (folder / "01_one.ipynb").write_text("{}", encoding="utf-8")
    (folder / "predictions.json").write_text("{}", encoding="utf-8")
    packed = pack()
    assert zipfile.ZipFile(packed.path).namelist() == ["01_one.ipynb", "predictions.json"]
    name = f"{folder.name}.zip"
    assert repr(packed) == f"{name} is written, with 01_one.ipynb, predictions.json. {SAVED}"
    assert f'<a href="{name}" download="{name}">Download {name}</a>' in packed._repr_html_()
    assert pack().files == packed.files
    assert not list(folder.glob("*.part"))


def test_a_folder_without_a_notebook_is_refused(folder):
    with pytest.raises(InputError, match=r"A submission holds at least one notebook, and .* has none"):
        pack()
    assert list(folder.iterdir()) == []


def test_nothing_is_packed_while_grading(folder):
    (folder / "01_one.ipynb").write_text("{}", encoding="utf-8")
    with use(GRADING):
        packed = pack()
    assert not packed.path.exists()
    assert repr(packed) == UNPACKED
    assert UNPACKED in packed._repr_html_()
