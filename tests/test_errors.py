"""Every error is the lab's own and also the built-in one a Python programmer would expect."""

import importlib
import sys

import pytest

from starvelab import Hardware, InputError, MissingValueError, StarvelabError, UnknownNameError
from starvelab.errors import MissingPackageError, WorkerError, install_hint, requiring


def test_an_error_is_the_labs_own_and_the_builtin_one():
    for error, *builtins in (
        (InputError, ValueError),
        (MissingValueError, LookupError),
        (UnknownNameError, LookupError, AttributeError),
        (WorkerError, RuntimeError),
        (MissingPackageError, ImportError),
    ):
        assert all(issubclass(error, one) for one in (StarvelabError, *builtins))


def test_a_missing_figure_is_not_taken_for_a_missing_attribute():
    # Or hasattr would swallow the message that says what to do.
    assert not issubclass(MissingValueError, AttributeError)
    with pytest.raises(MissingValueError):
        hasattr(Hardware.Cloud.T4, "storage_bandwidth")


@pytest.mark.parametrize(("extra", "system", "machine", "hint"), [
    ("lab", "darwin", "x86_64", "pip install 'starvelab[lab]', or in a checkout: pip install '.[lab]'"),
    ("notebooks", "linux", "x86_64", "pip install 'starvelab[notebooks]', or in a checkout: pip"),
    ("torch", "darwin", "arm64", "'starvelab[torch]', or in a checkout: pip install '.[torch]'"),
    ("torch", "darwin", "x86_64", "For a Mac with an Intel processor there is no PyTorch after 2.2"),
])  # fmt: skip
def test_what_is_missing_is_named_with_its_remedy(monkeypatch, extra, system, machine, hint):
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert hint in install_hint(extra)


def test_a_package_that_is_missing_is_named_and_a_module_of_the_lab_itself_is_not_taken_for_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingPackageError) as raised, requiring("A photo", "Draw it."):
        import PIL  # noqa: F401
    assert str(raised.value) == "A photo needs Pillow, which is not installed. Draw it."
    assert raised.value.name == "PIL"
    with pytest.raises(ModuleNotFoundError, match=r"starvelab\.nothing"), requiring("It", ""):
        importlib.import_module("starvelab.nothing")
