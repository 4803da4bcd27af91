"""What a test cell is worth: our own rule, written down in the outputs that nbgrader reads.

nbgrader takes the printed form of the last value, so that False, NaN or a NumPy number count as full marks,
and a warning as none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from ...units import Quantity
from ..sandbox.codec import Decoder, NotPlainError

UNKNOWN_ERROR = {
    "output_type": "error",
    "ename": "CheckFailed",
    "evalue": "The check failed, and its error was lost.",
    "traceback": ["The check failed, and its error was lost."],
}


def points_for(value: Any, most: float) -> float | None:
    """What the last value of a test cell that did not fail is worth.

    Parameters
    ----------
    value : object
        A number is partial credit: at least 0, at most `most`. True is all; False and NaN are nothing.
    most : float

    Returns
    -------
    float or None
        None where the value is no number: then not failing is what counts.

    Examples
    --------
    >>> points_for(2.5, 4), points_for(7, 4), points_for(-1, 4), points_for(float("nan"), 4)
    (2.5, 4.0, 0.0, 0.0)
    >>> points_for(False, 4), points_for(None, 4), points_for("done", 4)
    (0.0, None, None)
    """
    if isinstance(value, Quantity) and value.dimensionless:
        value = value.m_as("")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_):
        return float(most if value else 0)
    if not isinstance(value, Real | Decimal | Fraction):
        return None
    number = float(value)
    return 0.0 if math.isnan(number) else float(min(max(number, 0.0), most))


def scored(reply: Mapping[str, Any], most: float) -> list[dict[str, Any]]:
    """The outputs of a test cell, such that nbgrader reads off them what the cell is worth."""
    outputs = []
    for one in reply["outputs"]:
        kind = one["output_type"]
        if kind == "error" and not reply["failed"]:
            continue
        if kind != "execute_result":
            # nbgrader takes what went to stderr for a failure.
            outputs.append({**one, "name": "stdout"} if kind == "stream" else one)
    if reply["failed"]:
        if not any(one["output_type"] == "error" for one in outputs):
            # nbgrader gives every point to a cell without an error, however it failed.
            outputs.append(UNKNOWN_ERROR)
        return outputs
    try:
        points = points_for(Decoder().decode(reply["value"]), most)
    except NotPlainError:
        points = None
    if points is not None:
        data = {"text/plain": repr(points)}
        outputs.append(
            {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None}
        )
    return outputs
