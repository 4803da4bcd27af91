"""The learner's model and the lab's beside twenty published loaders, given what one worker prepares."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median

from ...model.assumptions import PUBLISHED
from ...model.parts import Workers
from ...pipeline import Pipeline
from ...tables import count_of
from ...units import Q_
from .. import notices
from ..my_model import MyModel, my_model
from ..show.factors import DOT, SQUARE, TRIANGLE, draw_factors
from ..wording import grouped

# Written by docs/build.py from tests/golden/published.csv.
ROWS = Path(__file__).parents[1] / "published_loaders.json"
# Of the training loop, which takes these batches as they come.
STEP = Q_("1 us")
_SIZE = Q_("1 KB")  # of a sample: a worker's rate in bytes is that in samples
_MARKS = {"yours": SQUARE, "the lab's": DOT, "the lab's, told more": TRIANGLE}


@dataclass(frozen=True)
class PublishedLoader:
    """One published loader, and what the lab's model says of it where it is told what else is published."""

    what: str
    workers: int
    cores: int | None
    batch: int
    one: float  # samples a second of one worker
    measured: float
    told_more: float
    source: str

    @property
    def lab(self) -> float:
        """Return the rate that the lab's model gives for one worker's rate, and the cores if published."""
        workers = Workers(self.workers, rate=Q_(self.one, "img/s"), cores=self.cores)
        pipeline = Pipeline(
            batch_size=self.batch, workers=workers, hardware="1e9 img/s", assumptions=PUBLISHED
        )
        return float(pipeline.solve().throughput.m_as("img/s"))

    def by(self, model: MyModel) -> float | None:
        """Return the rate that the learner's model gives; None where it returns no time."""
        try:
            rate = _SIZE * self.one / Q_("1 s")
            cpu = model.cpu_time(self.batch, _SIZE, self.workers, rate)
            busy = model.utilization(Q_(cpu.m_as("ms"), "ms"), STEP)
            found = float(self.batch * busy / STEP.m_as("s"))
        except Exception:  # a learner's function may return anything
            return None
        return found if isfinite(found) and found > 0 else None


def published_loaders() -> list[PublishedLoader]:
    """Return the twenty loaders."""
    return [PublishedLoader(**row) for row in json.loads(ROWS.read_text(encoding="utf-8"))]


@dataclass(frozen=True, repr=False)
class BesidePublished(notices.Sentences):
    """Three errors of each loader: the learner's model, the lab's, and the lab's where it is told more."""

    loaders: tuple[PublishedLoader, ...]
    yours: tuple[float | None, ...]
    model: MyModel

    HEADERS = ("loader", "workers", "measured", *_MARKS)

    @property
    def errors(self) -> list[tuple[float | None, float, float]]:
        """Return what each model predicts, as a factor of what was measured."""
        return [
            (None if own is None else own / loader.measured, loader.lab / loader.measured,
             loader.told_more / loader.measured)
            for loader, own in zip(self.loaders, self.yours, strict=True)
        ]  # fmt: skip

    def rows(self) -> list[list[str]]:
        """Return the table's rows."""
        return [
            [loader.what, str(loader.workers), f"{grouped(loader.measured, 5)} a second",
             *("none" if factor is None else f"{factor - 1:+.0%}".replace("%", " %") for factor in factors)]
            for loader, factors in zip(self.loaders, self.errors, strict=True)
        ]  # fmt: skip

    def sentences(self) -> list[str]:
        """Say how far each of the three is."""
        columns = [[abs(f - 1) for f in column if f is not None] for column in zip(*self.errors, strict=True)]
        halves = [f"{median(column):.0%}".replace("%", " %") if column else "nothing" for column in columns]
        high = sum(factor[0] is not None and factor[0] > 1 for factor in self.errors)
        lines = f" of {count_of(self.model.lines, 'line')}" if self.model.lines else ""
        return [
            f"From what one worker prepares, half of the errors of your model{lines} are within {halves[0]}, "
            f"and half of the lab's within {halves[1]}. Your model promises too much for {high} of "
            f"{len(self.loaders)}: workers get in each other's way. With what else is published, such as the "
            f"loop's time to receive a batch, half of the lab's errors are within {halves[2]}.",
            *self.model.sentences(),
        ]

    def _repr_html_(self) -> str:
        rows = notices.widget_table(self.HEADERS, self.rows())
        sentence, *others = self.sentences()
        more = "".join(f"<p>{notices.escape(other)}</p>" for other in others)
        return (
            f"{notices.notice(sentence)}{self._draw()}<details><summary>The twenty loaders</summary>{rows}"
            f"</details>{more}"
        )

    def _draw(self) -> str:
        """Draw each prediction as a factor of what was measured, a row for each loader."""
        return draw_factors(
            [
                (row, {name: factor for name, factor in zip(_MARKS, factors, strict=True) if factor})
                for row, factors in enumerate(self.errors, start=1)
            ],
            _MARKS,
            truth="as measured",
            title="Predicted rates of twenty published loaders, as a factor of what was measured",
            description=self.sentences()[0],
        )


def beside_published() -> BesidePublished:
    """Compare your model and the lab's with twenty published loaders, from the rate of one worker.

    It calls your `cpu_time` and `utilization`, or the lab's if one is missing from ``my_model.py``.

    Returns
    -------
    BesidePublished
        Shows itself when it ends a cell.
    """
    model, loaders = my_model(), published_loaders()
    return BesidePublished(tuple(loaders), tuple(loader.by(model) for loader in loaders), model)
