"""Delivery of whatever is ready first, without a storage that workers share, for all replicas at once.

Then a batch's times are known as soon as its index is sent, and every replica sends the same index at a step,
so that rows stay rows; only which worker it goes to differs between replicas.
"""

from __future__ import annotations

from math import inf

import numpy as np

from .loader import Loader
from .timeline import Accelerator, Start, Timeline


def follow_out_of_order(
    loader: Loader, times: np.ndarray, start: Start, reads: np.ndarray | None = None
) -> Timeline:
    """Follow the batches through a loader that delivers them as they get ready.

    Parameters
    ----------
    loader : Loader
        With one worker or more, and no shared read.
    times : array of float, (batches, replicas)
        What a worker takes for each batch of an epoch [ms].
    start : Start
    reads : array of float, (batches, replicas), optional
        What each batch occupies the storage [ms], which reads ahead of the workers.

    Notes
    -----
    The rules are those of `follow_events`: the next index goes to the worker whose batch was received, and
    in a tie the batch that was asked for first comes first.
    """
    batches, replicas = times.shape
    workers, prefetch, depth = loader.workers, loader.prefetch, loader.in_flight
    handover, fetch = loader.ms("handover_time"), loader.ms("fetch_time")
    accelerator = Accelerator(loader)
    columns = np.arange(replicas)
    begins, prepared = np.empty(times.shape), np.empty(times.shape)
    delivered_batch, delivered_by = (np.empty(times.shape, dtype=np.int64) for _ in range(2))
    received, copy_start, copied, step_start, host_free = (np.empty(times.shape) for _ in range(5))
    ends, step_end = start.ends(batches)
    # Each worker's queue is a ring: the batches it was sent and when each is there. Past the last one: never.
    queue = np.full((workers, prefetch, replicas), batches, dtype=np.int64)
    there = np.full((workers, prefetch, replicas), inf)
    oldest = np.zeros((workers, replicas), dtype=np.int64)
    worker_free = np.tile(start.workers, (workers, 1))
    was_read = start.asked
    for index in range(min(workers * prefetch, batches)):
        worker, place = index % workers, index // workers
        begins[index] = worker_free[worker]
        if reads is not None:
            was_read = was_read + reads[index]
            begins[index] = np.maximum(begins[index], was_read)
        prepared[index] = worker_free[worker] = worker_free[worker] + times[index]
        queue[worker, place], there[worker, place] = index, prepared[index] + handover
    first, ready = queue[:, 0].copy(), there[:, 0].copy()
    host, copy_done, done = start.asked, start.copied, start.done
    for j in range(batches):
        earliest = ready.min(axis=0)
        worker = np.where(ready == earliest, first, batches + 1).argmin(axis=0)
        delivered_batch[j], delivered_by[j] = first[worker, columns], worker
        np.maximum(earliest, host, out=received[j])
        received[j] += fetch
        copy_start[j], copied[j], step_start[j], step_end[j] = accelerator.take(received[j], copy_done, done)
        copy_done, done = copied[j], step_end[j]
        waited_for = j + 1 - depth + len(start.steps)
        host_free[j] = received[j] if waited_for < 0 else np.maximum(received[j], ends[int(waited_for)])
        host = host_free[j]
        # The place that came free takes the next index, behind what the worker has already.
        place, sent = oldest[worker, columns], j + workers * prefetch
        if sent < batches:
            begins[sent] = np.maximum(worker_free[worker, columns], received[j])
            if reads is not None:
                was_read = np.maximum(was_read, received[j]) + reads[sent]
                begins[sent] = np.maximum(begins[sent], was_read)
            prepared[sent] = begins[sent] + times[sent]
            worker_free[worker, columns] = prepared[sent]
            queue[worker, place, columns], there[worker, place, columns] = sent, prepared[sent] + handover
        else:
            queue[worker, place, columns], there[worker, place, columns] = batches, inf
        following = (place + 1) % prefetch
        oldest[worker, columns] = following
        first[worker, columns] = queue[worker, following, columns]
        ready[worker, columns] = there[worker, following, columns]
    return Timeline(
        delivered_batch,
        delivered_by,
        np.take_along_axis(begins, delivered_batch, axis=0),
        np.take_along_axis(prepared, delivered_batch, axis=0),
        received,
        copy_start,
        copied,
        step_start,
        step_end,
        host_free,
    )
