"""The callbacks, whose hooks are called before and after a loop, as the frameworks call them.

The frameworks are not installed everywhere. What stands in their place has their names of hooks and nothing
else.
"""

import importlib
import sys
import types

import pytest

from doctor.tests.loops import Slow
from starvelab.errors import MissingPackageError

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.programs

HOOKS = {
    "lightning": ("on_fit_start", "on_fit_end", "on_exception"),
    "transformers": ("on_train_begin", "on_train_end"),
}
MODULES = {
    "lightning": ("lightning", "lightning.pytorch", "lightning.pytorch.callbacks"),
    "transformers": ("transformers",),
}
BASES = {"lightning": "Callback", "transformers": "TrainerCallback"}


@pytest.fixture
def callback(monkeypatch):
    """Make a `StarvelabCallback` for a framework that has nothing but a base class with its hooks."""

    def make(framework, modules=None, **options):
        nothing = dict.fromkeys(HOOKS[framework], lambda self, *args, **kwargs: None)
        for name in modules or MODULES[framework]:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        setattr(sys.modules[name], BASES[framework], type(BASES[framework], (), nothing))
        name = f"starvelab_doctor.{framework}"
        monkeypatch.delitem(sys.modules, name, raising=False)
        made = importlib.import_module(name).StarvelabCallback
        monkeypatch.delitem(sys.modules, name)
        return made(**options)

    return make


def fit(clock, watching, hooks, evaluate=0):
    """Train for two epochs, whose steps take 30 ms, between two hooks; the GPU of a framework is none."""
    loader, other = (torch.utils.data.DataLoader(Slow(clock, 0.01, 40), size) for size in (1, 2))
    getattr(watching, hooks[0])(None, None, None)
    for _ in range(2):
        for number, _ in enumerate(loader):
            clock.sleep(0.03)
            if evaluate and number % evaluate == 0:
                for _ in other:
                    pass
    getattr(watching, hooks[1])(None, None, None)
    list(loader)  # is watched no more


@pytest.mark.parametrize("evaluate", [0, 3])
@pytest.mark.parametrize(("framework", "modules"), [
    ("lightning", None),
    ("lightning", ("pytorch_lightning", "pytorch_lightning.callbacks")),  # of an older package
    ("transformers", None),
])  # fmt: skip
def test_a_training_is_watched_from_its_beginning_to_its_end(
    clock, callback, capsys, framework, modules, evaluate
):
    watching = callback(framework, modules)
    assert watching.result.verdict == "cannot tell"
    fit(clock, watching, HOOKS[framework], evaluate)
    (_, training), *_ = sorted(watching._doctor.results(), key=lambda loop: loop[1].loader.batch_size)
    assert training.waits.host_wait == pytest.approx(0.25, abs=0.01)
    assert (training.waits.batches, len(training.waits.first_waits)) == (80, 2)
    said = capsys.readouterr().err
    assert said.startswith("Slow at test_callbacks.py:")
    assert ": The training loop waits 25.0 % of its time for data" in said


def test_a_training_that_fails_is_said_as_well(clock, callback, capsys):
    watching = callback("lightning")
    fit(clock, watching, ("on_fit_start", "on_exception"))
    assert "The training loop waits 25.0 % of its time for data" in capsys.readouterr().err
    assert watching.result.verdict == "highly input-bound"
    silent = callback("lightning", progress=False)
    fit(clock, silent, HOOKS["lightning"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("framework", "message"), [
    ("lightning",
     r"needs lightning, which is not installed\. Install it, or put watch\(loader\) around the loader"),
    ("transformers", r"needs transformers, which is not installed\. Install it, or put watch"),
])  # fmt: skip
def test_without_the_framework_the_error_says_what_to_do(monkeypatch, framework, message):
    for name in MODULES[framework]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"starvelab_doctor.{framework}", raising=False)
    with pytest.raises(MissingPackageError, match=message):
        importlib.import_module(f"starvelab_doctor.{framework}")
