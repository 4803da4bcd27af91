"""Writes the records of the three pipelines of which learners see nothing else.

python -m benchmarks.black_boxes
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from starvelab import Drive, Jitter, Pipeline, Samples, Workers
from starvelab.lesson.course.decisions import RECORDS

from .report import options

BATCHES, SEED = 40, 13
COLUMNS = ("worker", "prepare_start", "prepared", "received", "copied", "step_start", "step_end")
# By box: what binds, which is what the mean rates say, and the pipeline; a batch counts as one sample.
common = {"batch_size": 1, "workers": Workers(4, start_up="150 ms"), "hardware": "20 ms"}
SHARED = Drive("1 GB/s", read_ahead=False)
SAMPLE = Samples(size="25 MB", transfer="26 MB", jitter=Jitter(0.1))
BOXES = {
    # The reads of four workers queue for one drive, so each worker is busy all the time.
    "A": ("storage", Pipeline(dataset=SAMPLE.replace(cpu_time="40 ms"), storage=SHARED, **common)),
    # Nearly a tie: who is honest is not sure.
    "B": ("CPU", Pipeline(dataset=SAMPLE.replace(cpu_time="84 ms"), **common)),
    # One copy after the other, while the accelerator computes.
    "C": (
        "link",
        Pipeline(dataset=SAMPLE.replace(cpu_time="60 ms"), link="1 GB/s", **common | {"hardware": "18 ms"}),
    ),
}


def records(batches: int = BATCHES) -> dict[str, dict[str, list[float]]]:
    """What learners get: by box and column."""
    found = {}
    for box, (_, pipeline) in BOXES.items():
        trace = pipeline.simulate(batches=batches, replicas=1, seed=SEED, warm_up=0).trace()
        found[box] = {name: [round(float(x), 1) for x in getattr(trace, name)] for name in COLUMNS}
        found[box]["worker"] = [int(number) for number in trace.worker]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(__doc__, batches=(BATCHES, 1)).parse_args(arguments)
    lines = [
        f'"{box}": {{\n' + ",\n".join(f'"{name}": {json.dumps(each)}' for name, each in one.items()) + "\n}"
        for box, one in records(asked.batches).items()
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if asked.batches == BATCHES:
        RECORDS.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
