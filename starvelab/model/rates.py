"""How long one sample takes on an accelerator, by measured rates, and how long a host launches a step.

Where nobody measured it, the nearest rate is extrapolated. A measured time is arithmetic and memory traffic,
one after the other. The traffic is counted in activations: how often a pass moves them. Arithmetic and
traffic then follow the values of another accelerator, model, precision or phase.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from statistics import median

from ..errors import InputError, own_errors
from ..units import Q_, Number, Quantity, Unchecked, checked_quantity, format_quantity, positive
from . import fields
from .assumptions import PUBLISHED
from .catalogue import Entry, check_entry, entry_at
from .facts import FIELDS, Fact, read_data
from .fields import Part

# Where a model or an accelerator has no measured rate of its own, these stand in: of each family of models,
# and of accelerators, the one that was measured most often.
REFERENCE_MODELS: dict[str | None, str] = {"convolutional": "ResNet50", "transformer": "GPT2_small"}
REFERENCE_HARDWARE = "Cloud.A100"
_BATCH_SIZE = 256  # of a rate whose source names none
# From the highest precision to the lowest; bf16 and fp16 run at one rate.
PRECISIONS = ("fp32", "tf32", "fp16")
ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class Rate:
    """A measured training rate [sample/time] of one model on one accelerator."""

    hardware: str
    model: str
    framework: str
    precision: str
    phase: str
    fact: Fact
    batch_size: int | None = None
    default: bool = False
    needs: str = ""  # what others' scripts may not have, and nobody measured it without

    @property
    def conditions(self) -> str:
        """What it was measured with, where that is not a matter of course."""
        return f" with {self.needs}, by nobody without" if self.needs else ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What was measured: the paths of the accelerator and the model, precision and phase."""
        return self.hardware, self.model, self.precision, self.phase

    def is_of(self, framework: str | None) -> bool:
        """True if it was measured in that framework; without one, if it is the default."""
        return self.default if framework is None else self.framework == framework


@cache
def _read(table: str, unit: str) -> tuple[dict[str, Unchecked], ...]:
    """The rows of a table of ``data/rates.toml``, with a fact in place of its parts."""
    rows = read_data("rates")[table]
    facts = ({key: row.pop(key) for key in FIELDS & row.keys()} for row in rows)
    read = partial(checked_quantity, unit=unit, what=f"a {table}")
    return tuple({**row, "fact": Fact.read(fact, read)} for row, fact in zip(rows, facts, strict=True))


@cache
def measured_rates() -> tuple[Rate, ...]:
    """Every measured rate of ``data/rates.toml``."""
    return tuple(Rate(**row) for row in _read("rate", "img/s"))


def measured_rate(
    *, hardware: Entry, model: Entry, precision: str, phase: str, framework: str | None = None
) -> Rate | None:
    """The measured rate of a model on an accelerator, of a framework or the default; None without one."""
    key = (hardware.path, model.path, precision, phase)
    return next((rate for rate in measured_rates() if rate.is_of(framework) and rate.key == key), None)


def _launches(framework: str) -> list[dict[str, Unchecked]]:
    """Return what was measured of this version of a framework, else of any, else of PyTorch."""
    table = [*_read("launch", "ms")]
    names = (framework, framework.partition(" (")[0], "PyTorch")
    return next(rows for name in names if (rows := [row for row in table if row["framework"] == name]))


def launches_in_turn(framework: str) -> bool:
    """True if the work of a step follows its launches in a framework, and does not overlap them."""
    return any(row.get("in_turn") for row in _launches(framework))


@cache
def launch_time(framework: str, hardware: str, precision: str) -> Fact:
    """How long a forward pass of ResNet-50 takes to launch at a precision, on the host of an accelerator.

    Where nobody measured the precision, another one of the same host counts. A host on which nobody measured
    the framework takes what its default row says, and lies between the lowest and the highest of all its
    rows; so does a framework that nobody measured, with those of PyTorch.
    """
    rows, precision = _launches(framework), "fp16" if precision == "bf16" else precision
    default = next(row["hardware"] for row in rows if row.get("default"))
    here = [row for row in rows if row["hardware"] == hardware]
    there = here or [row for row in rows if row["hardware"] == default]
    fact: Fact = next((row for row in there if row["precision"] == precision), there[0])["fact"]
    if here:
        return fact
    facts: list[Fact] = [row["fact"] for row in rows]
    return replace(fact, low=min(each.low for each in facts), high=max(each.high for each in facts))


@dataclass(frozen=True, repr=False)
class Framework(Part):
    """The software whose published rate an accelerator is taken to reach.

    Parameters
    ----------
    name : str, optional
        Whose measured rate to take or to extrapolate from, for example "MXNet"; by default that of the
        catalogue, if the assumptions use measured rates.
    compiled : bool
        Whether the host launches a step as a whole, as CUDA graphs and ``torch.compile(mode=
        "reduce-overhead")`` do, and not one kernel after the other. A TPU's step always is.
    """

    name: str | None = fields.text(None, stage="framework")
    compiled: bool = fields.switch(False, shown="compiled step")


@dataclass(frozen=True)
class SampleTime:
    """What a sample takes of the accelerator: seconds of arithmetic, and of memory traffic after it."""

    arithmetic: Number
    traffic: Number
    basis: str  # "measured: ..." or "extrapolated from ..."
    framework: str  # in which it, or what it is extrapolated from, was measured
    rate: Number | None = None  # the measured one [sample/s]; None where the time is extrapolated
    batch_size: int = _BATCH_SIZE  # of that rate

    @property
    def seconds(self) -> Number:
        """Both together."""
        return self.arithmetic + self.traffic


@dataclass(frozen=True)
class Work:
    """What the assumptions say about work: FLOP of a multiply-accumulate, and passes of a training step."""

    flop_per_mac: Number
    training_passes: Number

    def passes(self, phase: str) -> Number:
        """How many forward passes a phase costs."""
        return self.training_passes if phase == "training" else 1.0


@lru_cache(maxsize=1024)
def sample_time(
    model: Entry, hardware: Entry, precision: str, phase: str, work: Work, framework: str | None = None
) -> SampleTime | None:
    """The time of a sample by the nearest rate of a framework, or by the default; None without one.

    Software may compute at a higher precision than it is asked for, so an extrapolated time is at most that
    of a higher precision which the accelerator lists.
    """
    precision = "fp16" if precision == "bf16" else precision  # which share the tensor cores' rate
    times = []
    for listed in PRECISIONS[: PRECISIONS.index(precision) + 1]:
        if _peak(hardware, listed) is None:
            continue
        rate = measured_rate(
            hardware=hardware, model=model, precision=listed, phase=phase, framework=framework
        )
        if rate is not None:
            time = of_rate(rate, model, hardware, work)
            if listed == precision:
                return time
            times.append(replace(time, rate=None, basis=f"extrapolated from {listed}, {time.basis}"))
        elif (extrapolated := _extrapolated(model, hardware, listed, phase, work, framework)) is not None:
            times.append(extrapolated)
    return min(times, key=lambda time: time.seconds, default=None)


def of_rate(rate: Rate, model: Entry, hardware: Entry, work: Work) -> SampleTime:
    """A measured rate as arithmetic and what is left for memory traffic."""
    seconds = 1 / rate.fact.number
    arithmetic = _arithmetic(model, hardware, rate.precision, rate.phase, work)
    arithmetic = seconds if arithmetic is None else min(arithmetic, seconds)
    basis = f"measured{rate.conditions}: {rate.framework}, {rate.fact.source}"
    of = rate.framework, rate.fact.number, rate.batch_size or _BATCH_SIZE
    return SampleTime(arithmetic, seconds - arithmetic, basis, *of)


def frameworks_of(model: Entry) -> list[str]:
    """The frameworks in which it was measured, or that of its family where it never was, sorted."""
    return sorted({rate.framework for rate in _neighbors(model, measured_rates())})


def _neighbors(model: Entry, rates: Iterable[Rate]) -> list[Rate]:
    """Those of the model itself, or else of the one that stands for its family."""
    listed = list(rates)
    of_model = [rate for rate in listed if rate.model == model.path]
    return of_model or [rate for rate in listed if rate.model == REFERENCE_MODELS.get(model.get("family"))]


def _extrapolated(
    model: Entry, hardware: Entry, precision: str, phase: str, work: Work, framework: str | None
) -> SampleTime | None:
    arithmetic = _arithmetic(model, hardware, precision, phase, work)
    activation, bandwidth = model.number("activation_size"), hardware.number("memory_bandwidth")
    if arithmetic is None or activation is None or bandwidth is None:
        return None
    anchor = _nearest_rate(model, hardware, precision, phase, framework)
    if anchor is None:
        return None
    to, of = (_precision_ratio(wanted, model.get("family"), work) for wanted in (precision, anchor.precision))
    moves = _moves(anchor, work) * to / of
    source = entry_at("Models", anchor.model).name, entry_at("Hardware", anchor.hardware).name
    return SampleTime(
        arithmetic=arithmetic,
        traffic=moves * activation * work.passes(phase) / bandwidth,
        basis=f"extrapolated from the measured {anchor.phase} of {source[0]} on {source[1]} at "
        f"{anchor.precision}{anchor.conditions}: {anchor.framework}, {anchor.fact.source}",
        framework=anchor.framework,
    )


def _nearest_rate(
    model: Entry, hardware: Entry, precision: str, phase: str, framework: str | None
) -> Rate | None:
    """The measured rate to start from: of the same model and accelerator, or else of the reference."""
    rates = _neighbors(model, (rate for rate in measured_rates() if rate.is_of(framework)))
    if not rates:
        return None
    # Whatever was not measured itself starts from the same accelerator: then two of these compare as the law
    # says, and not as what they start from happened to be measured.
    on_hardware = [rate for rate in rates if rate.hardware == hardware.path]
    start = on_hardware or [rate for rate in rates if rate.hardware == REFERENCE_HARDWARE] or rates
    return min(start, key=lambda rate: (rate.phase != phase, rate.precision != precision))


def _moves(rate: Rate, work: Work) -> Number:
    """How often a pass moves the activations of a sample, at two bytes a number, through the memory."""
    model, hardware = entry_at("Models", rate.model), entry_at("Hardware", rate.hardware)
    traffic = of_rate(rate, model, hardware, work).traffic * hardware.number("memory_bandwidth")
    return traffic / (model.number("activation_size") * work.passes(rate.phase))


def _precision_ratio(precision: str, family: str | None, work: Work) -> Number:
    """Return memory traffic at a precision over that in half precision: measured, or by its bytes.

    The median of what was measured of the family in numbers of that many bytes. Software may move fewer bytes
    in full precision than twice as many, since in half precision it also converts; it cannot move more of
    them, nor fewer than in half precision. A ratio beyond is that of other kernels, and is left out.
    """
    size, half_size = ELEMENT_BYTES[precision], ELEMENT_BYTES["fp16"]
    model = REFERENCE_MODELS.get(family)
    rates = {(rate.framework, *rate.key): rate for rate in measured_rates() if rate.model == model}
    ratios = []
    for (framework, hardware, _, at, phase), rate in rates.items():
        half = rates.get((framework, hardware, rate.model, "fp16", phase))
        if half is not None and ELEMENT_BYTES[at] == size > half_size:
            ratio = _moves(rate, work) / _moves(half, work)
            ratios += [ratio] * (1 <= ratio <= size / half_size)
    return median(ratios) if len(ratios) > 1 else size / half_size


def _arithmetic(model: Entry, hardware: Entry, precision: str, phase: str, work: Work) -> Number | None:
    """Seconds of arithmetic for a sample at the rate of large matrix products; None without a peak."""
    peak, macs = _peak(hardware, precision), model.number("macs_forward")
    if peak is None or macs is None:
        return None
    reached = _matmul_share(hardware)
    share = _matmul_share(entry_at("Hardware", REFERENCE_HARDWARE)) if reached is None else reached
    return macs * work.flop_per_mac * work.passes(phase) / (peak * share)


def _matmul_share(hardware: Entry) -> Number | None:
    """The share of its peak that large matrix products were measured to reach."""
    sustained = hardware.number("matmul_bf16_sustained")
    peak = hardware.number("peak_bf16_dense", hardware.number("peak_fp16_dense"))
    return None if sustained is None or peak is None else sustained / peak


def _peak(hardware: Entry, precision: str) -> Number | None:
    """Peak arithmetic [FLOP/s] at a precision of `PRECISIONS`; a TPU computes in bf16 and has no fp16."""
    peak = hardware.number(f"peak_{precision}_dense")
    return hardware.number("peak_bf16_dense") if peak is None and precision == "fp16" else peak


@own_errors
def extrapolate_rate(rate: Quantity, *, model: Entry, measured_on: Entry, to: Entry) -> Quantity:
    """Return the rate at which an accelerator would train, from the measured rate of another one.

    Parameters
    ----------
    rate : quantity [sample/time]
        Of training in half precision, with the input at hand.
    model : catalogue entry
    measured_on, to : catalogue entries
        Both with `matmul_bf16_sustained`, the measured rate of large matrix products.

    Returns
    -------
    quantity [sample/time]

    Raises
    ------
    InputError
        If the arithmetic alone takes longer than the rate allows: then that is not what was measured.
    MissingValueError

    Notes
    -----
    ``1 / rate = work / matmul + traffic / bandwidth``: convolutions are bound by arithmetic and the layers
    between them by memory, and they run one after the other, so the two add. The traffic of a sample follows
    from the measured rate, and the work from the model. Stops being true where a larger cache keeps traffic
    from the memory, and across versions of a framework.

    Examples
    --------
    >>> from starvelab import Hardware, Models
    >>> cloud = Hardware.Cloud
    >>> found = extrapolate_rate("1582 img/s", model=Models.ResNet50, measured_on=cloud.A100, to=cloud.H100)
    >>> round(found.magnitude)
    2773
    """
    check_entry(model, "Models", "model")
    for what, entry in (("measured_on", measured_on), ("to", to)):
        check_entry(entry, "Hardware", what)
    work = model.needed("macs_forward") * PUBLISHED.training_factor * PUBLISHED.flop_per_mac
    sample = 1 / positive(rate, "sample/s", "rate")
    arithmetic = work / measured_on.needed("matmul_bf16_sustained")
    if sample <= arithmetic:
        raise InputError(
            f"rate must leave time for memory traffic, got {format_quantity(Q_(rate))}: the arithmetic alone "
            f"allows {format_quantity(Q_(1 / arithmetic, 'img/s'))} on {measured_on.name}. Check what it "
            "counts."
        )
    traffic = (sample - arithmetic) * measured_on.needed("memory_bandwidth")
    return Q_(
        1 / (work / to.needed("matmul_bf16_sustained") + traffic / to.needed("memory_bandwidth")), "img/s"
    )
