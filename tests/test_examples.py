"""Hypothesis tries the same examples in each run, in whichever process and after whatever else."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

from hypothesis import given
from hypothesis import strategies as st


def drawn() -> list[list[int]]:
    seen = []

    @given(st.lists(st.integers(), min_size=50))
    def collect(numbers):
        seen.append(numbers)

    collect()
    return seen


def test_examples_are_the_same_whatever_was_imported_before(monkeypatch, tmp_path):
    before = drawn()
    path = tmp_path / "constants_of_a_module.py"
    path.write_text(f"CONSTANTS = {list(range(100_000, 101_000))}", encoding="utf-8")
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, path.stem, module)
    assert drawn() == before
