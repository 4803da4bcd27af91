"""A measurement shows its values, and why they are not to be trusted."""

from __future__ import annotations

import dataclasses

from starvelab import Q_
from starvelab.measure import InputPipeline, SimulatedClock, VirtualAccelerator, run
from starvelab.measure.quality import Quality

MEASURED = run(
    InputPipeline(accelerator=VirtualAccelerator(step_time="64 ms")),
    clock=SimulatedClock({"decode": "5 ms", "transform": "3 ms"}),
)


def test_a_measurement_shows_its_values():
    assert repr(MEASURED).splitlines() == [
        "250 img/s simulated (threads loader, 2 workers), the accelerator is busy 50.0 %.",
        "quantity                           value",
        "----------------------  ----------------",
        "throughput                     250 img/s",
        "95 % interval           250 to 250 img/s",
        "time between batches              128 ms",
        "accelerator busy                  50.0 %",
        "accelerator waits                 50.0 %",
        "loop waits in next()              75.0 %",
        "decode, each sample                 5 ms",
        "transform, each sample              3 ms",
    ]
    assert MEASURED._repr_html_().count("<tr>") == 9


def test_a_measurement_that_is_not_trusted_says_so():
    doubtful = dataclasses.replace(MEASURED, quality=Quality(0.4, 0.0, 9))
    assert doubtful.summary.endswith(" Not to be trusted: other programs used 40% of the cores.")


def test_quantities_of_a_measurement_have_their_dimensions():
    assert MEASURED.period == Q_(128, "ms")
    assert MEASURED.step_time == Q_(64, "ms")


def test_a_measurement_names_the_pipeline_that_ran():
    assert MEASURED.pipeline.workers == 2
    assert MEASURED.source == MEASURED.trace.source == "simulated"
