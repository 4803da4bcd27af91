"""The plain numbers that a simulation starts from, and the pace that mean times alone allow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LoaderInputs:
    """Workers that prepare batches, the order in which these arrive, and the loop that trains on them.

    Whoever makes one has checked its parts. Times are for one batch, in milliseconds as in a `Trace`: whole
    ones stay exact, so that a tie is a tie.
    """

    batch_size: int = 32
    step_time: float
    busy_share: float = 1.0  # of a step, in which the accelerator works
    in_flight: float = 2
    copy_time: float = 0.0
    copy_overlaps: bool = True
    workers: int = 2
    prefetch: int = 2
    in_order: bool = True
    start_up: float = 0.0
    persistent: bool = False
    epoch_batches: int | None = None  # a run of one epoch unless given
    prepare_time: float  # one worker's on average, stretched where all of them share the cores
    spread: float = 0.0
    slow_share: float = 0.0
    slow_time: float = 0.0  # of one sample
    read_time: float = 0.0  # which a batch occupies the storage; reads are served one after the other
    read_wait: float = 0.0  # which its worker sleeps through, occupying nothing
    read_ahead: bool = False
    cached_share: float = 0.0  # of the samples, which take neither of these two
    handover_way: float = 0.0
    handover_loop: float = 0.0
    # Ranks that end each step together; the last has the pace above, and the others prepare so many times as
    # fast. Of each step so much scatters, in each of a rank's accelerators, and costs this wait on average.
    ranks: int = 1
    slow_rank: float = 1.0
    rank_spread: float = 0.0
    rank_devices: int = 1
    scattered: float = 0.0
    barrier: float = 0.0

    @property
    def mean_delay(self) -> float:
        """How much longer a batch takes on average because of slow samples."""
        return self.batch_size * self.slow_share * self.slow_time

    @property
    def mean_period(self) -> float:
        """The time from batch to batch that mean times alone allow, below which no order of events comes.

        The largest of: a step (with its copy where that cannot overlap), the copy, receiving, a worker's
        batch over the number of workers, the shared read, the whole way of a batch over the batches that may
        be under way, and the loop's own round over the steps in flight. Boundaries of epochs are left out.
        """
        step, copy, receive = self.step_time + self.barrier, self.copy_time, self.handover_loop
        missed = 1 - self.cached_share
        read = missed * self.read_time
        ahead = read if self.read_ahead and self.workers else 0.0
        work = self.prepare_time + missed * self.read_wait + self.mean_delay + read - ahead
        way = ahead + work + self.handover_way + receive
        device = max(step, copy) if self.copy_overlaps else step + copy
        if not self.workers:
            return max(device, way, (way + copy + step) / self.in_flight)
        depth = self.workers * self.prefetch
        round_trip = (receive + copy + step) / self.in_flight
        return max(device, receive, read, work / self.workers, way / depth, round_trip)
