"""Twenty published loaders, from what their fewest workers reached to what more did: a table of the lab.

Of each source the first two loaders in `tests/golden/published.csv` whose one worker is published, too.
The learner's model and the lab's are given what one worker prepares. `told_more` is what the lab's says where
it is told what else is published, such as what the training loop takes to receive a batch.

    python docs/build.py        writes it, with what else is derived
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from benchmarks.published import Published, read

MAX_ROWS_OF_A_SOURCE = 2


def _one_worker(rate: str, table: dict[str, Any]) -> tuple[str, int] | None:
    """Return the published measurement that a worker's rate comes from, and of how many workers it is."""
    name = rate.removeprefix("@")
    if name in table["input"]:
        return name, 1
    constant = table["constant"].get(name, {})
    if constant.get("rule") == "of_one_worker":
        return constant["with"]["rate"].removeprefix("@"), constant["with"]["count"]
    return None


def rows() -> list[dict[str, Any]]:
    """Return the rows: loader, workers, cores, batch size, one worker's rate, and what was reached."""
    table, published = read(), Published()
    predicted = {test.name: published.told(test.name).predicted for test in published.of_kind("loader")}
    found: list[dict[str, Any]] = []
    sources: Counter[str] = Counter()
    for name, row in table["row"].items():
        described = row.get("pipeline") or {}
        workers = described.get("workers")
        if name not in predicted or not isinstance(workers, dict) or described.get("hardware") != "1e9 img/s":
            continue
        base = _one_worker(str(workers.get("rate")), table)
        source = row["source"].partition("@")[0].partition(",")[0]
        if base is None or sources[source] == MAX_ROWS_OF_A_SOURCE:
            continue
        sources[source] += 1
        measured, count = base
        found.append(
            {
                "what": row["what"],
                "workers": workers["count"],
                "cores": workers.get("cores"),
                "batch": described.get("batch_size", 1),
                "one": float(f"{published.value(measured).magnitude / count:.5g}"),
                "measured": float(row["value"].split()[0]),
                "told_more": float(f"{predicted[name].magnitude:.5g}"),
                "source": row["source"],
            }
        )
    return found


def as_json() -> str:
    """Return the file of the lab."""
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows()) + "\n]\n"
