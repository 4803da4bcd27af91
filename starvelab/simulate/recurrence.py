"""Batches that follow from the ones before them, in all replicas at once.

They arrive in order, or as they get ready. `discrete_event` follows workers that read from one storage.
"""

from __future__ import annotations

from math import inf

import numpy as np

from .inputs import LoaderInputs
from .timeline import Loop, Start, Timeline


def follow_in_order(
    inputs: LoaderInputs, times: np.ndarray, start: Start, reads: np.ndarray | None = None
) -> Timeline:
    """Follow the batches through a loader that delivers in order, as PyTorch's DataLoader does.

    `times` is what a worker takes for each batch of an epoch, `reads` what each occupies the storage, which
    reads ahead of the workers; both of shape (batches, replicas) [ms].

    With W workers, prefetch P and depth d, in which batch j is prepared by worker j mod W::

        S[j] = max(S[j-1], R[j-W*P]) + read           read, where that is done ahead of the workers
        F[j] = max(F[j-W], R[j-W*P], S[j]) + T[j]     prepared; its index was sent when batch j-W*P came back
        R[j] = max(F[j] + way, H[j-1]) + receive      received
        C[j] = max(R[j], C[j-1]) + copy               copied; max(R[j], D[j-1]) + copy without overlap
        D[j] = max(C[j], D[j-1]) + step               the step is done
        H[j] = max(R[j], D[j+1-d])                    the loop is free again

    Without workers F[j] = H[j-1] + T[j].
    """
    workers, sent_ahead = inputs.workers, inputs.workers * inputs.prefetch
    begins, prepared = np.empty(times.shape), np.empty(times.shape)
    loop, was_read = Loop(inputs, start, times.shape), start.asked
    for j in range(len(times)):
        if workers == 0:
            begins[j] = loop.host_before[j]
        else:
            free = prepared[j - workers] if j >= workers else start.workers
            asked = loop.received[j - sent_ahead] if j >= sent_ahead else start.asked
            np.maximum(free, asked, out=begins[j])
            if reads is not None:
                was_read = np.maximum(was_read, asked) + reads[j]
                np.maximum(begins[j], was_read, out=begins[j])
        np.add(begins[j], times[j], out=prepared[j])
        loop.receive(j, prepared[j] + inputs.handover_way)
    batch = np.broadcast_to(np.arange(len(times))[:, None], times.shape)
    return loop.timeline(batch, batch % workers if workers else np.full(times.shape, -1), begins, prepared)


def follow_out_of_order(
    inputs: LoaderInputs, times: np.ndarray, start: Start, reads: np.ndarray | None = None
) -> Timeline:
    """Follow the batches through a loader with workers that delivers them as they get ready.

    The rules are those of `follow_events`: the next index goes to the worker whose batch was received, and
    in a tie the batch that was asked for first comes first. A batch's times are known as soon as its index is
    sent, and every replica sends the same index at a step, so that rows stay rows; only which worker it goes
    to differs between replicas.
    """
    batches, replicas = times.shape
    workers, prefetch, columns = inputs.workers, inputs.prefetch, np.arange(replicas)
    begins, prepared = np.empty(times.shape), np.empty(times.shape)
    delivered_batch, delivered_by = (np.empty(times.shape, dtype=np.int64) for _ in range(2))
    loop, was_read = Loop(inputs, start, times.shape), start.asked
    # Each worker's queue is a ring: the batches it was sent and when each is there. Past the last one: never.
    queue = np.full((workers, prefetch, replicas), batches, dtype=np.int64)
    there = np.full((workers, prefetch, replicas), inf)
    oldest = np.zeros((workers, replicas), dtype=np.int64)
    worker_free = np.tile(start.workers, (workers, 1))

    def send(index: int, worker: int | np.ndarray, place: int | np.ndarray, asked: np.ndarray) -> None:
        """Order a batch of a worker in each replica, which puts it into that place of its queue."""
        nonlocal was_read
        begins[index] = np.maximum(worker_free[worker, columns], asked)
        if reads is not None:
            was_read = np.maximum(was_read, asked) + reads[index]
            np.maximum(begins[index], was_read, out=begins[index])
        prepared[index] = worker_free[worker, columns] = begins[index] + times[index]
        queue[worker, place, columns] = index
        there[worker, place, columns] = prepared[index] + inputs.handover_way

    for index in range(min(workers * prefetch, batches)):
        send(index, index % workers, index // workers, start.asked)
    first, ready = queue[:, 0].copy(), there[:, 0].copy()
    for j in range(batches):
        earliest = ready.min(axis=0)
        worker = np.where(ready == earliest, first, batches + 1).argmin(axis=0)
        delivered_batch[j], delivered_by[j] = first[worker, columns], worker
        loop.receive(j, earliest)
        # The place that came free takes the next index, behind what the worker has already.
        place, index = oldest[worker, columns], j + workers * prefetch
        if index < batches:
            send(index, worker, place, loop.received[j])
        else:
            queue[worker, place, columns], there[worker, place, columns] = batches, inf
        following = oldest[worker, columns] = (place + 1) % prefetch
        first[worker, columns] = queue[worker, following, columns]
        ready[worker, columns] = there[worker, following, columns]
    ours = (np.take_along_axis(column, delivered_batch, axis=0) for column in (begins, prepared))
    return loop.timeline(delivered_batch, delivered_by, *ours)
