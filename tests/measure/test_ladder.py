"""The ladder climbs all rungs in turn, each from what was made under its own rule."""

import time

import pytest

from starvelab.measure import Transform, ladder
from starvelab.measure.devices import VirtualAccelerator
from starvelab.measure.ladder import Ladder, profile
from starvelab.measure.session import NOT_PREPARED, Session

from .scenes import kind, pipeline, zeros


def test_every_rung_is_measured_in_every_round(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "BLOCK", 0.01)
    climbed = profile(pipeline(tmp_path), seconds=0.3, progress=False)
    assert climbed.rungs == (0, 1, 2, 3, 4, 5)
    assert {len(periods) for periods in climbed.periods} == {climbed.rounds}
    assert climbed.rounds >= 2
    assert climbed.asked == 0.3
    # Nothing is faster than the accelerator.
    assert (climbed.medians >= 4.9).all()


def test_a_slow_pipeline_gets_more_time_until_it_is_decided(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "BLOCK", 0.01)
    options = {"seconds": 0.001, "longest": 60.0, "progress": False}
    seen = []

    def after_three(so_far):
        seen.append(so_far.rounds)
        return so_far.rounds == 3

    monkeypatch.setattr(Ladder, "clear", property(after_three))
    assert (profile(pipeline(tmp_path), **options).rounds, seen) == (3, [2, 3])
    monkeypatch.setattr(Ladder, "clear", False)
    assert profile(pipeline(tmp_path), **options).rounds == 4
    # A round takes longer than is left.
    assert profile(pipeline(tmp_path), **options | {"longest": 0.002}).rounds == 2


@pytest.mark.parametrize("loader", ["inline", "threads"])
def test_after_a_change_only_what_was_begun_since_counts(tmp_path, loader):
    with Session(pipeline(tmp_path, **kind(loader))) as session:
        session.warm_up()
        for rung in (1, 4, 1, 5, 1):
            since = time.monotonic()
            session.set_rung(rung)
            session.step()
            passed = session.passed[-1]
            if rung == 1:
                assert passed.rung == 1
                assert passed.start >= since
            else:
                assert passed.number == NOT_PREPARED.number


def test_on_the_upper_rungs_the_loader_is_not_asked(tmp_path):
    calls = []

    def count(array):
        calls.append(1)
        return array

    pipe = pipeline(
        tmp_path, workers=0, transforms=[zeros(), Transform("count", count)], device=VirtualAccelerator(0.001)
    )
    with Session(pipe) as session:
        session.warm_up()
        session.set_rung(4)
        calls.clear()
        for _ in range(5):
            session.step()
        session.set_rung(5)
        session.step()
        assert calls == []
        assert session.kept.shape == (4, 3, 4, 4)
