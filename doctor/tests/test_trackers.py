"""The trackers that a program uses: fakes with their documented calls."""

import sys
import types

import pytest

from starvelab_doctor.trackers import Trackers, open_writers

SHARES = {"starvelab/waiting": 0.25, "starvelab/gpu_waiting": 0.125}


@pytest.fixture
def modules(monkeypatch):
    """Put modules in the place of those that a program has imported, and take the trackers away."""

    def put(**given):
        names = ("wandb", "mlflow", "torch.utils.tensorboard.writer", "tensorboardX.writer")
        for name in names:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for name, parts in given.items():
            monkeypatch.setitem(sys.modules, name.replace("__", "."), types.SimpleNamespace(**parts))

    put()
    return put


class Run:
    """A run of W&B, or of MLflow: the calls."""

    def __init__(self):
        self.calls = []

    def log(self, data, step=None, commit=None):
        self.calls.append((data, step, commit))

    def log_metrics(self, metrics, step=None):
        self.calls.append((metrics, step))


class SummaryWriter:
    """A writer of TensorBoard: its scalars, until it is closed."""

    def __init__(self):
        self.file_writer, self.scalars = object(), []

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.file_writer = self.file_writer or object()  # as those of PyTorch open themselves again
        self.scalars.append((tag, scalar_value, global_step))


def test_active_runs_of_wandb_and_mlflow_get_it_in_the_row_that_is_logged_next_or_at_the_step(modules):
    ours, theirs = Run(), Run()
    modules(wandb={"run": ours}, mlflow={"active_run": lambda: theirs, "log_metrics": theirs.log_metrics})
    Trackers().log(SHARES, 7)
    Trackers().log({}, 7)  # where no batch was used nothing is logged
    assert (ours.calls, theirs.calls) == ([(SHARES, None, False)], [(SHARES, 7)])


def test_a_writer_of_tensorboard_gets_it_while_it_is_open(modules):
    modules(tensorboardX__writer={"SummaryWriter": SummaryWriter})
    writers = [SummaryWriter(), SummaryWriter()]
    trackers = Trackers()
    trackers.log(SHARES, 7)
    writers[1].file_writer = None
    trackers.log(SHARES, 8)
    assert writers[0].scalars == [(name, share, step) for step in (7, 8) for name, share in SHARES.items()]
    assert writers[1].scalars == [(name, share, 7) for name, share in SHARES.items()]
    assert writers[1].file_writer is None


def test_nothing_is_started_where_nothing_is_active(modules):
    def start(*_, **__):
        raise AssertionError("a run was started")

    modules(wandb={"run": None, "init": start}, mlflow={"active_run": lambda: None, "log_metrics": start})
    Trackers().log(SHARES, 7)
    modules()
    Trackers().log(SHARES, 7)
    assert open_writers() == []


def test_a_tracker_that_fails_is_named_once_and_the_others_go_on(modules):
    run = Run()

    def fail(*_, **__):
        raise ConnectionError("no route to host")

    modules(wandb={"run": run}, mlflow={"active_run": lambda: run, "log_metrics": fail})
    trackers = Trackers()
    with pytest.warns(UserWarning, match=r"and MLflow did not take it: no route to host\. It gets") as told:
        trackers.log(SHARES, 1)
    trackers.log(SHARES, 2)  # a second warning would be an error
    assert (len(told), len(run.calls)) == (1, 2)
