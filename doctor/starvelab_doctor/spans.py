"""Spans of time, as arrays of two columns: start and end."""

from __future__ import annotations

import numpy as np


def union(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the spans in order, those that overlap or touch as one.

    >>> union(np.array([4.0, 0.0, 1.0]), np.array([5.0, 2.0, 3.0])).tolist()
    [[0.0, 3.0], [4.0, 5.0]]
    """
    if not len(starts):
        return np.empty((0, 2))
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    begins = np.concatenate([[True], starts[1:] > ends[:-1]])
    last = np.concatenate([np.flatnonzero(begins)[1:] - 1, [len(starts) - 1]])
    return np.column_stack([starts[begins], ends[last]])


def covered(spans: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return how much of each stretch from a start to an end the spans of a union cover.

    >>> covered(np.array([[0.0, 3.0], [4.0, 5.0]]), np.array([1.0, 3.0]), np.array([4.5, 4.0])).tolist()
    [2.5, 0.0]
    """
    if not len(spans):
        return np.zeros(len(starts))
    corners = spans.ravel()
    lengths = spans[:, 1] - spans[:, 0]
    so_far = np.repeat(np.concatenate([[0.0], np.cumsum(lengths)]), 2)[1:-1]
    passed: np.ndarray = np.interp(ends, corners, so_far) - np.interp(starts, corners, so_far)
    return passed
