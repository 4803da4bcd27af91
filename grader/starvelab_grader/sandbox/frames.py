"""Data frames, series and indexes of pandas, as the codec sends them: a column is an array or plain values.

What arrives may be forged, so a column is made of nothing that pandas would ask for more than its value.
An index arrives without its frequency.
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from importlib import import_module
from typing import Any

import numpy as np

DTYPES = ("object", "str", "string")  # of a column that is no array of NumPy; of categories are not sent
MAX_COLUMNS = 10_000  # 200,000 levels of an index would take a minute
CELLS = (type(None), bool, float, str, date, timedelta, np.generic)


def parts_of(value: Any) -> list[object] | None:
    """Return what is sent: the kind, the names, the index and the columns; None of what is not of pandas."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None:
        return None
    if value is pandas.NaT or value is pandas.NA:
        return ["NaT" if value is pandas.NaT else "NA"]  # one is a date, too, and that of another day
    if isinstance(value, pandas.Index):
        levels = [value.get_level_values(number) for number in range(value.nlevels)]
        return ["index", list(value.names), None, *(_sent(level) for level in levels)]
    if isinstance(value, pandas.Series):
        return ["series", value.name, value.index, _sent(value)]
    if not isinstance(value, pandas.DataFrame):
        return None
    columns = [value.iloc[:, number] for number in range(value.shape[1])]
    return ["frame", value.columns, value.index, *(_sent(column) for column in columns)]


def _sent(column: Any) -> object:
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return column.to_numpy()
    if str(column.dtype) not in DTYPES:
        return column.array  # the codec says of which type it is
    return [str(column.dtype), *column]


def made_of(kind: object, names: Any = None, index: Any = None, *columns: Any) -> object:
    """Return what was sent; it fails if that is no index, no series and no frame."""
    pandas: Any = import_module("pandas")
    if kind in ("NA", "NaT"):
        return getattr(pandas, kind)
    if len(columns) > MAX_COLUMNS:
        raise ValueError(kind)
    arrays = [_array(pandas, column) for column in columns]
    if kind == "index":
        named = zip(arrays, names, strict=True)
        levels = [pandas.Index(array, dtype=array.dtype, name=name) for array, name in named]
        return levels[0] if len(levels) == 1 else pandas.MultiIndex.from_arrays(levels)
    if not isinstance(index, pandas.Index):
        raise TypeError(kind)
    made = [pandas.Series(array, index, array.dtype) for array in arrays]
    if kind == "series":
        (only,) = made
        only.name = names
        return only
    if kind != "frame" or not isinstance(names, pandas.Index):
        raise TypeError(kind)
    frame = pandas.DataFrame(dict(enumerate(made)), index)
    frame.columns = names
    return frame


def _array(pandas: Any, column: Any) -> Any:
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return column
    dtype, *cells = column
    # Any text has a hash of its own, and so have these numbers; of larger ones many share one.
    plain = (*CELLS, type(pandas.NA))
    known = (isinstance(one, plain) or (isinstance(one, int) and -(2**63) <= one < 2**64) for one in cells)
    if dtype not in DTYPES or not all(known):
        raise TypeError(dtype)
    return np.fromiter(cells, object, len(cells)) if dtype == "object" else pandas.array(cells, dtype)
