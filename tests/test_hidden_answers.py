"""What decides a puzzle stands in nothing that a learner gets, but on the page of model answers.

Of the built site this holds where somebody has built it; tests/test_packaging.py looks into the wheels.
"""

import re
import zipfile
from pathlib import Path

import pytest

from tests.assignments import REPOSITORY
from tests.hidden_answers import SECRETS, leaks

# What people get: the notebooks, what each wheel carries, and the pages of the site.
FOLDERS = ("labs", "starvelab", "doctor/starvelab_doctor", "grader/starvelab_grader", "docs", "lite")
SKIPPED = {"__pycache__", ".ipynb_checkpoints", ".doctrees", "linkcheck"}
OF_JUPYTERLITE = {"build", "extensions"}

PLANTED = {
    "the cheapest host": "The cheapest host trains for {price} USD.",
    "the laws of the black boxes": "26 MB go over a link of 1 GB/s one\nbatch after the other",
    "the keys of own cases": "GPU: serialized copy 73 + model 92 = 165 of 717 ms: each batch waits for both.",
}


@pytest.mark.parametrize("secret", SECRETS)
def test_an_answer_of_a_puzzle_is_found_where_it_is_planted(secret, tmp_path):
    page, wheel = tmp_path / "page.md", tmp_path / "starvelab-1.whl"
    price = re.search(r"\d+\.\d\d", next(SECRETS[secret]()).replace("\\", ""))
    page.write_text(PLANTED[secret].format(price=price and price[0]))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(page, "starvelab/lab_files/carried.md")
    found = leaks([wheel, page, REPOSITORY / "README.md"])
    assert [leak.partition(":")[0] for leak in found] == ["carried.md", "page.md"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_answer_of_a_puzzle_stands_in_what_a_learner_gets(folder):
    paths = [path for path in Path(REPOSITORY, folder).rglob("*") if path.is_file()]
    assert paths
    assert leaks(path for path in paths if not (SKIPPED | OF_JUPYTERLITE).intersection(path.parts)) == []
