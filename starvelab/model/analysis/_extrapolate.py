"""A measured rate, extrapolated to another accelerator by its arithmetic and its memory traffic."""

from __future__ import annotations

from ...errors import InputError
from ...units import Q_, Quantity, format_quantity, positive
from ..assumptions import PUBLISHED, Assumptions, check_assumptions
from ..catalogue import Entry, check_entry


def extrapolate_rate(
    rate: Quantity, *, model: Entry, measured_on: Entry, to: Entry, assumptions: Assumptions = PUBLISHED
) -> Quantity:
    """Return what an accelerator would train at, from what another one was measured to.

    Parameters
    ----------
    rate : quantity [sample/time]
        Of training in half precision, with the input at hand.
    model : catalogue entry
    measured_on, to : catalogue entries
        Both with `matmul_bf16_sustained`, what large matrix products were measured to reach.
    assumptions : Assumptions
        What the work of a sample is.

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
    check_assumptions(assumptions)
    for what, entry in (("measured_on", measured_on), ("to", to)):
        check_entry(entry, "Hardware", what)
    factor = positive(assumptions.training_factor * assumptions.flop_per_mac, None, "training_factor")
    work = model.needed("macs_forward") * factor
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
