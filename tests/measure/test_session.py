"""A session opens what a pipeline names, passes its batches on, and closes it whatever happens."""

from __future__ import annotations

import pytest

from starvelab import InputError
from starvelab.measure import Transform, VirtualAccelerator
from starvelab.measure.devices import VirtualDevice
from starvelab.measure.session import Session

from .scenes import pipeline


class Watched(VirtualDevice):
    closed = 0

    def close(self):
        self.closed += 1


class Accelerator:
    """Remembers the device that it opened."""

    def open(self, pipe):
        self.device = Watched(VirtualAccelerator(step_time="1 ms"), pipe.link)
        return self.device


def test_the_device_is_closed_when_the_loader_cannot_open(tmp_path):
    accelerator = Accelerator()
    with (
        pytest.raises(InputError, match="must return a NumPy array"),
        Session(
            pipeline(tmp_path, transforms=[Transform("none", lambda raw: None)], accelerator=accelerator)
        ),
    ):
        pass
    assert accelerator.device.closed == 1


def test_the_device_is_closed_when_the_loop_fails(tmp_path, nothing_stays):
    accelerator = Accelerator()

    def loop():
        with Session(pipeline(tmp_path, accelerator=accelerator)) as session:
            session.warm_up()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert accelerator.device.closed == 1


def test_the_device_is_closed_when_the_loader_cannot_close(tmp_path):
    def failing():
        raise OSError("no way")

    accelerator = Accelerator()
    with (
        pytest.raises(OSError, match="no way"),
        Session(pipeline(tmp_path, loader="inline", accelerator=accelerator)) as session,
    ):
        session.loader.close = failing
    assert accelerator.device.closed == 1


@pytest.mark.parametrize(("workers", "dropped"), [(0, 1), (1, 3), (2, 6)])
def test_the_batches_of_the_start_do_not_count(tmp_path, workers, dropped):
    # Two ordered ahead for each worker, and one more of each.
    with Session(pipeline(tmp_path, workers=workers)) as session:
        session.warm_up()
        session.step()
        assert session.passed[0].delivery.number == dropped


def test_a_batch_is_not_kept_once_it_was_used(tmp_path):
    with Session(pipeline(tmp_path)) as session:
        session.warm_up()
        session.step()
        assert session.passed[0].delivery.array is None
        assert session.waits()[0] >= 0
        assert set(session.stage_seconds()) == {"read", "blank", "collate"}
        assert len(session.trace()) == 1
