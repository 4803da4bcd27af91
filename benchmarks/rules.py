"""What a published measurement is predicted from, where that is computed from other figures.

A constant of tests/golden/published.csv names one of these rules, and with what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from starvelab import PUBLISHED, Q_, Hardware, Models, Pipeline, Storage, Workers
from starvelab.model.analysis import extrapolate_rate
from starvelab.model.stages.single_node import SingleNodeInputs, SingleNodeModel, StepInputs


def extrapolated(
    *,
    count: int,
    model: str,
    matmul_a100: Any,
    matmul_h100: Any,
    rate: Any = None,
    step: Any = None,
    batch_size: int = 1,
) -> Any:
    """The rate of one H100 from that of one A100."""
    origin = Hardware.Cloud.A100.replace(matmul_bf16_sustained=matmul_a100)
    to = Hardware.Cloud.H100.replace(matmul_bf16_sustained=matmul_h100)
    total = Q_(batch_size, "img") / step if rate is None else rate
    return extrapolate_rate(total / count, model=getattr(Models, model), measured_on=origin, to=to)


def by_pixels(*, rate: Any, count: int, **side: int) -> Any:
    """The rate of one accelerator at another image size: convolutions cost what there are pixels."""
    return rate / count * (side["from"] / side["to"]) ** 2


def of_neighbor(
    *,
    matmul_a100: Any,
    gmacs: list[float],
    tflops: list[float],
    bandwidths: list[float],
    activations: tuple[float, float] = (1, 1),
    passes: int = 3,
    rate: Any = None,
    step: Any = None,
    batch_size: int = 1,
) -> Any:
    """The rate of one accelerator by that of a neighbor in the same software: in pairs, its and their own.

    Arithmetic goes with the work and the peak, of which matrix products reach the A100's share; the rest is
    traffic, and goes with the activations and the memory's bandwidth.
    """
    share = float((matmul_a100 / Hardware.Cloud.A100.peak_fp16_dense).m_as(""))
    there, here = (2e-3 * passes * work / (share * peak) for work, peak in zip(gmacs, tflops, strict=True))
    sample = 1 / rate.m_as("img/s") if step is None else step.m_as("s") / batch_size
    traffic = (sample - there) * activations[1] / activations[0] * bandwidths[0] / bandwidths[1]
    return Q_(1 / (here + traffic), "img/s")


def of_fewer(*, one: Any, some: Any, of: int, count: int) -> Any:
    """What so many workers do by the law of contention, from what one does, and what fewer of them do."""
    contention = (float((of * one / some).m_as("")) - 1) / (of - 1)
    return one * count / (1 + contention * (count - 1))


def received(*, rate: Any, batch_size: int) -> Any:
    """How long the loop's own thread takes for a batch, where so many samples a second are its end."""
    return (Q_(batch_size, "img") / rate).to("ms")


def per_step(*, step: Any, batch_size: int) -> Any:
    """The rate of one accelerator from the time of its step."""
    return Q_(batch_size, "img") / step


def launched(*, batch_size: int, first: Any, rate: Any = None, step: Any = None, of: int = 1) -> Any:
    """The time of a step by the law of launching, from that of a batch of one and from a large batch."""
    sample = 1 / rate.m_as("img/s") if step is None else step.m_as("s") / of
    made_of = StepInputs(sample, 0.0, first.m_as("s"), in_turn=True, hidden=True)
    return Q_(SingleNodeModel.cost(SingleNodeInputs("", None, made_of)).at(batch_size), "s")


def zipf_lengths(*, exponent: float, low: int, high: int) -> list[int]:
    """A thousand lengths of Zipf's law, each as likely; what lies outside of two ends counts as these."""
    lengths = np.arange(1, high)
    below = np.cumsum(lengths**-exponent) / zeta(exponent)
    return np.clip(1 + np.searchsorted(below, (np.arange(1000) + 0.5) / 1000), low, high).tolist()


def even_lengths(*, low: int, high: int, others: int = 0, one: int = 0) -> list[int]:
    """Lengths from one end to the other, equally likely; or so many of them beside one of its own."""
    if not one:
        return [*range(low, high + 1)]
    return [*np.rint(np.linspace(low, high, others)).astype(int).tolist(), one]


def zeta(exponent: float, terms: int = 10_000) -> float:
    """Riemann's function: the sum of ``k^-exponent``, what is left of it by an integral."""
    first = np.arange(1, terms) ** -exponent
    return float(first.sum() + (terms - 0.5) ** (1 - exponent) / (exponent - 1))


def of_one_worker(*, rate: Any, transfer: Any = None, **workers: Any) -> Any:
    """What one worker prepares alone, from what so many of them did together; they pickle what has a size."""
    together = Workers(**workers, rate="1 img/s")
    pipe = Pipeline(workers=together, hardware="1e9 img/s", assumptions=PUBLISHED)
    alone = rate * float((pipe.solve(workers=1).throughput / pipe.solve().throughput).m_as(""))
    if transfer is None:
        return alone
    return 1 / (1 / alone - Q_(transfer) / PUBLISHED.pickling_bandwidth / Q_("1 img"))


def of_neighbors(*, rate: Any, here: Any, there: Any) -> Any:
    """What a worker prepares on another host, by what another decoder does on both."""
    return rate * float((there / here).m_as(""))


def loaded(*, load: Any, stack: Any, share: float) -> Any:
    """What a worker does that loads a sample and stacks it, in a share of the bytes that were measured."""
    return (Q_("1 img") / (load + share * stack)).to("img/s")


def waiting(*, count: int = 1, ready: Any = None, **known: Any) -> Any:
    """How long a worker waits for a sample: what each of so many took, less what one takes when ready."""
    rate = known["rate"] if "rate" in known else Q_("1 img") * known["delivered"] / Q_(known["size"])
    took = count * Q_("1 img") / rate - (0 if ready is None else Q_("1 img") / ready)
    return took.to("s")


def store(*, host: Any, connection: Any, latency: Any) -> Any:
    """An object store, by what a request waits and brings, and what the host takes."""
    return Storage.S3_connection.replace(
        bandwidth_sustained=host, request_bandwidth=connection, request_latency=latency
    )


RULES: dict[str, Callable[..., Any]] = {
    rule.__name__: rule
    for rule in (
        extrapolated,
        by_pixels,
        of_neighbor,
        of_fewer,
        received,
        per_step,
        launched,
        zipf_lengths,
        even_lengths,
        of_one_worker,
        of_neighbors,
        loaded,
        waiting,
        store,
    )
}
