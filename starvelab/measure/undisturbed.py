"""Measured runs in a notebook: one that was disturbed is repeated, and what disturbed it is said."""

from __future__ import annotations

from ._run import run
from .measurement import Measurement
from .protocols import Pipeline


def disturbance(*measurements: Measurement) -> str:
    """What disturbed these runs, in words; empty if nothing did.

    Parameters
    ----------
    *measurements : Measurement

    Returns
    -------
    str
        The reason of the first run that is not trustworthy.
    """
    return next((one.quality.reason for one in measurements if not one.quality.trustworthy), "")


def run_undisturbed(pipe: Pipeline, seconds: str = "1 s") -> Measurement:
    """Measure a run; where something disturbed it, measure one more, and return the calmer of the two.

    Parameters
    ----------
    pipe : InputPipeline
    seconds : quantity [time]
        How long each run takes.
    """
    first = run(pipe, seconds=seconds)
    if first.quality.trustworthy:
        return first
    print("Something disturbed that run, so it runs once more.")
    second = run(pipe, seconds=seconds)
    return min(first, second, key=lambda one: one.quality.background_load + one.quality.variation)


def comparison_row(name: str, measured: Measurement, base: Measurement) -> list[object]:
    """One row of a table: the throughput, its interval, how many times `base` it is, and what disturbed it.

    Parameters
    ----------
    name : str
        What ran.
    measured, base : Measurement
    """
    low, high = (f"{end.m_as('img/s'):.4g}" for end in measured.interval)
    times = f"{(measured.throughput / base.throughput).m_as(''):.2f}x"
    return [name, measured.throughput, f"{low} to {high}", times, disturbance(measured) or "no"]
