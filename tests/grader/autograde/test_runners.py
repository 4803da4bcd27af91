"""The time of a submission, by a clock that may take back seconds for which others had the cores."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from starvelab_grader.autograde.runners import Runners


@pytest.mark.parametrize(
    ("blocks", "used"),
    [
        ([(0.0, 1.5), (2.0, 2.5)], 2.0),
        # At the second block's end the clock has found that others had the cores for some of the first.
        ([(0.0, 1.5), (1.5, 1.2)], 1.2),
        # It was read before it was looked at: what is taken back then was never counted.
        ([(0.1, 0.0)], 0.0),
        ([(0.1, 0.0), (0.0, 0.5)], 0.5),
    ],
)
def test_no_submission_gets_more_time_than_there_is(blocks, used):
    read = iter([second for block in blocks for second in block])
    runners = Runners()
    for _ in blocks:
        with runners.counted(SimpleNamespace(clock=lambda: next(read))):
            pass
    assert runners.seconds_used == pytest.approx(used)
