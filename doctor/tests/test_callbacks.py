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
from starvelab.errors import InputError, MissingPackageError

HOOKS = {
    "lightning": (
        "on_train_epoch_start on_train_batch_start on_train_batch_end on_validation_start on_validation_end "
        "on_save_checkpoint on_train_epoch_end on_train_end"
    ),
    "transformers": (
        "on_train_begin on_epoch_begin on_step_begin on_substep_end on_step_end on_log on_evaluate on_save "
        "on_epoch_end on_train_end"
    ),
    "keras": (
        "on_train_begin on_epoch_begin on_train_batch_begin on_train_batch_end on_test_begin on_test_end "
        "on_epoch_end on_train_end"
    ),
}
MODULES = {
    "lightning": ("lightning", "lightning.pytorch", "lightning.pytorch.callbacks"),
    "transformers": ("transformers",),
    "keras": ("keras", "keras.backend", "keras.callbacks"),
}
BASES = {"lightning": "Callback", "transformers": "TrainerCallback", "keras": "Callback"}


@pytest.fixture
def callback(monkeypatch):
    """Make a `StarvelabCallback` for a framework that has nothing but a base class with its hooks."""

    def make(framework, modules=None, backend="torch", **options):
        nothing = dict.fromkeys(HOOKS[framework].split(), lambda self, *args, **kwargs: None)
        for name in modules or MODULES[framework]:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        setattr(sys.modules[name], BASES[framework], type(BASES[framework], (), nothing))
        if framework == "keras":
            sys.modules["keras.backend"].backend = lambda: backend
        name = f"starvelab_doctor.{framework}"
        monkeypatch.delitem(sys.modules, name, raising=False)
        made = importlib.import_module(name).StarvelabCallback
        monkeypatch.delitem(sys.modules, name)
        return made(**options)

    return make


class Logger:
    """A logger of Lightning: of each of its calls the step and the metrics."""

    def __init__(self):
        self.rows = []

    def log_metrics(self, metrics, step=None):
        self.rows.append((step, metrics))


def fit(clock, callback, loader, *, epochs=1, validate_every=0, save_every=0, loggers=(), every=50):
    """A training by the hooks of Lightning 2.6, whose steps take 30 ms."""
    trainer = types.SimpleNamespace(
        train_dataloader=loader, loggers=list(loggers), global_step=0, log_every_n_steps=every
    )
    for _ in range(epochs):
        callback.on_train_epoch_start(trainer, None)
        for index, _ in enumerate(loader):
            callback.on_train_batch_start(trainer, None, np.zeros(250, np.float32), index)
            clock.sleep(0.03)
            trainer.global_step += 1
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


def train(clock, callback, loader, *, logging_steps=0, **every):
    """A training by the hooks of Transformers 5.23, whose steps take 30 ms."""
    args = types.SimpleNamespace(train_batch_size=8, gradient_accumulation_steps=2, dataloader_num_workers=4)
    state, control = (types.SimpleNamespace(global_step=0), types.SimpleNamespace(should_log=False))

    def call(hook):
        getattr(callback, hook)(args, state, control, model=None, train_dataloader=loader)

    call("on_train_begin")
    call("on_epoch_begin")
    for index, _ in enumerate(loader):
        call("on_step_begin")
        clock.sleep(0.015)
        call("on_substep_end")
        clock.sleep(0.015)
        state.global_step += 1
        control.should_log = bool(logging_steps) and state.global_step % logging_steps == 0
        call("on_step_end")
        control.should_log = False
        for hook, count in every.items():
            if index % count == 0:
                clock.sleep(1)
                call(hook)
    call("on_epoch_end")
    call("on_train_end")


def fit_keras(clock, callback, loader, *, epochs=1):
    """A training by the hooks of Keras 3.13 on PyTorch, whose steps take 30 ms; the logs of its epochs."""
    found = []
    callback.on_train_begin(None)
    for epoch in range(epochs):
        callback.on_epoch_begin(epoch, None)
        for index, _ in enumerate(loader):
            callback.on_train_batch_begin(index, logs=None)
            clock.sleep(0.03)
            callback.on_train_batch_end(index, logs={"loss": 1.0})
        callback.on_test_begin()
        clock.sleep(1)
        callback.on_test_end({})
        found.append({"loss": 1.0})
        callback.on_epoch_end(epoch, found[-1])
    callback.on_train_end({})
    return found


def test_keras(clock, callback):
    loader = Loader(clock, 0.01)
    loader.batch_size, loader.num_workers = 16, 2
    watching = callback("keras", loader=loader, progress=False)
    logs = fit_keras(clock, watching, loader, epochs=3)
    assert watching.result.waits.host_wait == pytest.approx(0.25)
    assert watching.result.waits.throughput.m_as("img/s") == pytest.approx(400)
    assert (watching.result.waits.batches, watching.result.loader.workers) == (120, 2)
    assert logs == [{"loss": 1.0, "starvelab/waiting": pytest.approx(0.25)}] * 3


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_where_the_step_fetches_its_batch_keras_is_not_watched(callback, backend):
    with pytest.raises(InputError, match=rf"times Keras on PyTorch, got {backend}, .* Put watch\(\.\.\.\)"):
        callback("keras", backend=backend)


@pytest.mark.parametrize(("every", "steps"), [(10, (11, 21, 31, 40)), (0, (40,))])
def test_lightning_logs_what_was_waited_since_the_last_time_to_its_loggers(clock, callback, every, steps):
    logger, watching = Logger(), callback("lightning", progress=False)
    fit(clock, watching, Loader(clock, 0.01), loggers=[logger], every=every)
    assert logger.rows == [(step, {"starvelab/waiting": pytest.approx(0.25)}) for step in steps]
    assert watching.result.waits.host_wait == pytest.approx(0.25)


def test_a_logger_that_fails_is_left_out_and_the_training_goes_on(clock, callback):
    class Broken(Logger):
        def log_metrics(self, metrics, step=None):
            self.rows.append(step)
            raise OSError("no space left")

    broken, logger, watching = Broken(), Logger(), callback("lightning", progress=False)
    with pytest.warns(UserWarning, match=r"Broken did not take it: no space left\. It gets no more") as told:
        fit(clock, watching, Loader(clock, 0.01), loggers=[broken, logger], every=10)
    assert (len(told), broken.rows) == (1, [11])
    assert [step for step, _ in logger.rows] == [11, 21, 31, 40]
    assert watching.result.waits.batches == 40


def test_transformers_writes_whenever_the_trainer_logs(clock, callback, monkeypatch):
    rows = []
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(run=None))
    monkeypatch.setitem(
        sys.modules,
        "mlflow",
        types.SimpleNamespace(
            active_run=lambda: "a run", log_metrics=lambda shares, step: rows.append((step, shares))
        ),
    )
    watching = callback("transformers", progress=False)
    train(clock, watching, Loader(clock, 0.01), logging_steps=20)
    waited = {"starvelab/waiting": pytest.approx(0.25)}
    assert rows == [(20, waited), (40, waited)]
    assert watching.result.waits.host_wait == pytest.approx(0.25)


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
    assert (result.loader.workers, str(result.loader.contents)) == (2, "1 object, 1 KB, float32")


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
    ("keras", r"starvelab_doctor.keras needs keras, which is not installed\. Install it, or put watch"),
])  # fmt: skip
def test_without_the_framework_the_error_says_what_to_do(monkeypatch, framework, message):
    for name in MODULES[framework]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"starvelab_doctor.{framework}", raising=False)
    with pytest.raises(MissingPackageError, match=message):
        importlib.import_module(f"starvelab_doctor.{framework}")
