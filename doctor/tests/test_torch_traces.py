"""Traces that `torch.profiler` writes on this machine, with planted causes.

Six trainings, of which five have to be named right. What is right is what the loop's own clock saw:
on a busy machine a wait may be longer than what was planted.
"""

import time
from functools import partial
from itertools import product

import pytest

from starvelab.measure.verdict import verdict_of
from starvelab_doctor import read_trace
from tests.measure.patience import patiently

pytestmark = pytest.mark.programs

torch = pytest.importorskip("torch")

BATCHES, SIZE = 12, 4
ABOUT = 0.03  # between the two clocks there are the profiler's own marks
# What a batch takes to prepare and the step after it [ms], for each verdict.
PLANTED = ((0.1, 16), (1.6, 14), (12, 12))


class Slow(list):
    """Items that take a while each."""

    def __init__(self, seconds):
        super().__init__([torch.ones(8)] * BATCHES * SIZE)
        self.seconds = seconds

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return super().__getitem__(index)


def loader(workers, prepare, step):
    """A loader whose batches the loop waits for so long."""
    # Workers prepare during the step as well: each of the two takes as long as two batches.
    seconds = 2 * (prepare + step) if workers and prepare > 1e-3 else prepare
    return torch.utils.data.DataLoader(Slow(seconds / SIZE), SIZE, num_workers=workers)


def record(path, batches, step, *, scheduled):
    """Train under the profiler; the share of waiting that the loop's own clock saw."""
    weights = torch.ones(8, 8)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=BATCHES - 2) if scheduled else None
    activities = [torch.profiler.ProfilerActivity.CPU]
    iterator, waits, steps = iter(batches), [], []
    with torch.profiler.profile(activities=activities, schedule=schedule) as profiler:
        for _ in range(BATCHES):
            asked = time.perf_counter()
            batch = next(iterator)
            received = time.perf_counter()
            while time.perf_counter() < received + step:
                batch @ weights
                time.sleep(0.001)
            waits.append(received - asked)
            if scheduled:
                profiler.step()
            steps.append(time.perf_counter() - received)
    profiler.export_chrome_trace(str(path))
    # The trace holds, with a schedule, all but the first two batches; else all but the first and last count.
    counted = slice(2, None) if scheduled else slice(1, -1)
    return sum(waits[counted]) / (sum(waits[counted]) + sum(steps[counted]))


def compared(path, batches, step, *, scheduled):
    """Whether the trace says what the loop's own clock saw, and both shares and the verdict."""
    share = record(path, batches, step, scheduled=scheduled)
    found = read_trace(path)
    right = {verdict_of(share - ABOUT), verdict_of(share + ABOUT), "cannot tell"}
    is_right = found.verdict in right and abs(found.waits.host_wait - share) <= ABOUT
    return is_right, share, found.waits.host_wait, found.verdict


def test_planted_causes_are_named(tmp_path):
    wrong, path = {}, tmp_path / "trace.json.gz"
    for number, ((prepare, step), workers) in enumerate(product(PLANTED, (0, 2))):
        scheduled = number in (1, 2, 5)
        batches = loader(workers, prepare / 1e3, step / 1e3)
        read = partial(compared, path, batches, step / 1e3, scheduled=scheduled)
        found = patiently(read, lambda found: found[0], seconds=5)
        if not found[0]:
            wrong[prepare, workers, scheduled] = found
    assert len(wrong) <= 1, wrong
