"""How long a worker takes for each batch, drawn at random: jitter, slow samples, and samples in memory."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..units import Unchecked, as_quantity, nonnegative
from .loader import Loader


def draw(loader: Loader, *, batches: int, replicas: int, seed: int) -> np.ndarray:
    """Times of shape (batches, replicas) [ms], without reads.

    Replicas are drawn one after the other: more of them add to those that were there, and loaders that
    differ in workers or prefetch meet the same batches.
    """
    # A stream each, so that jitter is the same with and without stragglers.
    for_jitter, for_stragglers, _ = np.random.default_rng(seed).spawn(3)
    shape = (replicas, batches)
    times = np.full(shape, loader.stretch * loader.ms("prepare_time"))
    if loader.jitter:
        variance = np.log1p(loader.jitter**2)
        times *= for_jitter.lognormal(-variance / 2, np.sqrt(variance), shape)
    times += loader.ms("read_wait") * _missed(loader, batches=batches, replicas=replicas, seed=seed)
    if loader.straggler_share and loader.ms("straggler_time"):
        slow = for_stragglers.binomial(loader.batch_size, loader.straggler_share, shape)
        times += slow * loader.ms("straggler_time")
    return np.ascontiguousarray(times.T)


def draw_reads(loader: Loader, *, batches: int, replicas: int, seed: int) -> np.ndarray:
    """Time of shape (batches, replicas) [ms] that each batch occupies the storage which workers share."""
    times = loader.ms("read_time") * _missed(loader, batches=batches, replicas=replicas, seed=seed)
    return np.ascontiguousarray(times.T)


def _missed(loader: Loader, *, batches: int, replicas: int, seed: int) -> np.ndarray:
    """Share of each batch's samples that are not in memory; the same each time it is asked for."""
    shape = (replicas, batches)
    if not loader.cached_fraction:
        return np.ones(shape)
    *_, for_misses = np.random.default_rng(seed).spawn(3)
    misses = for_misses.binomial(loader.batch_size, 1 - loader.cached_fraction, shape)
    return misses / loader.batch_size


def given(prepare_times: Unchecked) -> np.ndarray:
    """Times of shape (batches, replicas) [ms] from the user's own, which have a row for each replica."""
    quantity = as_quantity(prepare_times, "ms", "prepare_times")
    times = np.asarray(nonnegative(quantity, "ms", "prepare_times"))
    if times.ndim not in (1, 2) or not times.size:
        raise InputError(
            f"prepare_times has a row for each replica and a column for each batch, got shape {times.shape}. "
            'Pass for example Q_([[12, 15, 11]], "ms").'
        )
    return np.ascontiguousarray(np.atleast_2d(times).T)
