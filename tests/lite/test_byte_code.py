"""Byte code in place of sources: what a page fetches can be imported, and the lab's own sources stay."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.archives import zipped

pytestmark = pytest.mark.programs

FILES = {
    "plain.py": "def name():\n    return name.__code__.co_filename\n",
    "template.py": "def {{ name }}():\n",
    "notes.txt": "kept",
    "starvelab/__init__.py": "ANSWER = 42\n",
    "starvelab/lab_files/labs/one.ipynb": "{}",
    "pygments/styles/some.py": "",
    "pygments/lexers/python.py": "",
    "pygments/lexers/fortran.py": "",
    "some-1.0.data/data/share/jupyter/page.js": "",
    "some-1.0.dist-info/METADATA": "Name: some",
}


@pytest.fixture
def archive(module_of_lite, tmp_path: Path) -> Path:
    """A wheel whose modules have been compiled."""
    path = tmp_path / "some-1.0-py3-none-any.whl"
    path.write_bytes(zipped(FILES))
    module_of_lite("byte_code").compile_modules(path, "/lib/some")
    return path


def test_byte_code_takes_the_place_of_sources_and_what_no_page_reads_is_left_out(archive):
    tag = sys.implementation.cache_tag
    with zipfile.ZipFile(archive) as wheel:
        assert set(wheel.namelist()) == {
            *("plain.pyc", "template.py", "notes.txt", "starvelab/__init__.py"),
            *(f"starvelab/__pycache__/__init__.{tag}.pyc", "some-1.0.dist-info/METADATA"),
            *("pygments/styles/some.py", "pygments/lexers/python.pyc"),
        }
        assert wheel.read("notes.txt") == b"kept"


def test_byte_code_is_imported_and_names_the_place_where_it_will_stand(archive, tmp_path):
    with zipfile.ZipFile(archive) as wheel:
        wheel.extractall(tmp_path)
    # Another source, which is not read: where byte code stands beside it, the two are never compared.
    (tmp_path / "starvelab/__init__.py").write_text("ANSWER = 0\n", encoding="utf-8")
    code = "import plain, starvelab; print(plain.name(), starvelab.ANSWER)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, encoding="utf-8"
    )
    assert done.stdout.split() == ["/lib/some/plain.py", "42"]


def test_the_lexers_that_ipython_imports_are_kept(module_of_lite):
    code = "import sys, ipython_pygments_lexers; print(*[m for m in sys.modules if 'pygments.lexers.' in m])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, encoding="utf-8")
    names = [f"{module.replace('.', '/')}.py" for module in done.stdout.split()]
    assert "pygments/lexers/python.py" in names
    left_out = module_of_lite("byte_code").is_left_out
    assert [name for name in names if left_out(name)] == []
