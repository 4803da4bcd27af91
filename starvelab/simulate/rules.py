"""The rules of a loader, by which all replicas advance side by side.

Batches follow from the ones before them, in order or as they get ready. Where workers read from one storage
themselves, one event follows the other in each replica. `Lateness` is the rule for times that were measured.
"""

from __future__ import annotations

from math import inf

import numpy as np

from .timeline import EpochTimes, LoaderInputs, Loop, Start


def follow_in_order(
    inputs: LoaderInputs, times: np.ndarray, start: Start, reads: np.ndarray | None = None
) -> EpochTimes:
    """Simulate a loader that delivers batches in order, as PyTorch's DataLoader does.

    `times` are those of a worker for each batch of an epoch, `reads` those of the storage, which reads ahead
    of the workers; both of shape (batches, replicas) [ms].

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
) -> EpochTimes:
    """Simulate a loader with workers that delivers batches as they become ready.

    The rules are those of `follow_events`. A batch's times are known as soon as its index is sent, and every
    replica sends the same index at a step, so that rows stay rows; only its worker differs between replicas.
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


def follow_events(inputs: LoaderInputs, times: np.ndarray, reads: np.ndarray, start: Start) -> EpochTimes:
    """Simulate a loader with workers, in any order of delivery.

    `times` are without the shared read. Two things happen to a batch at a moment that depends on the others:
    its worker asks the storage, which serves in the order of asking; and the loop receives it, without
    `in_order` what was ready first. Either way the next index goes to the worker whose batch was received: in
    order because of the cycle, otherwise because PyTorch's DataLoader passes over workers with a full queue,
    and only this one has room. The batch that was asked for first comes first in a tie.
    """
    return _Replicas(inputs, times, reads, start).follow()


class _Replicas:
    """All replicas, as arrays with one column for each; `at` names the columns that an event is for."""

    def __init__(self, inputs: LoaderInputs, times: np.ndarray, reads: np.ndarray, start: Start) -> None:
        self.inputs, self.times, self.reads, self.start = inputs, times, reads, start
        self.loop = Loop(inputs, start, times.shape)
        self.batches, self.replicas = times.shape
        workers, self.prefetch = inputs.workers, inputs.prefetch
        # Of each batch, by its number, that is in the order of asking.
        # Times of batches that nobody has prepared yet are added to as well, and dropped.
        self.begins, self.prepared = np.zeros(times.shape), np.zeros(times.shape)
        # Of each batch in the order of delivery.
        self.delivered_batch, self.delivered_by = (np.empty(times.shape, dtype=np.int64) for _ in range(2))
        # Each worker's queue is a ring: the batches it was sent, those it has read, those received from it.
        ring = (workers, self.prefetch, self.replicas)
        self.ring_batch, self.ring_sent = np.zeros(ring, dtype=np.int64), np.zeros(ring)
        self.sent, self.served, self.taken = (
            np.zeros((workers, self.replicas), dtype=np.int64) for _ in range(3)
        )
        self.worker_free = np.tile(start.workers, (workers, 1))
        # What comes next from each worker: when it asks the storage, when its oldest batch is there.
        self.asks, self.ready = (np.full((workers, self.replicas), inf) for _ in range(2))
        self.asks_for, self.ready_batch = (
            np.full((workers, self.replicas), self.batches, dtype=np.int64) for _ in range(2)
        )
        self.storage_free = np.zeros(self.replicas)
        self.next_batch, self.deliveries = (np.zeros(self.replicas, dtype=np.int64) for _ in range(2))

    def follow(self) -> EpochTimes:
        everywhere = np.arange(self.replicas)
        for index in range(self.inputs.workers * self.prefetch):
            self.send(everywhere, np.full(self.replicas, index % self.inputs.workers), self.start.asked)
        while (left := self.deliveries < self.batches).any():  # each is served once and received once
            asking, asked = _first(self.asks, self.asks_for)
            handing, there = self.next_delivery()
            receives = there <= asked
            serves = ~receives & left
            # Ranks that end their steps together receive a batch each before one of them goes on.
            receives = receives.reshape(-1, self.inputs.ranks).all(axis=1).repeat(self.inputs.ranks) & left
            self.receive(np.flatnonzero(receives), handing[receives])
            self.serve(np.flatnonzero(serves), asking[serves])
        order = self.delivered_batch
        ours = (np.take_along_axis(column, order, axis=0) for column in (self.begins, self.prepared))
        return self.loop.timeline(order, self.delivered_by, *ours)

    def next_delivery(self) -> tuple[np.ndarray, np.ndarray]:
        """The worker whose batch the loop would receive next, and when that batch is there."""
        if not self.inputs.in_order:
            return _first(self.ready, self.ready_batch)
        worker = self.deliveries % self.inputs.workers
        return worker, self.ready[worker, np.arange(self.replicas)]

    def send(self, at: np.ndarray, worker: np.ndarray, now: np.ndarray) -> None:
        """Ask a worker for the next batch, if there is one left."""
        left = self.next_batch[at] < self.batches
        at, worker, now = at[left], worker[left], now[left]
        place = self.sent[worker, at] % self.prefetch
        self.ring_batch[worker, place, at] = self.next_batch[at]
        self.ring_sent[worker, place, at] = now
        self.sent[worker, at] += 1
        self.next_batch[at] += 1
        self.turn_to_the_next(at, worker)

    def turn_to_the_next(self, at: np.ndarray, worker: np.ndarray) -> None:
        """Note when a worker begins the next batch in its queue."""
        served = self.served[worker, at]
        waiting = served < self.sent[worker, at]
        place = served % self.prefetch
        begins = np.maximum(self.worker_free[worker, at], self.ring_sent[worker, place, at])
        self.asks[worker, at] = np.where(waiting, begins, inf)
        self.asks_for[worker, at] = np.where(waiting, self.ring_batch[worker, place, at], self.batches)

    def serve(self, at: np.ndarray, worker: np.ndarray) -> None:
        """Let a worker read and prepare the batch that it asks for."""
        begins, batch = self.asks[worker, at], self.asks_for[worker, at]
        was_read = np.maximum(begins, self.storage_free[at]) + self.reads[batch, at]
        self.storage_free[at] = was_read
        self.begins[batch, at] = begins
        self.prepared[batch, at] = self.worker_free[worker, at] = was_read + self.times[batch, at]
        self.served[worker, at] += 1
        self.offer(at, worker)
        self.turn_to_the_next(at, worker)

    def offer(self, at: np.ndarray, worker: np.ndarray) -> None:
        """Note when the oldest batch of a worker is there for the loop."""
        taken = self.taken[worker, at]
        done = taken < self.served[worker, at]
        batch = self.ring_batch[worker, taken % self.prefetch, at]
        self.ready[worker, at] = np.where(done, self.prepared[batch, at] + self.inputs.handover_way, inf)
        self.ready_batch[worker, at] = np.where(done, batch, self.batches)

    def receive(self, at: np.ndarray, worker: np.ndarray) -> None:
        """Let the loop receive a batch, start its copy and its step, and send the worker a new index."""
        place = self.deliveries[at], at
        self.delivered_batch[place], self.delivered_by[place] = self.ready_batch[worker, at], worker
        self.loop.receive(place, self.ready[worker, at])
        self.deliveries[at] += 1
        self.taken[worker, at] += 1
        self.offer(at, worker)
        self.send(at, worker, self.loop.received[place])


def _first(times: np.ndarray, batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which worker is first in each replica, and when; in a tie the one with the older batch."""
    earliest = times.min(axis=0)
    return np.where(times == earliest, batches, np.iinfo(np.int64).max).argmin(axis=0), earliest
