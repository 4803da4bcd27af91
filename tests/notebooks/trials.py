"""What the experiments on causes share."""

import json
from pathlib import Path

from starvelab import Pipeline
from starvelab.units import Unchecked

__all__ = ["SEEDS", "busy", "changed", "gap", "measured", "rate", "same"]

# What `python -m benchmarks.causes` measured.
measured = json.loads(Path(__file__).with_name("measured.json").read_text(encoding="utf-8"))

# Chance is tried as often: what holds in one run may be luck.
SEEDS = range(8)
# What an experiment changes, in short.
PATHS = {
    "step": "hardware",
    "in_flight": "hardware.in_flight",
    "work": "dataset.cpu_time",
    **{name: f"dataset.jitter.{name}" for name in ("spread", "slow_share", "slow_time")},
    **{name: f"workers.{name}" for name in ("prefetch", "in_order", "cores")},
    "receive": "workers.handover.loop",
}


def changed(pipeline: Pipeline, **changes: Unchecked) -> Pipeline:
    """Return a pipeline with some changes, by their short names."""
    return pipeline.replace({PATHS.get(name, name): value for name, value in changes.items()})


def busy(pipeline: Pipeline, seed: int = 0, **changes: Unchecked) -> float:
    """Return the accelerator's busy share of a pipeline with some changes, over 400 batches."""
    return changed(pipeline, **changes).simulate(seed=seed, replicas=1).utilization


def rate(pipeline: Pipeline, seed: int = 0, **changes: Unchecked) -> float:
    """Return the samples that it trains on in a second."""
    return float(changed(pipeline, **changes).simulate(seed=seed, replicas=1).throughput.m_as("img/s"))


def gap(pipeline: Pipeline, **changes: Unchecked) -> float:
    """Return the longest wait of the accelerator between two steps [ms], after the warm-up."""
    trace = changed(pipeline, **changes).simulate(replicas=1).trace().after(20)
    return float((trace.step_start[1:] - trace.step_end[:-1]).max())


def same(one: float, other: float, within: float = 0.01) -> bool:
    """Return True where two numbers differ by a hundredth at most."""
    return abs(one - other) <= within * max(abs(one), abs(other))
