"""The page cache of a host: which reads it serves when each epoch reads all samples in a new random order."""

from __future__ import annotations

import numpy as np

from ..units import Number
from .cost import as_float


def hit_share(held: Number) -> Number:
    """Share of the reads that a page cache serves, from the second epoch on.

    Parameters
    ----------
    held : float or array
        The share of the data set that fits into the cache, above 0. From 1 on every read is served.

    Notes
    -----
    The cache fills up, and each read that misses evicts a sample. It evicts at random here. A sample comes at
    a random place of each epoch, so between its reads lie ``d`` epochs, where ``d`` is the sum of two uniform
    numbers. In that time ``(1 - h) d`` of the data set is read anew, where ``h`` is the share of hits, and a
    sample in a cache of the share ``c`` survives with ``exp(-(1 - h) d / c)``. On average over ``d`` that is

        ``h = ((1 - exp(-s)) / s)^2`` with ``s = (1 - h) / c``.

    With 35 % of the data in the cache 13.8 % of the reads are hits, so 86 % are read again. The page cache
    of Linux was measured to read 85 % again. One that evicts exactly what was used least recently would read
    93 % again (``c + (1 - c) ln(1 - c)`` are hits), and one that keeps what it has 65 %.

    References
    ----------
    Mohan et al., PVLDB 14(5), 2021, for the measurement.
    """
    held = np.asarray(held, dtype=float)
    # c = (1 - h(s)) / s falls as s grows, from 1 at s = 0: halving finds the s that belongs to c.
    low, high = np.zeros(held.shape), 1 / held
    for _ in range(64):
        s = (low + high) / 2
        too_small = (1 - _hits(s)) / s > held
        low, high = np.where(too_small, s, low), np.where(too_small, high, s)
    return as_float(np.where(held < 1, _hits((low + high) / 2), 1.0))


def _hits(s: Number) -> Number:
    return (-np.expm1(-s) / s) ** 2
