"""What the models say about a pipeline on this machine, alone and beside a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model.resources import LABELS
from ..model.step import Step
from ..pipeline import Pipeline
from ..simulate import Simulation, simulate
from ..tables import TableRepr, percent
from ..units import Quantity, Unchecked, format_quantity
from .calibration import Calibration
from .input_pipeline import Given, to_pipeline
from .measurement import Measurement
from .translation import to_loader_model, to_rate_model

# Of the simulation: batches that count, batches of its start, and how often chance is tried.
BATCHES, WARM_UP, REPLICAS = 400, 20, 16


@dataclass(frozen=True, repr=False)
class Forecast(TableRepr):
    """The result of `predict`.

    Attributes
    ----------
    pipeline : Pipeline
        The pipeline as the model of mean rates describes it.
    step : Step
        By that model.
    simulated : Simulation
        By the simulation, which follows order and chance as well.
    """

    pipeline: Pipeline
    step: Step
    simulated: Simulation

    @property
    def throughput(self) -> Quantity:
        """By the model of mean rates [sample/time]."""
        throughput: Quantity = self.step.throughput
        return throughput

    @property
    def utilization(self) -> float:
        """Busy share of the accelerator, by the model of mean rates."""
        return float(self.step.utilization)

    @property
    def stall(self) -> float:
        """Share of the time in which the accelerator waits, by the model of mean rates."""
        return float(self.step.stall)

    @property
    def bottleneck(self) -> str:
        """The slowest resource, by the model of mean rates."""
        return str(self.step.bottleneck)

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("quantity", "model", "simulation")

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """Throughput and utilization, by both models."""
        return [
            ["throughput", self.throughput, self.simulated.throughput],
            ["accelerator busy", percent(self.utilization), percent(self.simulated.utilization)],
        ]

    @property
    def summary(self) -> str:
        """The throughput and the bottleneck, in one line."""
        return f"{format_quantity(self.throughput)} predicted: {LABELS[self.bottleneck]} binds."


def predict(calibration: Calibration, pipe: Given, **dataset: Unchecked) -> Forecast:
    """What a pipeline will do here, by the model of mean rates and by the simulation.

    Parameters
    ----------
    calibration : Calibration
        Of the same images, transforms and loader; workers, prefetch, batch size and devices may differ.
    pipe : InputPipeline, torch DataLoader or Dataset
    **dataset
        For a loader or a dataset: its workers, batch_size, and so on, and `step_time`. What
        `run(loader, step=train_step)` measured as its `step_time` may be passed.

    Raises
    ------
    InputError, UnknownNameError
        If the time of a step is not known.
    """
    pipe = to_pipeline(pipe, dataset, function="predict")
    costs = calibration.costs(pipe)
    model = to_rate_model(pipe, costs)
    return Forecast(
        pipeline=model,
        step=model.solve(),
        simulated=simulate(
            to_loader_model(pipe, costs), batches=BATCHES + WARM_UP, replicas=REPLICAS, warm_up=WARM_UP
        ),
    )


@dataclass(frozen=True, repr=False)
class Comparison(TableRepr):
    """A measurement beside the forecast for the same pipeline.

    Attributes
    ----------
    measurement : Measurement
    forecast : Forecast
    """

    measurement: Measurement
    forecast: Forecast

    @property
    def error(self) -> float:
        """Predicted over measured throughput, less one, by the model of mean rates."""
        return float((self.forecast.throughput / self.measurement.throughput).m_as("")) - 1

    @property
    def simulated_error(self) -> float:
        """Predicted over measured throughput, less one, by the simulation."""
        return float((self.forecast.simulated.throughput / self.measurement.throughput).m_as("")) - 1

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("quantity", "measured", "model", "simulation")

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """Throughput, the errors, utilization and stall."""
        columns = (self.measurement, self.forecast, self.forecast.simulated)
        return [
            ["throughput", *(each.throughput for each in columns)],
            ["off by", "", f"{self.error:+.1%}", f"{self.simulated_error:+.1%}"],
            ["accelerator busy", *(percent(each.utilization) for each in columns)],
            ["accelerator waits", *(percent(each.stall) for each in columns)],
        ]

    @property
    def summary(self) -> str:
        """Both throughputs and the error, in one line."""
        return (
            f"{format_quantity(self.measurement.throughput)} measured, "
            f"{format_quantity(self.forecast.throughput)} predicted ({self.error:+.1%})."
        )


def compare(measurement: Measurement, forecast: Forecast) -> Comparison:
    """Put a measurement and a forecast side by side.

    Parameters
    ----------
    measurement : Measurement
        From `run`.
    forecast : Forecast
        From `predict`, of the same pipeline.
    """
    return Comparison(measurement, forecast)
