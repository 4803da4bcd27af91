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
from math import ceil, inf, sqrt
from typing import Any

import numpy as np

from ..errors import InputError, UnknownNameError
from ..tables import cell
from ..units import Q_, Quantity, check_magnitude, format_quantity, has_dimension, positive
from .catalogue import Fact, facts_html, facts_text

PHASES = ("forward", "training")
LINK_FIGURES = ("each_way", "pinned_sustained")
MACS_FIGURES = ("macs_forward", "macs_forward_rounded")

_WITH_UNIT = ("overhead_per_layer", "overhead_per_step", "sample_size", "worker_rate")


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
    it falls; `speedup` stays at the peak, since nobody starts workers that slow the others down. The law
    knows no cores: fitted to more workers than cores, as in `PUBLISHED`, it has their limit in it already.
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
        for name, known in (("link_figure", LINK_FIGURES), ("macs_figure", MACS_FIGURES)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}. Pass one of "
                    "these."
                )
        if not isinstance(self.measured_rates, bool):
            raise InputError(
                f"measured_rates must be True or False, got {self.measured_rates!r}. Pass one of these."
            )
        for name in ("flop_per_mac", "training_factor", "state_bytes"):
            check_magnitude(getattr(self, name), name)
        for name in ("activation_traffic", "coherency"):
            check_magnitude(getattr(self, name), name, zero=True)
        for name, zero in (("efficiency", False), ("contention", True), ("forward_activation", True)):
            if check_magnitude(getattr(self, name), name, zero=zero) > 1:
                raise InputError(
                    f"{name} must be a share up to 1, got {getattr(self, name)}. Write 0.5 for 50 %."
                )
        for name in ("overhead_per_layer", "overhead_per_step"):
            positive(getattr(self, name), "ms", name, zero=True)
        positive(self.sample_size, "KB", "sample_size")
        supply_rate(self.worker_rate, "worker_rate")
        if (
            self.requests_in_flight != inf
            and check_magnitude(self.requests_in_flight, "requests_in_flight") < 1
        ):
            raise InputError(
                f"requests_in_flight must be 1 or more, got {self.requests_in_flight}. Pass 1 for one by one."
            )

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
        values = {key: _figure(key, value) for key, value in changes.items()}
        label = ", ".join(f"{key}={cell(value)}" for key, value in values.items())
        facts = {key: Fact(value, "assumption", note="given by the user") for key, value in values.items()}
        name = name or f"{self.name} but {label}"
        return dataclasses.replace(self, name=name, facts={**self.facts, **facts}, **values)

    @property
    def peak_workers(self) -> float:
        """The number of workers past which more of them do not help; infinite if there is none."""
        if self.coherency == 0:
            return inf
        # One more worker helps the first n as long as n (n + 1) < (1 - contention) / coherency.
        return max(1, ceil(sqrt((1 - self.contention) / self.coherency + 0.25) - 0.5))

    def speedup(self, workers: Any, figure: Any = positive) -> Any:
        """How many times one worker's rate that many reach; keeps the shape and the kind of number."""
        n = fewer(workers, self.peak_workers)
        contention = figure(self.contention, None, "contention", zero=True)
        coherency = figure(self.coherency, None, "coherency", zero=True)
        return n / (1 + contention * (n - 1) + coherency * n * (n - 1))

    def __repr__(self) -> str:
        return facts_text(f"{self.name}  (assumptions)", self.facts)

    def _repr_html_(self) -> str:
        return facts_html(f"{self.name} (assumptions)", self.facts)


def fewer(workers: Any, limit: Any) -> Any:
    """The smaller of two counts, either of which may be an array."""
    return np.minimum(workers, limit) if np.ndim(workers) or np.ndim(limit) else min(workers, limit)


def supply_rate(value: Any, what: str) -> Any:
    """`value` as a rate of preparing: in samples [sample/time] or in their bytes [data/time]."""
    rate = Q_(value) if isinstance(value, str) else value
    unit = next((unit for unit in ("img/s", "MB/s") if has_dimension(rate, unit)), None)
    if unit is None:
        came = format_quantity(rate) if isinstance(rate, Quantity) else f"{rate!r:.80}"
        raise InputError(
            f"{what} must be a rate in samples or in bytes, got {came}. "
            'Write for example Q_("100 img/s") or Q_("250 MB/s").'
        )
    positive(rate, unit, what)
    return rate


def check_assumptions(value: Any) -> Assumptions:
    """`value` itself, if it is a set of assumptions."""
    if not isinstance(value, Assumptions):
        raise InputError(
            f"assumptions must be TUTORIAL, PUBLISHED or your own, got {value!r:.80}. "
            "Pass for example assumptions=PUBLISHED, without quotes."
        )
    return value


def check_phase(phase: str) -> str:
    """`phase` itself, if it is one."""
    if phase not in PHASES:
        raise InputError(
            f"phase must be one of {', '.join(PHASES)}, got {phase!r}. Training is forward and backward."
        )
    return phase


def _figure(name: str, value: Any) -> Any:
    return Q_(value) if name in _WITH_UNIT and isinstance(value, str) else value


def _load() -> dict[str, Assumptions]:
    table = tomllib.loads((files(__package__) / "data" / "assumptions.toml").read_text(encoding="utf-8"))
    loaded = {}
    for name, rows in table.items():
        facts = {key: Fact(**{**row, "value": _figure(key, row["value"])}) for key, row in rows.items()}
        loaded[name] = Assumptions(name=name, facts=facts, **{key: fact.value for key, fact in facts.items()})
    return loaded


_SETS = _load()
TUTORIAL = _SETS["TUTORIAL"]
PUBLISHED = _SETS["PUBLISHED"]
