"""`run`, `calibrate` and `predict` take a DataLoader, a Dataset or an IterableDataset."""

from __future__ import annotations

import time

import pytest

from starvelab import Q_
from starvelab.errors import InputError, UnknownNameError
from starvelab.measure import SimulatedClock, VirtualAccelerator, calibrate, diagnose, predict, run
from starvelab.measure.datasets import DatasetPipeline

from .scenes import CALIBRATION, pipeline

torch = pytest.importorskip("torch")
data = torch.utils.data
pytestmark = pytest.mark.usefixtures("nothing_stays")


class Slow(data.Dataset):
    """Items that take 2 ms each."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((3,), float(index))


class SlowStream(data.IterableDataset):
    """The same, one after the other."""

    def __iter__(self):
        dataset = Slow()
        return (dataset[index] for index in range(len(dataset)))


def test_a_loader_and_its_step_are_run():
    seen = []
    measured = run(
        data.DataLoader(Slow(), 4),
        step=lambda batch: seen.append(batch.shape),
        seconds="0.1 s",
        progress=False,
    )
    # A sleep is never shorter than asked, so four items take 8 ms at least.
    assert measured.throughput <= Q_(500, "img/s")
    assert set(seen) == {(4, 3)}
    assert "accelerator busy" in [row[0] for row in measured.rows]
    assert measured.stage_times["__getitem__"] >= Q_(2, "ms")


def test_a_loader_without_a_step_is_run_alone(capsys):
    measured = run(data.DataLoader(SlowStream(), 4), seconds="0.1 s")
    assert capsys.readouterr().out.startswith(
        "Running SlowStream items in the training loop itself for about"
    )
    assert measured.throughput <= Q_(500, "img/s")
    assert ", without a training step: pass step=train_step to see how long it waits." in measured.summary
    assert "accelerator busy" not in [row[0] for row in measured.rows]


def test_a_loader_without_a_step_is_simulated_alone():
    loader, clock = data.DataLoader(Slow(), 4), SimulatedClock({"read": "1 ms"})
    assert not run(loader, clock=clock).step_known
    assert diagnose(loader, clock=clock).verdict == "cannot tell"


@pytest.mark.parametrize("dataset", [Slow(), SlowStream()])
def test_what_one_worker_takes_predicts_what_several_would_bring(dataset):
    loader = data.DataLoader(dataset, 4)
    calibration = calibrate(loader, seconds="0.1 s", progress=False)
    assert calibration.cpu_time >= Q_(2, "ms")
    assert (calibration.loader, calibration.batch_size, calibration.transfer_size) == (
        "torch",
        4,
        Q_(12, "B"),
    )
    known = calibration.replace(cpu_time=Q_(2, "ms"), handover_time=Q_(0, "ms"), jitter=0.0, cores=4)
    one, four = (predict(known, loader, step_time="0.1 ms", workers=count) for count in (1, 4))
    assert one.throughput.m_as("img/s") == pytest.approx(500)
    assert four.throughput.m_as("img/s") == pytest.approx(2000)
    slow_step = predict(known, dataset, batch_size=4, workers=4, step_time="50 ms")
    assert slow_step.throughput.m_as("img/s") == pytest.approx(80)


def test_a_dataset_is_calibrated_whatever_its_step():
    def never(batch):
        raise AssertionError("calibrating trains nothing")

    calibration = calibrate(Slow(), batch_size=2, workers=0, step=never, seconds="20 ms", progress=False)
    assert calibration.batch_size == 2


@pytest.mark.parametrize(
    ("function", "came", "kind"),
    [(run, 5, "int"), (calibrate, {"nothing": "1 s"}, "dict"), (run, "train.py", "str")],
)
def test_what_is_no_pipeline_is_rejected(function, came, kind):
    with pytest.raises(InputError) as caught:
        function(came)
    assert str(caught.value) == (
        f"{function.__name__} takes an InputPipeline, a DataLoader, or a dataset with items and a length, "
        f"got {kind}. Pass one of these."
    )


def test_a_prediction_needs_the_time_of_a_step():
    loader = data.DataLoader(Slow(), 4)
    with pytest.raises(InputError, match=r"needs an accelerator or the step_time of one"):
        predict(CALIBRATION, loader)
    with pytest.raises(InputError, match=r"A model needs the time of a step, got TrainingStep.*Measure it"):
        predict(CALIBRATION, loader, step=print)


def test_options_of_a_dataset_fit_no_pipeline(tmp_path):
    for call in (run, calibrate, lambda pipe, **options: predict(CALIBRATION, pipe, **options)):
        with pytest.raises(InputError, match=r"workers belong to a dataset, and this is an InputPipeline"):
            call(pipeline(tmp_path), workers=1)


def test_a_pipeline_of_a_dataset_is_changed_as_others_are():
    pipe = DatasetPipeline.around(Slow(), step_time="4 ms", workers=1)
    assert pipe.replace(workers=3).accelerator.step_time == Q_(4, "ms")
    assert pipe.replace(step_time="5 ms").accelerator.step_time == Q_(5, "ms")
    assert pipe.replace(accelerator=VirtualAccelerator(step_time="6 ms")).accelerator.step_time == Q_(6, "ms")
    with pytest.raises(
        UnknownNameError, match=r"A pipeline of a dataset has no field 'worker'\. Did you mean"
    ):
        pipe.replace(worker=3)


def test_a_pipeline_of_something_else_is_rejected():
    with pytest.raises(
        InputError, match="A DatasetPipeline needs a dataset with items and a length, got int"
    ):
        DatasetPipeline(dataset=5, step_time="4 ms")
