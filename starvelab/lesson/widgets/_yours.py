"""The learner's model beside the lab's: one picture that moves with two belts, and where the two part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any, TypeAlias

from ...errors import StarvelabError
from ...model.groups import Hardware, Models
from ...model.parts import Accelerator, Drive, Samples
from ...model.resources import ACCELERATOR, CPU, STORAGE
from ...pipeline import Pipeline
from ...tables import cell, percent
from ...units import Q_, Quantity, Unchecked
from .. import notices
from ..my_model import FILE, PARTS, MyModel, my_model
from ._moving import Data, Moving

YOURS, LAB = "Your model", "The lab's model"
WORKERS, BATCHES = range(1, 65), (8, 16, 32, 64, 128, 256, 512)
# Values that differ by a smaller share agree.
WITHIN = 2e-3
# Which station of the picture a function is about.
_STATIONS = {
    "step_time": ACCELERATOR.name, "data_demand": STORAGE.name, "cpu_time": CPU.name,
    "utilization": ACCELERATOR.name,
}  # fmt: skip

# Any: what a function of the model takes and returns.
_Value: TypeAlias = Any


@dataclass(frozen=True)
class BesideLab:
    """One function of the model for one job: what it was given, its value, and the lab's."""

    name: str
    given: Sequence[_Value]
    yours: _Value
    lab: _Value

    @property
    def agrees(self) -> bool:
        """True if both values are the same but for rounding."""
        yours, lab = (_number_of(value, self.lab) for value in (self.yours, self.lab))
        return yours is not None and lab is not None and isclose(yours, lab, rel_tol=WITHIN)

    @property
    def yours_in_words(self) -> str:
        """Return the learner's value as it is shown, in the lab's unit where it has one of its kind."""
        number = _number_of(self.yours, self.lab)
        if number is None or not isinstance(self.lab, Quantity):
            return f"{cell(self.yours):.60}"
        return cell(Q_(number, str(self.lab.units)))

    @property
    def row(self) -> list[object]:
        """The row of a table."""
        given = ", ".join(map(cell, self.given))
        return [f"{self.name}({given})", self.yours_in_words, self.lab, "yes" if self.agrees else "no"]


def _number_of(value: _Value, like: _Value) -> float | None:
    """Return a value as a plain number in the unit of another one; None where it has no such unit."""
    try:
        number = float(value.m_as(like.units) if isinstance(like, Quantity) else value)
    except Exception:  # a learner's function may return anything
        return None
    return number if isfinite(number) else None


def _job_of(pipeline: Pipeline) -> tuple[int, int, Quantity, Quantity]:
    """Return what the functions are given: batch size, workers, size of an image, and rate of a worker."""
    return (
        int(pipeline.batch_size),
        int(pipeline.workers.count),
        pipeline.size,
        pipeline.assumptions.worker_rate,
    )


def compare(model: MyModel, pipeline: Pipeline) -> Iterator[BesideLab]:
    """Yield each of the learner's functions, given what the lab says of a job, beside the lab's."""
    batch, workers, size, rate = _job_of(pipeline)
    times = pipeline.solve().resource_times
    cpu, gpu = times[CPU.name], times[ACCELERATOR.name]
    by_image = (pipeline.solve(batch_size=2 * batch).resource_times[ACCELERATOR.name] - gpu) / batch
    cases: dict[str, tuple[_Value, ...]] = {
        "step_time": (batch,),
        "data_demand": (Q_(batch, "img") / gpu, size),
        "cpu_time": (batch, size, workers, rate),
        "utilization": (cpu, gpu),
        "how_many_workers": (batch, size, rate, gpu),
    }
    # There is no crossing where the workers are faster for each image.
    if cpu / batch > by_image:
        cases["starved_from"] = (cpu / batch, by_image, gpu - batch * by_image)
    for name, given in cases.items():
        if model.is_own(name):
            lab = PARTS[name].lab(*given)
            yours = model.call(name, *given)
            if model.is_own(name):
                yield BesideLab(name, given, yours, lab)


def pipeline_of(model: MyModel, pipeline: Pipeline) -> Pipeline:
    """Return the pipeline that the model describes: its times, for the same batch, workers and drive."""
    batch, workers, size, rate = _job_of(pipeline)

    def positive(name: str, *given: _Value) -> Quantity:
        """Call a function, and the lab's where it returns what no picture can show."""
        value, lab = model.call(name, *given), PARTS[name].lab(*given)
        number = _number_of(value, lab)
        if number is None or number <= 0:
            model.replaced[name] = f"Your {name} returns {cell(value):.60}"
            number = float(lab.magnitude)
        return Q_(number, str(lab.units))

    gpu = positive("step_time", batch)
    cpu = positive("cpu_time", batch, size, workers, rate)
    drive = None
    if (read := pipeline.solve().resource_times.get(STORAGE.name)) is not None:
        bandwidth = pipeline.batch_size * pipeline.size / read
        demand = positive("data_demand", Q_(batch, "img") / gpu, size)
        drive = Drive((size * batch / gpu / demand * bandwidth).to("GB/s"))
    return Pipeline(
        dataset=Samples(size=size, cpu_time=cpu * workers / batch), storage=drive, workers=workers,
        hardware=Accelerator(rate=gpu), batch_size=batch,
    )  # fmt: skip


class ModelBesideLab(Moving):
    """Two belts with the same sliders, a sentence that says where they part, and a table of the functions."""

    def __init__(self, model: MyModel, lab: Pipeline, after: str | None = None) -> None:
        self._model, self._lab = model, lab
        super().__init__(
            {YOURS: lab, LAB: lab}, None, {"workers": WORKERS, "batch_size": BATCHES}, after=after
        )

    def _open(self) -> None:
        super()._open()
        self._say()

    def _data(self) -> Data:
        """Return the data of both belts, and the stations where they part."""
        try:
            yours = pipeline_of(self._model, self._lab)
        except StarvelabError:
            yours = self._lab
        self._pipelines = {YOURS: yours, LAB: self._lab}
        self._compared = [*compare(self._model, self._lab)]
        data = super()._data()
        apart = (_STATIONS.get(comparison.name) for comparison in self._compared if not comparison.agrees)
        data["belts"][0]["parts"] = [station for station in dict.fromkeys(apart) if station]
        return data

    def _simulate(self, _change: object) -> None:
        setting = self._picture.setting
        self._lab = self._lab.replace(batch_size=setting["batch"], workers=setting["workers"])
        self._picture.data = {**self._picture.data, **self._data()}
        self._say()

    def _say(self) -> None:
        """Say beneath the picture whether both agree, or where they part."""
        busy = percent(float(self._lab.solve().utilization))
        apart = [comparison for comparison in self._compared if not comparison.agrees]
        if apart:
            first, given = apart[0], ", ".join(map(cell, apart[0].given))
            yours, lab = first.yours_in_words, cell(first.lab)
            text = f"They differ at {first.name}. Given {given}, yours returns {yours}, and the lab's {lab}."
        else:
            text = f"Your model and the lab's agree here: the GPU is busy {busy} of the time."
        notice = notices.notice(" ".join([text, *self._model.sentences()]), "Not yet" if apart else "Done")
        rows = notices.widget_table(
            ["function", "yours", "the lab's", "agree"], [comparison.row for comparison in self._compared]
        )
        self.message.value = f"{notice}<details><summary>Each function</summary>{rows}</details>"

    def html(self) -> str:
        """Return both pictures, with the sentence and the table."""
        return super().html() + (self.message.value if self._is_open else "")


class NothingYet(notices.Sentences):
    """Stands where no function of the learner's is kept yet."""

    def sentences(self) -> list[str]:
        """Say how a function gets there."""
        return [
            f"{FILE} holds no function yet. When a check above passes, your function is saved there. Run "
            "this cell again then, and your model moves beside the lab's."
        ]


def beside_lab(
    *, batch_size: int = 256, workers: int = 8, storage: Unchecked = None, after: str | None = None
) -> ModelBesideLab | NothingYet:
    """Show the model that you have built beside the lab's: ResNet-50 on an A100, with round numbers.

    Parameters
    ----------
    batch_size, workers : int
        Where the sliders start.
    storage : catalogue entry or quantity [data/time], optional
        Without it reading is not modeled.
    after : str, optional
        Key of a prediction; the picture is shown when that is locked.

    Returns
    -------
    ModelBesideLab or NothingYet
        Shows itself when it ends a cell.
    """
    model = my_model()
    if not any(map(model.is_own, PARTS)) and not model.replaced:
        return NothingYet()
    lab = Pipeline(
        model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=batch_size, workers=workers,
        storage=storage,
    )  # fmt: skip
    return ModelBesideLab(model, lab, after)
