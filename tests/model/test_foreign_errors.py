"""A fuzz over names, types and values: only the package's own errors leave a public constructor or method."""

import dataclasses
import inspect
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Accelerator,
    Cache,
    DataModel,
    Datasets,
    Drive,
    Framework,
    Handover,
    Hardware,
    Host,
    Jitter,
    Link,
    Links,
    Models,
    OnDevice,
    Pipeline,
    Ranks,
    Requests,
    Samples,
    SingleNodeModel,
    StarvelabError,
    Storage,
    TransformationModel,
    Workers,
)
from starvelab.model.analysis import extrapolate_rate
from starvelab.model.stages.data import hit_share

PIPELINE = Pipeline(
    model=Models.ResNet50, hardware=Hardware.Cloud.A100, storage=Storage.NVMe_Gen4, workers=8, batch_size=64
)
SWEPT = PIPELINE.replace(workers=[1, 2, 4])
STEP = PIPELINE.solve()
PARTS = (
    Accelerator, Cache, Drive, Framework, Handover, Host, Jitter, Link, OnDevice, Ranks, Requests, Samples,
    Workers,
)  # fmt: skip
MODELS = (DataModel(), SingleNodeModel(), TransformationModel())
# What measures, waits for real time and is no answer of the model.
REAL = {"measure", "diagnose", "calibrated"}


def methods(value):
    """The public methods of a value, bound to it."""
    names = [name for name in dir(value) if not name.startswith("_") and name not in REAL]
    bound = {f"{type(value).__name__}.{name}": getattr(value, name) for name in names}
    return {name: method for name, method in bound.items() if inspect.ismethod(method)}


CALLS = {
    **{part.__name__: part for part in (*PARTS, Pipeline)},
    **{f"{type(model).__name__}": type(model) for model in MODELS},
    **{f"{type(model).__name__}.solve": model.solve for model in MODELS},
    **methods(PIPELINE),
    **{f"swept {name}": call for name, call in methods(SWEPT).items()},
    **{f"{part.__name__}.replace": part().replace for part in (Workers, Samples, Accelerator, Host)},
    "Assumptions.replace": TUTORIAL.replace,
    "Entry.replace": Hardware.Cloud.A100.replace,
    "Step.ranges": lambda *_, **__: STEP.ranges.throughput,
    "extrapolate_rate": extrapolate_rate,
    "hit_share": hit_share,
    "Q_": Q_,
}


def names_of(call):
    """The names of the arguments, and a field of what else a call may change."""
    parameters = inspect.signature(call).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        names += [field.name for field in dataclasses.fields(Workers)] + ["hardware", "workers", "storage"]
        names += [*inspect.signature(Pipeline).parameters]
    return [name for name in dict.fromkeys(names) if name not in ("values", "unknown")]


class Silent:
    """A value of somebody else's class."""


TEXTS = (
    "", " ", "8", "5 MB", "5", "-5 MB", "nan MB", "inf GB/s", "1e400 s", "7 GB/s", "1,5 GB/s", "10 Gbps",
    "100 img/s", "5 ms", "3 TFLOP/s", "12 parsec", "1/0", "2 **** 3 MB", "5 MB; import os", "ms 5",
    "\N{GREEK SMALL LETTER MU}s", "5 \N{MICRO SIGN}s", "x" * 3000, "torch", "fp16", "forward", "training",
    "NaN", "None", "\0", "\ud800", "9" * 400, "1e9**9**9 s", "A100", "[1, 2] GB/s", "()", "{}", "5 degC",
    "dBm", "%", "5 %", "delta_degC", "__import__",
)  # fmt: skip
FIXED = (
    None, True, False, 0, 1, -1, 3, 64, 2**70, -(2**70), 10**400, 0.0, -0.0, 0.5, 1.5, 1e-320, 1e308,
    float("nan"), float("inf"), -float("inf"), 1j, Decimal("1.5"), Decimal("NaN"), Fraction(1, 3), b"5 MB",
    timedelta(seconds=1), Path("x"), range(3), range(0), (), [], {}, set(), {1: 2}, {"workers.cores": 4},
    {"workers.nonsense": 4}, {"": 1}, {"workers": {"count": 8}}, [1, 2, 4], [[1, 2], [3]], [1, "a"], [None],
    ["5 ms"], ["1 GB/s", "2 GB/s"], [True, False], [0.5, float("nan")], {"a"}, (1, 2), [2**70], [[[1]]],
    np.float64(2), np.int64(8), np.bool_(True), np.array(4), np.array([]), np.array([1, 2, 4]),
    np.array([0.5, np.nan]), np.array(["a", "b"]), np.array([1, None]), np.array([1j]),
    np.array([[1, 2], [3, 4]]), np.ma.masked, np.datetime64("2026-01-01"), np.zeros((0, 3)), Q_("5 MB"),
    Q_("7 GB/s"), Q_("5 ms"), Q_("100 img/s"), Q_("3 TFLOP"), Q_("0 s"), Q_(-1, "GB/s"), Q_([1, 2], "GB/s"),
    Q_([1, 2], "ms"), Q_(0.5, ""), Q_("5 W"), pint.UnitRegistry()("5 s"), pint.UnitRegistry()("5 m"),
    Models.ResNet50, Hardware.Cloud.A100, Hardware.Cloud, Hardware, Datasets.ImageNet, Datasets.KiTS19,
    Storage.NVMe_Gen4, Links.PCIe4_x16, [Storage.NVMe_Gen4, Links.PCIe4_x16], [*Hardware.Cloud][:2],
    TUTORIAL, PUBLISHED, Workers(4), Samples(size="5 MB"), Drive(Storage.NVMe_Gen4), Cache(0.5),
    Link("1 GB/s"), Accelerator(rate="5 ms"), Host(), Handover(), Requests(), Jitter(), OnDevice(),
    PIPELINE, SWEPT, STEP, Pipeline, Workers, int, len, lambda: 3, object(), Silent(), Silent, ...,
    NotImplemented, type,
)  # fmt: skip
VALUES = st.sampled_from(FIXED) | st.sampled_from(TEXTS) | st.integers() | st.floats() | st.text(max_size=8)
STRANGE_NAMES = (
    "wrokers", "gpu", "size", "of", "self", "", "a b", "workers.cores", "class", "é", "count", "changes",
)  # fmt: skip


@st.composite
def arguments(draw, call):
    """Arguments of a call: those it has, now and then one that it has not, and one without a name."""
    names = names_of(call)
    known, strange = st.sampled_from(names or STRANGE_NAMES), st.sampled_from(STRANGE_NAMES)
    usual = draw(st.integers(0, 7)) > 0 and names
    chosen = draw(st.lists(known if usual else known | strange, max_size=3 if names else 1))
    positional = draw(st.lists(VALUES, max_size=2)) if draw(st.integers(0, 3)) == 0 else []
    return tuple(positional), {name: draw(VALUES) for name in chosen}


def looked_at(answer):
    """What people do with an answer: print it, show it, compare it."""
    repr(answer)
    str(answer)
    for show in ("_repr_html_", "note"):
        shown = getattr(answer, show, None)
        if callable(shown) and not isinstance(answer, type):
            shown()
    _ = answer == answer


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_no_foreign_error_leaves_a_public_constructor_or_method(name, data):
    call = CALLS[name]
    positional, named = data.draw(arguments(call))
    try:
        looked_at(call(*positional, **named))
    except StarvelabError as error:
        text = str(error)
        assert text.rstrip().endswith((".", "?")), text  # what to do is a sentence
        assert len(text) < 1200, text[:1500]


@pytest.mark.parametrize(
    ("call", "values", "named", "said"),
    [
        (PIPELINE.bill, (), {"prise": "3 USD/h"}, r"bill\(\) has no argument 'prise'. Did you mean price\?"),
        (PIPELINE.explain, (1,), {}, r"explain\(\) takes advice, but too many positional arguments\."),
        (PIPELINE.crossover, (), {"workers": 8}, r"crossover\(\) takes no argument, but got an unexpected"),
        (Link, (), {}, r"Link\(\) takes of, .* but missing a required argument: 'of'"),
        (Workers, (8,), {"count": 8}, r"Workers.* but multiple values for argument 'count'"),
        (DataModel, (), {"wrokers": 8}, r"StageModel\(\) has no argument 'wrokers'"),
        (Pipeline, (), {"self": 8}, "A pipeline has no field 'self'"),
        (Jitter, (), {"spread": [[1, 2], [3]]}, r"spread must be a number, got \[\[1, 2\], \[3\]\]"),
        (PIPELINE.explain, (), {"advice": np.array([])}, "advice must be True or False, got array"),
        (PIPELINE.solve, (np.array([]),), {}, "Changes are values by the paths of fields, got array"),
        (PIPELINE.solve, ({}, {}), {}, r"replace\(\) takes"),
        (PIPELINE.epochs, (), {"samples": [10, 20]}, "samples is one value, got an array. Ask for one value"),
        (PIPELINE.simulate, (), {"batches": 10**12}, r"holds at most 1e\+08 batches .* got 1\.6e\+13\."),
        (PIPELINE.replace, (), {"batch_size": 2**70}, r"batch_size must be at most 2\^53, got 1\.18.*e\+21"),
        (PIPELINE.replace, (), {"workers": 10**400}, "must be finite and positive|at most"),
        (TUTORIAL.replace, (), {"name": True}, "name must be a text, got True. Pass one in quotes"),
        (Q_, ("5 ms", None, 3), {"unti": "s"}, r"Q_ takes a value and a unit, got \[3, 'unti'\] too"),
    ],
)
def test_what_the_fuzz_found_says_the_rule_what_came_and_what_to_do(call, values, named, said):
    with pytest.raises(StarvelabError, match=said):
        call(*values, **named)


@pytest.mark.parametrize(("held", "hits"), [(1e-320, 0), (1e300, 1)])
def test_a_share_beyond_what_a_float_divides_is_nothing_or_everything(held, hits):
    assert hit_share(held) == pytest.approx(hits, abs=1e-9)
