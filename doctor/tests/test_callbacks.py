"""The callbacks, with loops that call the hooks in the order in which the frameworks call them.

The frameworks are not installed everywhere. What stands in their place has their names of hooks and nothing
else.
"""

import importlib
import sys
import types

import numpy as np
import pytest

from doctor.tests.loops import Loader
from starvelab.errors import MissingPackageError

HOOKS = {
    "lightning": (
        "on_train_epoch_start on_train_batch_start on_train_batch_end on_validation_start on_validation_end "
        "on_save_checkpoint on_train_epoch_end on_train_end"
    ),
    "transformers": (
        "on_train_begin on_epoch_begin on_step_begin on_substep_end on_step_end on_log on_evaluate on_save "
        "on_epoch_end on_train_end"
    ),
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
        nothing = dict.fromkeys(HOOKS[framework].split(), lambda self, *args, **kwargs: None)
        for name in modules or MODULES[framework]:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        setattr(sys.modules[name], BASES[framework], type(BASES[framework], (), nothing))
        name = f"starvelab_doctor.{framework}"
        monkeypatch.delitem(sys.modules, name, raising=False)
        made = importlib.import_module(name).StarvelabCallback
        monkeypatch.delitem(sys.modules, name)
        return made(**options)

    return make


def fit(clock, callback, loader, *, epochs=1, validate_every=0, save_every=0):
    """A training by the hooks of Lightning 2.6, whose steps take 30 ms."""
    trainer = types.SimpleNamespace(train_dataloader=loader)
    for _ in range(epochs):
        callback.on_train_epoch_start(trainer, None)
        for index, _ in enumerate(loader):
            callback.on_train_batch_start(trainer, None, np.zeros(250, np.float32), index)
            clock.sleep(0.03)
            callback.on_train_batch_end(trainer, None, {}, None, index)
            if validate_every and index % validate_every == 0:
                callback.on_validation_start(trainer, None)
                clock.sleep(1)
                callback.on_validation_end(trainer, None)
            if save_every and index % save_every == 0:
                callback.on_save_checkpoint(trainer, None, {})
                clock.sleep(1)
        callback.on_train_epoch_end(trainer, None)
    callback.on_train_end(trainer, None)


def train(clock, callback, loader, **every):
    """A training by the hooks of Transformers 5.23, whose steps take 30 ms."""
    args = types.SimpleNamespace(train_batch_size=8, gradient_accumulation_steps=2, dataloader_num_workers=4)

    def call(hook):
        getattr(callback, hook)(args, None, None, model=None, train_dataloader=loader)

    call("on_train_begin")
    call("on_epoch_begin")
    for index, _ in enumerate(loader):
        call("on_step_begin")
        clock.sleep(0.015)
        call("on_substep_end")
        clock.sleep(0.015)
        call("on_step_end")
        for hook, count in every.items():
            if index % count == 0:
                clock.sleep(1)
                call(hook)
    call("on_epoch_end")
    call("on_train_end")


@pytest.mark.parametrize("options", [{}, {"validate_every": 3}, {"save_every": 3}, {"epochs": 3}])
def test_lightning(clock, callback, options):
    watching = callback("lightning", progress=False)
    loader = Loader(clock, 0.01)
    loader.batch_size, loader.num_workers = 16, 2
    fit(clock, watching, loader, **options)
    result, epochs = watching.result, options.get("epochs", 1)
    assert result.waits.host_wait == pytest.approx(0.25)
    assert result.verdict == "highly input-bound"
    assert result.waits.throughput.m_as("img/s") == pytest.approx(400)
    assert [wait.m_as("s") for wait in result.waits.first_waits] == pytest.approx([3] * epochs)
    assert result.waits.pass_waits == pytest.approx([0.25] * epochs)
    assert (result.loader.workers, result.loader.contents.dtype) == (2, "float32")


@pytest.mark.parametrize("every", [{}, {"on_log": 1}, {"on_evaluate": 3, "on_save": 5}])
def test_transformers(clock, callback, every):
    watching = callback("transformers", progress=False)
    train(clock, watching, Loader(clock, 0.01), **every)
    result = watching.result
    assert result.waits.host_wait == pytest.approx(0.25)
    assert result.waits.throughput.m_as("img/s") == pytest.approx(400)
    assert (result.waits.batches, result.loader.workers) == (40, 4)


def test_what_was_found_is_said_at_the_end(clock, callback, capsys):
    fit(clock, callback("lightning"), Loader(clock, 0.01))
    train(clock, callback("transformers"), Loader(clock, 0.01))
    assert capsys.readouterr().err.count("The training loop waits 25.0 % of its time for data") == 2


def test_the_older_package_of_lightning_has_its_own_base_class(clock, callback):
    watching = callback("lightning", ("pytorch_lightning", "pytorch_lightning.callbacks"), progress=False)
    fit(clock, watching, Loader(clock, 0.01))
    assert watching.result.waits.host_wait == pytest.approx(0.25)


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
