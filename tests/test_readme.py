"""The README does what it says: its example runs, its commands and files exist."""

import doctest
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_shows():
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks, "the README has no example"
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README", "README.md", 0)
    result = doctest.DocTestRunner().run(example)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)\b", README))))
def test_each_make_target_it_names_exists(target):
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:binder|labs|solutions|starvelab|tests)/[\w./-]*)`", README)))
)
def test_each_path_it_names_exists(path):
    assert (REPOSITORY / path).exists(), path


def test_each_notebook_stands_in_its_table():
    for script in sorted((REPOSITORY / "solutions").glob("*/[0-9][0-9]_*.py")):
        assert f"| {script.stem} |" in README, script.stem
