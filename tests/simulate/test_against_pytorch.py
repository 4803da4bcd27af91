"""Which worker gets the next index: the simulation and the installed PyTorch agree."""

from __future__ import annotations

from itertools import cycle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_
from starvelab.simulate import Loader, simulate
from tests.simulate.test_against_simpy import own_times

dataloader = pytest.importorskip("torch.utils.data.dataloader")


class Iterator(SimpleNamespace):
    """What PyTorch's own iterator keeps, without its processes; its rule is called on this."""

    def __init__(self, loader, batches):
        indices = iter(range(batches))
        super().__init__(
            _num_workers=loader.workers,
            _prefetch_factor=loader.prefetch,
            _in_order=loader.in_order,
            _tasks_outstanding=0,
            _send_idx=0,
            _workers_status=[True] * loader.workers,
            _workers_num_tasks=[0] * loader.workers,
            _worker_queue_idx_cycle=cycle(range(loader.workers)),
            _task_info={},
            _next_index=lambda: next(indices),
            _index_queues=[SimpleNamespace(put=lambda _: None)] * loader.workers,
        )
        for _ in range(loader.workers * loader.prefetch):
            self.send()

    def send(self):
        dataloader._MultiProcessingDataLoaderIter._try_put_index(self)

    def receive(self, batch):
        """Take a batch, ask for the next one, and say which worker had it."""
        worker = self._task_info.pop(batch)[0]
        self._tasks_outstanding -= 1
        self._workers_num_tasks[worker] -= 1
        self.send()
        return worker


@given(st.integers(1, 6), st.integers(1, 5), st.booleans(), st.integers(0, 999))
def test_each_batch_is_prepared_by_the_worker_that_pytorch_would_ask(workers, prefetch, in_order, seed):
    loader = Loader(
        step_time="20 ms", prepare_time="0 ms", workers=workers, prefetch=prefetch, in_order=in_order
    )
    trace = simulate(loader, prepare_times=Q_(own_times(seed, 50), "ms")).trace()
    theirs = Iterator(loader, 50)
    assert [theirs.receive(batch) for batch in trace.batch.tolist()] == trace.worker.tolist()
