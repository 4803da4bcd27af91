"""Frameworks and trackers themselves, where they are installed: `make test` does not install them."""

import json
import os
import subprocess
import sys

import pytest

from starvelab.runtime import Trackers
from tests.jobs.loops import Slow

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks
SHARES = {"starvelab/waiting": 0.25, "starvelab/gpu_waiting": 0.125}
# In a process of its own: a run leaves a server behind.
WANDB = """
import json, wandb
from starvelab.runtime import Trackers
Trackers().log({"starvelab/waiting": 9.0}, 0)
assert wandb.run is None
with wandb.init(project="starvelab") as run:
    steps = []
    for step in range(3):
        Trackers().log({"starvelab/waiting": 0.25 + step}, 100 * step)
        run.log({"loss": 10.0 * step}, step=step)
        steps.append(run.step)
    run.log({"end": 1.0}, step=3)  # what was logged before stands in the summary now
    summary = dict(run.summary)
print(json.dumps([summary["starvelab/waiting"], summary["loss"], steps]))
"""


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


def test_a_real_writer_of_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter as Writer

    with Writer(tmp_path) as writer:
        Trackers().log(SHARES, 7)
        trackers = Trackers()
    trackers.log(SHARES, 8)  # it is closed
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    found = {name: [(one.step, one.value) for one in read.Scalars(name)] for name in read.Tags()["scalars"]}
    assert found == {name: [(7, share)] for name, share in SHARES.items()}
    assert writer.file_writer is None


def test_a_real_run_of_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # of versions that have a database instead
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    Trackers().log(SHARES, 6)
    assert mlflow.active_run() is None
    with mlflow.start_run() as run:
        Trackers().log(SHARES, 7)
    client = mlflow.MlflowClient()
    for name, share in SHARES.items():
        rows = client.get_metric_history(run.info.run_id, name)
        assert [(row.step, row.value) for row in rows] == [(7, share)]


def test_a_real_run_of_wandb_keeps_the_steps_that_the_program_gives(tmp_path):
    pytest.importorskip("wandb")
    done = subprocess.run(
        [sys.executable, "-c", WANDB], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [2.25, 20.0, [0, 1, 2]]
