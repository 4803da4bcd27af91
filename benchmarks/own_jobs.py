"""The recorded runs of the job of one's own: what a notebook shows to those who have no PyTorch.

python -m benchmarks.own_jobs          writes starvelab_doctor/example_runs.json
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from starvelab_doctor.example import RECORD, SCRIPT
from starvelab_doctor.script import run_script
from starvelab_doctor.watching.hooks import Doctor
from starvelab_doctor.watching.recorder import Recorder

from .report import options


def _recorded(workers: int) -> Recorder:
    """Return the times of one run under doctor."""
    doctor = Doctor()
    with doctor.watching():
        run_script(SCRIPT, [str(workers)])
    (recorder,) = doctor.loops.values()
    return recorder


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the job of the notebook under doctor, and keep the times of its batches."""
    asked = options(__doc__, workers=((0, 1, 2, 3), (0,)), rounds=(3, 1)).parse_args(arguments)
    runs = {}
    for workers in asked.workers:
        # Other programs only make a job slower: the quickest run is the one that was disturbed least.
        times = min(
            (_recorded(workers) for _ in range(asked.rounds)), key=lambda one: sum(one.waits) + sum(one.steps)
        )
        waits, steps, _ = times.pairs()
        runs[str(workers)] = {
            "batch_size": times.batch_size,
            "first_wait": round(1e3 * (times.passes[0].first_wait or 0.0), 2),
            "prepare_cpu": times.use.share and round(times.use.share, 3),
            "queue_depth": round(times.ready / times.asked, 3) if times.asked else None,
            "waits": [round(1e3 * float(wait), 2) for wait in waits],
            "steps": [round(1e3 * float(step), 2) for step in steps],
        }
        print(workers, times.finding().summary)
    found = {
        "machine": "a machine with two cores and no GPU",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "runs": runs,
    }
    if not asked.saved:
        return
    # A line for each run: neither one long line nor one for each number.
    text = json.dumps(found | {"runs": {}}, indent=1)
    lines = ",\n".join(f'  "{workers}": {json.dumps(one)}' for workers, one in runs.items())
    RECORD.write_text(text.replace("{}", "{\n" + lines + "\n }") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
