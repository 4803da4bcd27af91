"""Delivery in order as a recurrence: each batch follows from the ones before it, for all replicas at once.

Workers share no storage here, and batches keep their order. `discrete_event` and `out_of_order` follow the
other runs.
"""

from __future__ import annotations

import numpy as np

from .loader import Loader
from .timeline import Accelerator, Start, Timeline


def follow_in_order(
    loader: Loader, times: np.ndarray, start: Start, reads: np.ndarray | None = None
) -> Timeline:
    """Follow the batches through a loader that delivers in order.

    Parameters
    ----------
    loader : Loader
    times : array of float, (batches, replicas)
        What a worker takes for each batch of an epoch [ms].
    start : Start
    reads : array of float, (batches, replicas), optional
        What each batch occupies the storage [ms], which reads ahead of the workers.

    Notes
    -----
    With W workers, prefetch P and depth d, in which batch j is prepared by worker j mod W::

        S[j] = max(S[j-1], R[j-W*P]) + read           read, where that is done ahead of the workers
        F[j] = max(F[j-W], R[j-W*P], S[j]) + T[j]     prepared; its index was sent when batch j-W*P came back
        R[j] = max(F[j] + handover, H[j-1]) + fetch   received
        C[j] = max(R[j], C[j-1]) + copy               copied; max(R[j], D[j-1]) + copy without overlap
        D[j] = max(C[j], D[j-1]) + step               the step is done
        H[j] = max(R[j], D[j+1-d])                    the loop is free again

    Without workers F[j] = H[j-1] + T[j]. This is the rule of PyTorch's DataLoader.
    """
    workers, depth = loader.workers, loader.in_flight
    sent_ahead = workers * loader.prefetch
    handover, fetch = loader.ms("handover_time"), loader.ms("fetch_time")
    begins, prepared, received, copy_start, copied, step_start, host_free = (
        np.empty(times.shape) for _ in range(7)
    )
    ends, step_end = start.ends(len(times))
    accelerator = Accelerator(loader)
    host, copy_done, done = start.asked, start.copied, start.done
    was_read = start.asked
    for j in range(len(times)):
        if workers == 0:
            begins[j] = host
        else:
            free = prepared[j - workers] if j >= workers else start.workers
            asked = received[j - sent_ahead] if j >= sent_ahead else start.asked
            np.maximum(free, asked, out=begins[j])
            if reads is not None:
                was_read = np.maximum(was_read, asked) + reads[j]
                np.maximum(begins[j], was_read, out=begins[j])
        np.add(begins[j], times[j], out=prepared[j])
        np.maximum(prepared[j] + handover, host, out=received[j])
        received[j] += fetch
        copy_start[j], copied[j], step_start[j], step_end[j] = accelerator.take(received[j], copy_done, done)
        copy_done, done = copied[j], step_end[j]
        waited_for = j + 1 - depth + len(start.steps)
        if waited_for < 0:
            host_free[j] = received[j]
        else:
            np.maximum(received[j], ends[int(waited_for)], out=host_free[j])
        host = host_free[j]
    batch = np.broadcast_to(np.arange(len(times))[:, None], times.shape)
    worker = batch % workers if workers else np.full(times.shape, -1)
    return Timeline(
        batch, worker, begins, prepared, received, copy_start, copied, step_start, step_end, host_free
    )
