"""Two pipelines side by side: the picture and the table say what each solve says."""

import numpy as np

from starvelab import PUBLISHED, Hardware, InputError, Models, Pipeline, Storage
from starvelab.lesson.show.svg import step_bars
from starvelab.show import side_by_side
from tests.rejected import message

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8)
MORE = PIPE.replace(workers=16, storage=Storage.HDD)


def test_two_pipelines_are_compared_in_a_picture_and_a_table():
    picture = side_by_side(PIPE, MORE)
    rows = {name: values for name, *values in picture.rows}
    first, second = PIPE.solve(), MORE.solve()
    assert rows["throughput"] == [first.throughput, second.throughput]
    assert rows["binds"] == ["workers", "drive"]
    assert rows["drive time"] == [None, second.resource_times["storage"]]
    assert rows["storage"] == [None, "Storage.HDD"]
    assert "model" not in rows, "only parts that differ"
    assert "The second is 0.09 times as fast as the first." in picture.caption  # 360 of 4000 img/s
    longest = max(times.m_as("ms") for times in second.resource_times.values())
    bars = [step_bars(step, longest=longest) for step in (first, second)]
    assert picture.svg == f"<p>The first</p>{bars[0]}<p>The second</p>{bars[1]}", "one axis of time"


def test_a_step_that_cannot_run_says_so():
    huge = PIPE.replace(batch_size=10**6)
    picture = side_by_side(PIPE, huge)
    assert huge.solve().infeasible_reason in picture.caption
    assert picture.rows[-1] == ["feasible", True, False]
    assert "PUBLISHED" in repr(side_by_side(PIPE, PIPE.replace(assumptions=PUBLISHED)))


def test_what_is_no_pipeline_or_many_cannot_be_compared():
    assert message(InputError, side_by_side, PIPE, PIPE.solve()) == (
        "side_by_side compares two pipelines, got Step. "
        "Pass for example pipeline and pipeline.replace(workers=16)."
    )
    many = PIPE.replace(workers=np.array([1, 2]))
    assert message(InputError, side_by_side, PIPE, many) == (
        "side_by_side looks at one point, got 2. Solve for one."
    )
