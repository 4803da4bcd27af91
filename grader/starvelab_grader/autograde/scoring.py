"""What a test cell is worth: our own rule, written into the outputs from which nbgrader reads points.

nbgrader takes the printed form of the last value, so that False, NaN or a NumPy number count as full marks,
and a warning as none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np

from starvelab.units import Quantity

from ..sandbox.channel import Message
from ..sandbox.codec import Decoder, SerializationError

UNKNOWN_ERROR = {
    "output_type": "error",
    "ename": "CheckFailed",
    "evalue": "The check failed, and its error was lost.",
    "traceback": ["The check failed, and its error was lost."],
}


def points_for(value: object, max_points: float) -> float | None:
    """What the last value of a test cell that did not fail is worth.

    Parameters
    ----------
    value : object
        A number is partial credit, from 0 to `max_points`. True is all; False and NaN are nothing.
    max_points : float

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
        return float(max_points if value else 0)
    if not isinstance(value, Real | Decimal | Fraction):
        return None
    number = float(value)
    return 0.0 if math.isnan(number) else float(min(max(number, 0.0), max_points))


def scored(reply: Mapping[str, object], max_points: float) -> list[Message]:
    """The outputs of a test cell, from which nbgrader reads what the cell is worth.

    Parameters
    ----------
    reply : mapping
        What the runner answered: `outputs`, whether the cell `failed`, and its last `value`.
    max_points : float
    """
    outputs: list[Message] = []
    given = reply["outputs"]
    for output in given if isinstance(given, list) else []:
        kind = output["output_type"]
        if kind == "error" and not reply["failed"]:
            continue
        if kind != "execute_result":
            # nbgrader takes what went to stderr for a failure.
            outputs.append({**output, "name": "stdout"} if kind == "stream" else output)
    if reply["failed"]:
        if not any(output["output_type"] == "error" for output in outputs):
            # nbgrader gives all points to a cell without an error, however it failed.
            outputs.append(UNKNOWN_ERROR)
        return outputs
    try:
        points = points_for(Decoder().decode(reply["value"]), max_points)
    except SerializationError:
        points = None
    if points is not None:
        data = {"text/plain": repr(points)}
        outputs.append(
            {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None}
        )
    return outputs
