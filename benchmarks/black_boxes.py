"""Writes the records of the three pipelines of which learners see nothing else.

python -m benchmarks.black_boxes
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from starvelab.lesson.black_boxes import RECORDS
from starvelab.simulate import Loader, simulate

from .report import options

BATCHES, SEED = 40, 13
COLUMNS = ("worker", "prepare_start", "prepared", "received", "copied", "step_start", "step_end")
common = {"workers": 4, "start_up": "150 ms", "batch_size": 64, "jitter": 0.1}
# By box: what binds, which is what mean times say (`Loader.mean_rate`), and the pipeline.
BOXES = {
    # The reads of four workers queue for one drive, so each worker is busy all the time.
    "A": ("storage", Loader(step_time="20 ms", prepare_time="40 ms", read_time="25 ms", **common)),
    # Nearly a tie: who is honest is not sure.
    "B": ("CPU", Loader(step_time="20 ms", prepare_time="84 ms", **common)),
    # One copy after the other, while the accelerator computes.
    "C": ("link", Loader(step_time="18 ms", prepare_time="60 ms", copy_time="26 ms", **common)),
}


def records(batches: int = BATCHES) -> dict[str, dict[str, list[float]]]:
    """What learners get: by box and column."""
    found = {}
    for box, (_, loader) in BOXES.items():
        trace = simulate(loader, batches=batches, seed=SEED).trace()
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
