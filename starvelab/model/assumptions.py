"""What the model assumes if no measured value decides: one named set instead of scattered defaults.

`TUTORIAL` reproduces the walkthrough this lab grew from, `PUBLISHED` what was measured and published; both
are read from ``data/assumptions.toml``, where each line has its origin. How workers of each kind scale is in
``data/loaders.toml``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from math import inf

from ..errors import InputError, UnknownNameError, check_text, own_errors
from ..tables import cell
from ..units import Q_, Number, Quantity, Unchecked
from .costs import WorkerScaling
from .facts import Fact, Sourced, read_data
from .fields import choice, meanings, number, quantity, supply, switch

PHASES = ("forward", "training")
_SCALING = ("contention", "coherency", "crowding", "second_thread")
_OF_HOST = _SCALING[2:]
# Of how many cases a range claims to hold the truth.
COVERAGE = 0.8


@dataclass(frozen=True)
class LoaderKind:
    """A kind of loader: how its workers scale, what one of them prepares, and where that was measured."""

    name: str
    scaling: WorkerScaling
    worker_rate: Number | None  # samples per second of one, where it differs from that of the assumptions
    object_time: Number  # seconds of the training loop for each object of a batch
    byte_time: Number  # and for each byte
    facts: dict[str, Fact]


# "torch" are the worker processes of PyTorch's DataLoader.
KINDS = ("processes", "threads", "pool", "torch")


@cache
def loader_kinds() -> dict[str, LoaderKind]:
    """Every kind of loader in ``data/loaders.toml``, by name."""
    kinds = {}
    for name, table in read_data("loaders").items():
        facts = {key: Fact(**row) for key, row in table.items()}
        values = {key: fact.value for key, fact in facts.items()}
        of_kind = {key: values.pop(key, None) for key in ("worker_rate", "object_time", "byte_time")}
        kinds[name] = LoaderKind(name, WorkerScaling(**values), **of_kind, facts=facts)
    return {**kinds, "torch": kinds["processes"]}


@dataclass(frozen=True, kw_only=True, repr=False)
class Assumptions(Sourced):
    """A named set of assumptions.

    Attributes
    ----------
    name : str
    phase : {"forward", "training"}
        What a step of the accelerator does by default.
    macs_field : str
        Which fact of a model counts its multiply-accumulates.
    flop_per_mac : int
        Two by definition; one is the widespread mistake.
    training_factor : float
        Work of forward and backward pass over that of the forward pass.
    efficiency : float
        Share of peak arithmetic that is reached, 0 to 1.
    measured_rates : bool
        Whether measured rates of the catalogue, or what is extrapolated from them, come before peak times
        efficiency.
    extrapolated_time : float
        Time of a sample on an accelerator on which nobody measured it, divided by the extrapolated time.
    workers_time, workers_time_without_cores : float
        Time of a sample with several workers, divided by what follows from the time of one worker; the second
        if the cores of the host are not given, and each worker is taken to have one to itself.
    accelerators_time : float
        A training step of several accelerators divided by that of one, if the spread of ranks is not given.
    model_error : float
        Share by which a throughput may be off beyond what its sources allow. The ranges of results are this
        much wider on both sides, and claim to hold the truth in four cases of five (`COVERAGE`).
    overhead_per_layer, overhead_per_step : quantity [time]
        Fixed cost of a forward pass: what the host takes to launch it.
    launch_factor : float
        Launches of a training step over those of a forward pass.
    overhead_overlaps : bool
        Whether the accelerator computes while the host launches, so that a step takes the longer of the two.
    activation_traffic : float
        Memory traffic of one sample as a share of the weights' size.
    sample_size : quantity [data]
        Stored bytes of one sample.
    worker_rate : quantity [data/time] or [sample/time]
        What one worker prepares alone.
    contention, coherency : float
        The two parameters of the universal scalability law for workers; zero is linear scaling.
    crowding, second_thread : float
        How the cores of a host change that (`starvelab.model.assumptions.WorkerScaling`).
    host_cores : bool
        Whether a pipeline that names no cores has those of its accelerators' host, where the catalogue knows
        them; otherwise each worker has a core to itself.
    open_requests : float
        Reads that each worker has open at a time: 1 where it reads one file after the other. Infinitely many
        hide the latency of requests.
    pickling_bandwidth, unpickling_bandwidth : quantity [data/time]
        At which a worker process pickles a batch that is not of tensors, and the training loop reads it.
    link_rate : {"each_way", "pinned_sustained"}
        Which bandwidth of a link is used.
    transfer_dtype : {"uint8", "float16", "float32"}
        Type of the numbers of a decoded sample on the link.
    dataset_of_model : bool
        Whether a model that takes other samples than ImageNet's comes with the data set that fits it.
    state_bytes : int
        Bytes kept for each parameter during training.
    forward_activation : float
        Share of the activations that is held at once without a backward pass.
    facts : mapping of str to Fact
        The origin of each value.
    """

    name: str
    phase: str = choice(*PHASES)
    macs_field: str = choice("macs_forward", "macs_forward_rounded")
    flop_per_mac: int = number()
    training_factor: float = number()
    efficiency: float = number(maximum=1)
    measured_rates: bool = switch()
    extrapolated_time: float = number()
    workers_time: float = number()
    workers_time_without_cores: float = number()
    accelerators_time: float = number(minimum=1)
    model_error: float = number(zero=True)
    overhead_per_layer: Quantity = quantity("s", zero=True)
    overhead_per_step: Quantity = quantity("s", zero=True)
    launch_factor: float = number()
    overhead_overlaps: bool = switch()
    activation_traffic: float = number(zero=True)
    sample_size: Quantity = quantity("B")
    worker_rate: Quantity = supply()
    contention: float = number(zero=True, maximum=1)
    coherency: float = number(zero=True)
    crowding: float = number(zero=True)
    second_thread: float = number(zero=True, maximum=1)
    host_cores: bool = switch()
    open_requests: float = number(minimum=1, maximum=inf)
    pickling_bandwidth: Quantity = quantity("B/s")
    unpickling_bandwidth: Quantity = quantity("B/s")
    link_rate: str = choice("each_way", "pinned_sustained")
    transfer_dtype: str = choice("uint8", "float16", "float32")
    dataset_of_model: bool = switch()
    state_bytes: int = number()
    forward_activation: float = number(zero=True, maximum=1)
    facts: Mapping[str, Fact] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        _ = self.numbers

    @cached_property
    def numbers(self) -> Mapping[str, Number]:
        """Every assumption as a plain number in base units, by name; words stay words."""
        return {
            name: meaning.read(getattr(self, name), name)[1] for name, meaning in meanings(type(self)).items()
        }

    @cached_property
    def given(self) -> frozenset[str]:
        """The names of the assumptions that the user gave."""
        facts = self.facts
        return frozenset(name for name in self.numbers if name not in facts or facts[name].given)

    @property
    def ranged(self) -> bool:
        """True if an assumption has a range: then a result shows its own range."""
        return any(fact.low is not None for fact in self.facts.values())

    @cached_property
    def scaling(self) -> WorkerScaling:
        """How the rate of several workers compares with that of one."""
        return WorkerScaling(*(self.numbers[name] for name in _SCALING))

    def scaling_of(self, kind: LoaderKind) -> WorkerScaling:
        """The same for a kind of loader, whose law goes before what the user has not assumed."""
        assumed = {
            name: self.numbers[name]
            for name in _SCALING
            if name in self.given or (name in _OF_HOST and self.numbers[name])
        }
        return dataclasses.replace(kind.scaling, **assumed)

    def speedup(self, workers: Number, cores: Number | None = None) -> Number:
        """How many times one worker's rate so many workers reach on so many cores [int or array]."""
        return self.scaling.speedup(workers, cores)

    @own_errors
    def replace(self, *, name: str | None = None, **changes: Unchecked) -> Assumptions:
        """A copy in which some assumptions are yours; strings with units are read as quantities.

        Examples
        --------
        >>> TUTORIAL.replace(flop_per_mac=2).name
        'TUTORIAL but flop_per_mac=2'
        """
        fields = meanings(type(self))
        for key in changes:
            if key not in fields:
                raise UnknownNameError(f"No assumption is called {key!r}. There is: {', '.join(fields)}.")
        facts = {key: Fact.of(value, partial(_read, key)) for key, value in changes.items()}
        values = {key: fact.value for key, fact in facts.items()}
        label = ", ".join(f"{key}={cell(value)}" for key, value in values.items())
        if name is not None:
            check_text(name, "name")
        name = name or f"{self.name} but {label}"
        return dataclasses.replace(self, name=name, facts={**self.facts, **facts}, **values)

    def __repr__(self) -> str:
        """Return its name, which stands in signatures; printing it lists where each value comes from."""
        return self.name

    @property
    def place(self) -> str:
        """What it is."""
        return "assumptions"


def not_assumptions(value: Unchecked) -> InputError:
    """The error for a value that is no set of assumptions."""
    return InputError(
        f"assumptions must be TUTORIAL, PUBLISHED or your own, got {value!r:.80}. "
        "Pass for example assumptions=PUBLISHED, without quotes."
    )


def _read(name: str, value: Unchecked) -> Unchecked:
    """A text with a unit as a quantity; everything else as it is."""
    with_unit = meanings(Assumptions)[name].kind in ("quantity", "supply")
    return Q_(value) if with_unit and isinstance(value, str) else value


def _load(name: str) -> Assumptions:
    facts = {key: Fact.read(row, partial(_read, key)) for key, row in read_data("assumptions")[name].items()}
    return Assumptions(name=name, facts=facts, **{key: fact.value for key, fact in facts.items()})


TUTORIAL, PUBLISHED = _load("TUTORIAL"), _load("PUBLISHED")
