"""Which worker gets the next index: the simulation and the installed PyTorch agree."""

from itertools import cycle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab.simulate.timeline import LoaderInputs
from tests.simulate.test_against_simpy import followed, own_times

pytestmark = pytest.mark.programs

dataloader = pytest.importorskip("torch.utils.data.dataloader")


class Iterator(SimpleNamespace):
    """What PyTorch's own iterator keeps, without its processes; its rule is called on this."""

    def __init__(self, inputs, batches):
        indices = iter(range(batches))
        super().__init__(
            _num_workers=inputs.workers, _prefetch_factor=inputs.prefetch, _in_order=inputs.in_order,
            _tasks_outstanding=0, _send_idx=0, _workers_status=[True] * inputs.workers,
            _workers_num_tasks=[0] * inputs.workers, _worker_queue_idx_cycle=cycle(range(inputs.workers)),
            _task_info={}, _next_index=lambda: next(indices),
            _index_queues=[SimpleNamespace(put=lambda _: None)] * inputs.workers,
        )  # fmt: skip
        for _ in range(inputs.workers * inputs.prefetch):
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
    inputs = LoaderInputs(step_time=20, prepare_time=0, workers=workers, prefetch=prefetch, in_order=in_order)
    trace = followed(inputs, own_times(seed, 50)).trace()
    theirs = Iterator(inputs, 50)
    assert [theirs.receive(batch) for batch in trace.batch.tolist()] == trace.worker.tolist()
