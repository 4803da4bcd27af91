"""A loader told to simpy: processes, queues and resources, and nothing of the package's own rules.

Who gets the next index is decided as PyTorch's DataLoader does it: a cycle over the workers that passes over
those with a full queue when batches need not arrive in order.
"""

from itertools import cycle

import simpy


class Run:
    """One run; afterwards `rows` has a dict of times for each batch in the order of delivery."""

    def __init__(self, inputs, times, reads):
        self.inputs, self.times, self.reads = inputs, list(times), list(reads)
        self.env = simpy.Environment()
        self.storage, self.copier, self.device = (simpy.Resource(self.env) for _ in range(3))
        self.arrived = simpy.Store(self.env)
        self.row = [{} for _ in times]
        self.step_done = [self.env.event() for _ in times]
        self.rows = []
        self.sent = 0
        self.env.process(self.loop())
        self.env.run()

    def begin_epoch(self):
        """Start the workers, unless they are kept, and fill their queues."""
        if self.sent == 0 or not self.inputs.persistent:
            self.indices = [simpy.Store(self.env) for _ in range(self.inputs.workers)]
            for number, indices in enumerate(self.indices):
                self.env.process(self.worker(number, indices))
        self.turn, self.full = cycle(range(self.inputs.workers)), [0] * self.inputs.workers
        self.epoch_end = min(len(self.times), self.sent + (self.inputs.epoch_batches or len(self.times)))
        for _ in range(self.inputs.workers * self.inputs.prefetch):
            self.send()

    def worker(self, number, indices):
        yield self.env.timeout(self.inputs.start_up)
        while True:
            batch = yield indices.get()
            row = self.row[batch]
            row["batch"], row["worker"], row["prepare_start"] = batch, number, self.env.now
            with self.storage.request() as turn:
                yield turn
                yield self.env.timeout(self.reads[batch])
            yield self.env.timeout(self.times[batch])
            row["prepared"] = self.env.now
            self.env.process(self.hand_over(batch, number))

    def hand_over(self, batch, number):
        yield self.env.timeout(self.inputs.handover_way)
        yield self.arrived.put((batch, number))

    def send(self):
        if self.sent == self.epoch_end:
            return
        for _ in range(self.inputs.workers):
            number = next(self.turn)
            if self.inputs.in_order or self.full[number] < self.inputs.prefetch:
                self.full[number] += 1
                self.indices[number].put(self.sent)
                self.sent += 1
                return

    def loop(self):
        kept, launched = {}, []
        for wanted in range(len(self.times)):
            if wanted % (self.inputs.epoch_batches or len(self.times)) == 0:
                self.begin_epoch()
            if self.inputs.workers == 0:
                batch = wanted
                row = self.row[batch]
                row["batch"], row["worker"], row["prepare_start"] = batch, -1, self.env.now
                yield self.env.timeout(self.reads[batch] + self.times[batch])
                row["prepared"] = self.env.now
                yield self.env.timeout(self.inputs.handover_way)
            else:
                while True:
                    if self.inputs.in_order and wanted in kept:
                        batch, number = wanted, kept.pop(wanted)
                        break
                    batch, number = yield self.arrived.get()
                    if not self.inputs.in_order:
                        break
                    kept[batch] = number
            yield self.env.timeout(self.inputs.handover_loop)
            self.row[batch]["received"] = self.env.now
            if self.inputs.workers:
                self.full[number] -= 1
                self.send()
            self.rows.append(self.row[batch])
            launched.append(batch)
            self.env.process(self.on_the_device(batch))
            if len(launched) >= self.inputs.in_flight:
                yield self.step_done[launched[len(launched) - self.inputs.in_flight]]

    def on_the_device(self, batch):
        row = self.row[batch]
        copier = self.copier if self.inputs.copy_overlaps else self.device
        with copier.request() as turn:
            yield turn
            row["copy_start"] = self.env.now
            yield self.env.timeout(self.inputs.copy_time)
            row["copied"] = self.env.now
            if not self.inputs.copy_overlaps:
                yield from self.step(batch)
        if self.inputs.copy_overlaps:
            with self.device.request() as turn:
                yield turn
                yield from self.step(batch)

    def step(self, batch):
        self.row[batch]["step_start"] = self.env.now
        yield self.env.timeout(self.inputs.step_time)
        self.row[batch]["step_end"] = self.env.now
        self.step_done[batch].succeed()
