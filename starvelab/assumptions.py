"""What the model believes where no figure decides: one named, frozen value instead of scattered defaults.

`TUTORIAL` reproduces the walkthrough this lab grew from, `PUBLISHED` what was measured and published;
both are read from ``data/assumptions.toml``, where each line has its origin.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from math import floor, sqrt
from typing import Any

import numpy as np

from .catalogue import Fact
from .errors import InputError, UnknownNameError
from .units import Q_, check_magnitude, positive

PHASES = ("forward", "training")
LINK_FIGURES = ("each_way", "pinned_sustained")

# Assumptions with a unit; a worker's rate may also count samples.
_UNITS = {"overhead_per_layer": "ms", "overhead_per_step": "ms", "sample_size": "KB", "worker_rate": "MB/s"}


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """A named set of assumptions.

    Attributes
    ----------
    name : str
    phase : {"forward", "training"}
        What a step of the accelerator does when the caller does not say.
    macs_figure : str
        Which of a model's figures counts its multiply-accumulates.
    flop_per_mac : int
        Two by definition; one is the widespread mistake.
    training_factor : float
        Work of forward and backward pass over that of the forward pass.
    efficiency : float
        Share of peak arithmetic that is reached, 0 to 1.
    measured_rates : bool
        Whether a measured rate of the catalogue comes before peak times efficiency.
    overhead_per_layer, overhead_per_step : quantity [time]
        Fixed cost of a forward pass; the backward pass multiplies that of the layers.
    activation_traffic : float
        Memory traffic of one sample as a share of the weights' size.
    sample_size : quantity [data]
        Stored bytes of one sample.
    worker_rate : quantity [data/time] or [sample/time]
        What one worker prepares alone.
    contention, coherency : float
        The two parameters of the universal scalability law for workers; zero is linear scaling.
    requests_in_flight : float
        Reads that storage serves at once, which hides its latency.
    link_figure : {"each_way", "pinned_sustained"}
        Which bandwidth of a link is believed.
    state_bytes : int
        Bytes kept for each parameter during training.
    forward_activation : float
        Share of the activations that is held at once without a backward pass.
    facts : mapping of str to Fact
        The origin of each value.

    Notes
    -----
    The scalability law is Gunther's, ``n / (1 + contention (n - 1) + coherency n (n - 1))``. Past its peak
    it falls; `speedup` stays at the peak, since nobody starts workers that slow the others down.
    """

    name: str
    phase: str
    macs_figure: str
    flop_per_mac: int
    training_factor: float
    efficiency: float
    measured_rates: bool
    overhead_per_layer: Any
    overhead_per_step: Any
    activation_traffic: float
    sample_size: Any
    worker_rate: Any
    contention: float
    coherency: float
    requests_in_flight: float
    link_figure: str
    state_bytes: int
    forward_activation: float
    facts: Mapping[str, Fact] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_phase(self.phase)
        if self.link_figure not in LINK_FIGURES:
            raise InputError(f"link_figure must be one of {', '.join(LINK_FIGURES)}, got {self.link_figure!r}.")
        if not 0 < check_magnitude(self.efficiency, "efficiency") <= 1:
            raise InputError(f"efficiency must be a share of peak up to 1, got {self.efficiency}. Write 0.5 for 50 %.")
        for name in ("flop_per_mac", "training_factor", "state_bytes"):
            check_magnitude(getattr(self, name), name)
        for name in ("activation_traffic", "contention", "coherency", "forward_activation"):
            check_magnitude(getattr(self, name), name, zero=True)
        for name in ("overhead_per_layer", "overhead_per_step"):
            positive(getattr(self, name), "ms", name, zero=True)
        positive(self.sample_size, "KB", "sample_size")
        if not self.requests_in_flight >= 1:
            raise InputError(f"requests_in_flight must be at least 1, got {self.requests_in_flight}.")

    def but(self, *, name: str | None = None, **changes: Any) -> Assumptions:
        """A copy in which some assumptions are yours; strings with units are read as quantities.

        Examples
        --------
        >>> TUTORIAL.but(flop_per_mac=2).name
        'TUTORIAL but flop_per_mac=2'
        """
        known = [f.name for f in dataclasses.fields(self) if f.name not in ("name", "facts")]
        for key in changes:
            if key not in known:
                raise UnknownNameError(f"No assumption is called {key!r}. There is: {', '.join(known)}.")
        label = ", ".join(f"{key}={value}" for key, value in changes.items())
        facts = {**self.facts, **{key: Fact(v, "assumption", note="given by the user") for key, v in changes.items()}}
        values = {key: Q_(v) if key in _UNITS and isinstance(v, str) else v for key, v in changes.items()}
        return dataclasses.replace(self, name=name or f"{self.name} but {label}", facts=facts, **values)

    @property
    def peak_workers(self) -> float:
        """The number of workers past which more of them do not help; infinite for linear scaling."""
        if self.coherency == 0:
            return float("inf")
        return max(1, floor(sqrt(max(0.0, 1 - self.contention) / self.coherency)))

    def speedup(self, workers: Any, figure: Any = positive) -> Any:
        """How many times one worker's rate that many workers reach; keeps the shape and the kind of number."""
        n = np.minimum(workers, self.peak_workers) if np.ndim(workers) else min(workers, self.peak_workers)
        n = n.astype(float) if np.ndim(workers) else n
        contention = figure(self.contention, None, "contention", zero=True)
        coherency = figure(self.coherency, None, "coherency", zero=True)
        return n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def check_phase(phase: str) -> str:
    """`phase` itself, if it is one."""
    if phase not in PHASES:
        raise InputError(f"phase must be one of {', '.join(PHASES)}, got {phase!r}. Training is forward and backward.")
    return phase


def _load() -> dict[str, Assumptions]:
    table = tomllib.loads((files(__package__) / "data" / "assumptions.toml").read_text(encoding="utf-8"))
    loaded = {}
    for name, rows in table.items():
        facts = {key: Fact(**{**row, "value": Q_(row["value"]) if key in _UNITS else row["value"]}) for key, row in rows.items()}
        loaded[name] = Assumptions(name=name, facts=facts, **{key: fact.value for key, fact in facts.items()})
    return loaded


_SETS = _load()
TUTORIAL = _SETS["TUTORIAL"]
PUBLISHED = _SETS["PUBLISHED"]
