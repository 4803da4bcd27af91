"""Storage that workers share, with delivery in any order: one event after the other in each replica.

Replicas advance side by side, each to its own next event; what the times mean is decided elsewhere.
"""

from __future__ import annotations

from math import inf

import numpy as np

from .inputs import LoaderInputs
from .timeline import Loop, Start, Timeline


def follow_events(inputs: LoaderInputs, times: np.ndarray, reads: np.ndarray, start: Start) -> Timeline:
    """Follow the batches through a loader with workers, in any order of delivery.

    `times` is what a worker takes for each batch besides the shared read, `reads` what each occupies the
    storage; both of shape (batches, replicas) [ms].

    Two things happen to a batch at a moment that depends on the others: its worker asks the storage, which
    serves in the order of asking; and the loop receives it. Without `in_order` the loop receives what was
    ready first. Either way the next index goes to the worker whose batch was received: in order because of
    the cycle, otherwise because PyTorch's DataLoader passes over workers with a full queue, and only this one
    has room. The batch that was asked for first comes first in a tie.
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

    def follow(self) -> Timeline:
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
