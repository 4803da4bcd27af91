"""Outputs of cells: what student code put out is checked, and those of a test cell say what it is worth.

nbgrader takes the printed form of the last value for the points, so that False, NaN or a NumPy number count
as full marks, and a warning as none. Here the rule is our own, and is written into the outputs that nbgrader
reads.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import SupportsFloat

import nbformat
import numpy as np
from nbformat import NotebookNode

from ..sandbox.channel import Message
from ..sandbox.codec import Decoder, SerializationError

MAX_OUTPUTS = 1000
VALUE_SIZE = 100  # bytes that a value counts for, beside its text: to check it takes as long
MAX_DEPTH = 100  # of what an output holds; nbconvert copies it with Python's own stack
NOT_SHOWN = "The outputs of this cell cannot be shown."
EMPTY = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell()])
UNKNOWN_ERROR = "The check failed, and its error was lost."


def printed(text: str) -> Message:
    """Return a line of text as the output of a cell."""
    return {"output_type": "stream", "name": "stdout", "text": f"{text}\n"}


def failed(name: str, text: str) -> Message:
    """Return an error as the output of a cell."""
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [text]}


def as_nodes(outputs: Iterable[Message]) -> list[NotebookNode]:
    """Return outputs as a notebook holds them."""
    return [nbformat.from_dict(output) for output in outputs]


def size_of(outputs: object, most: int) -> int:
    """Return what outputs, which may be forged, count for [B]; no more of them is looked at than `most`."""
    size, waiting = 0, [outputs]
    while waiting and size <= most:
        value = waiting.pop()
        size += VALUE_SIZE
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict | list) and VALUE_SIZE * len(value) <= most:
            size += sum(map(len, value)) if isinstance(value, dict) else 0
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, dict | list):
            return most + 1
    return size


def checked(outputs: object) -> list[NotebookNode] | None:
    """Return outputs that a notebook can hold; None where these, which may be forged, are not such.

    How long that takes follows from their size, which `size_of` tells before.
    """
    try:
        if not isinstance(outputs, list) or len(outputs) > MAX_OUTPUTS:
            return None
        nodes = as_nodes(outputs)
        if nodes:
            _require_shallow(outputs)
            nbformat.validate(NotebookNode(EMPTY, cells=[NotebookNode(EMPTY.cells[0], outputs=nodes)]))
            # This fails for text that JSON can hold and a file cannot.
            json.dumps(nodes, ensure_ascii=False).encode()
    # A forged output can fail in any of these steps, in any way.
    except Exception:
        return None
    return nodes


def _require_shallow(value: object, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(depth)
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _require_shallow(each, depth + 1)


def points_for(value: object, max_points: float) -> float | None:
    """Return what the last value of a test cell that did not fail is worth.

    A number is partial credit, from 0 to `max_points`. True is all; False and NaN are nothing. None says that
    the value is no number: then not failing is what counts.

    Examples
    --------
    >>> points_for(2.5, 4), points_for(7, 4), points_for(-1, 4), points_for(float("nan"), 4)
    (2.5, 4.0, 0.0, 0.0)
    >>> points_for(False, 4), points_for(None, 4), points_for("done", 4)
    (0.0, None, None)
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_):
        return float(max_points if value else 0)
    if not isinstance(value, SupportsFloat) or isinstance(value, np.str_):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):  # such as of an array, and of a quantity that has a dimension
        return None
    return 0.0 if math.isnan(number) else float(min(max(number, 0.0), max_points))


def scored(reply: Mapping[str, object], max_points: float) -> list[Message]:
    """Return the outputs of a test cell, from which nbgrader reads its worth, by the reply of the runner."""
    given, outputs = reply["outputs"], list[Message]()
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
            outputs.append(failed("CheckFailed", UNKNOWN_ERROR))
        return outputs
    try:
        points = points_for(Decoder().decode(reply["value"]), max_points)
    except SerializationError:
        points = None
    if points is not None:
        outputs.append(nbformat.v4.new_output("execute_result", {"text/plain": repr(points)}))
    return outputs
