"""Frameworks themselves, where they are installed: `make test` does not install them."""

import pytest

from tests.jobs.loops import Slow

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks


class Items(Slow):
    """Items that take 5 ms of the clock each, with a number to learn."""

    def __getitem__(self, number):
        super().__getitem__(number)
        return torch.zeros(4), torch.zeros(1)


def test_keras_on_pytorch(clock, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # as Keras sets it
    keras = pytest.importorskip("keras")
    from starvelab.jobs.keras import StarvelabCallback

    class Step(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            clock.sleep(0.03)

    loader = torch.utils.data.DataLoader(Items(clock, 0.005, 80), batch_size=2)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(loss="mse")
    watching = StarvelabCallback(loader, progress=False)
    history = model.fit(loader, epochs=2, verbose=0, callbacks=[Step(), watching]).history
    result = watching.result
    assert result.host_wait == pytest.approx(0.25)
    assert history["starvelab/waiting"] == pytest.approx([0.25] * 2)
    assert (result.batches, result.batch_size, result.workers) == (80, 2, 0)


def test_accelerate_logs_what_was_waited_since_the_last_time(clock):
    accelerate = pytest.importorskip("accelerate")
    from accelerate.state import AcceleratorState
    from accelerate.tracking import GeneralTracker

    from starvelab.jobs import watch

    rows = []

    class Rows(GeneralTracker):
        name, requires_logging_directory, tracker = "rows", False, rows

        def store_init_configuration(self, values):
            pass

        def log(self, values, step, **_):
            rows.append((step, values))

    accelerator = accelerate.Accelerator(cpu=True, log_with=Rows())
    accelerator.init_trackers("project")
    loader = torch.utils.data.DataLoader(Items(clock, 0.005, 80), batch_size=2)
    watched = watch(accelerator.prepare(loader), progress=False)
    for step, _ in enumerate(watched, 1):
        clock.sleep(0.03)
        if step % 10 == 0:
            accelerator.log({"loss": 1.0, **watched.metrics()}, step=step)
    AcceleratorState._reset_state(reset_partial_state=True)
    assert [step for step, _ in rows] == [10, 20, 30, 40]
    assert all(values == {"loss": 1.0, "starvelab/waiting": pytest.approx(0.25)} for _, values in rows)
    # It fetches a batch ahead: nothing is left to wait for when the last one is asked for.
    assert watched.result.host_wait == pytest.approx(38 * 0.01 / (38 * 0.01 + 39 * 0.03))
