"""What it takes to start workers and to begin a pass: how much that is, and when it is named."""

from __future__ import annotations

import multiprocessing
import sys
import time
from io import BytesIO
from multiprocessing import popen_fork, reduction

import pytest

from doctor.tests.known_jobs import KnownStages
from doctor.tests.loops import Loader, train
from starvelab.units import Q_
from starvelab_doctor import watch
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.watching import hooks
from starvelab_doctor.watching.pickled import timing_pickles
from starvelab_doctor.watching.recorder import Recorder

pytestmark = pytest.mark.programs


def passes(first, workers, batches=8, wait=0.001, **stages):
    """Ten passes, each batch of which takes 40 ms and its first one longer."""
    recorder = Recorder(
        batch_size=8, workers=workers, probe=KnownStages(workers, **stages) if stages else None
    )
    for number in range(10):
        recorder.replay(first if number else 1.0, [wait] * (batches - 1), [0.039] * (batches - 1))
    return recorder.finding()


def named(finding):
    return {one.name: one for one in remedies_of(finding, cores=8)}


LISTS = (
    "Beginning a later pass takes 0.2 s on average, 41.7 % of its time: make the DataLoader once, before all "
    "passes, and let its sampler and its dataset list the items once."
)
KEEP = (
    "Beginning and ending a later pass takes 0.2 s on average, 41.7 % of its time: keep the workers with "
    "persistent_workers=True in one loader for all passes, or make each pass longer. Only a trial can tell "
    "what that brings."
)


@pytest.mark.parametrize(("first", "workers", "persists", "name", "said"), [
    (0.2, 2, None, "persistent", KEEP),
    (0.2, 2, True, "passes", LISTS),
    (0.2, 0, None, "passes", LISTS),
    (0.01, 2, None, "persistent", ""),
    (0.08, 2, None, "persistent", ""),  # as long as a worker takes for any batch
    (0.005, 0, None, "passes", ""),
], ids=["long", "they persist", "no workers", "short", "a slow batch", "short, no workers"])  # fmt: skip
def test_what_each_later_pass_costs_at_its_start_is_said(first, workers, persists, name, said):
    one = named(passes(first, workers).replace(persists=persists)).get(name)
    assert (one.text if one else "") == said


def test_a_start_is_named_from_five_percent_of_the_job_on():
    # A pass of 40 batches takes 1560 ms beside its first batch, of which 82 are those of any batch.
    more, less = (named(passes(first, 2, 40)) for first in (0.082 + 0.09, 0.082 + 0.08))
    assert ("persistent" in more, "persistent" in less) == (True, False)
    # A pass of eight batches: 280 ms beside its first batch, which a worker prepares in 80.
    gain = named(passes(0.2, 2))["persistent"].gain
    assert gain.likely == pytest.approx((0.28 + 0.2) / (0.28 + 0.082), rel=0.02)
    assert gain.low == 1 < gain.likely < gain.high == pytest.approx((0.28 + 0.2) / 0.28)


def test_what_the_end_of_a_pass_takes_is_part_of_what_new_workers_cost(clock):
    class Ending(Loader):
        def batches(self):
            yield from super().batches()
            self.clock.sleep(0.3)  # its workers end

    watched = watch(Ending(clock, 0.001, 10, start=0.1, first=0.1), workers=2, progress=False)
    for _ in range(4):
        train(clock, watched, 0.02)
    first, *_ = remedies_of(watched.result, cores=2)
    assert watched.result.waits.ending.m_as("s") == pytest.approx(0.3)
    assert first.name == "persistent"
    assert first.text.startswith("Beginning and ending a later pass takes 0.5 s on average")


def test_pickling_the_data_for_each_worker_is_named():
    finding = passes(0.05, 2).replace(pickled=Q_("300 ms"))
    one = named(finding)["pickling"]
    assert one.text.startswith(
        "A list is pickled for each worker that starts, which takes 7.1 % of the time in all: let the "
        "workers open a file with it, or hold it in one tensor, which they share."
    )
    assert one.gain is None
    assert "pickling" not in named(finding.replace(pickled=Q_("150 ms")))
    assert "pickling" not in named(passes(0.05, 2))


def test_what_a_process_gets_is_counted_unless_it_is_forked():
    spent, counts, before = [], set(), reduction.dump
    with timing_pickles(spent):
        for kind in ("spawn", "fork") if sys.platform == "linux" else ("spawn",):
            process = multiprocessing.get_context(kind).Process(target=len, args=("x" * 100_000,))
            process.start()
            process.join()
            counts.add(len(spent))
    assert counts == {len(spent)}  # none more for the one that is forked
    assert min(spent) > 0
    assert reduction.dump is before


@pytest.mark.parametrize("watching", ["doctor", "watch"])
def test_what_workers_get_is_counted_in_each_way_of_watching(monkeypatch, watching):
    torch_data = pytest.importorskip("torch.utils.data")
    items, fork = [f"{number:060}" for number in range(2000)], popen_fork.Popen._launch

    def start(process, *given):  # as where workers are not forked, and sooner
        reduction.dump(items, BytesIO())
        fork(process, *given)

    monkeypatch.setattr(popen_fork.Popen, "_launch", start)
    loader = torch_data.DataLoader(items, 200, num_workers=2, multiprocessing_context="fork")
    if watching == "watch":
        watched = watch(loader, progress=False)
        assert sum(1 for _ in watched) == 10
        found = watched.result
    else:
        with hooks.Doctor().watching() as watcher:
            assert sum(1 for _ in loader) == 10
        ((_, found),) = watcher.results()
    assert found.loader.pickled.m_as("s") > 0
    assert found.loader.persists is False


@pytest.mark.parametrize("persistent", [False, True])
def test_doctor_counts_what_the_sampler_does_before_the_first_batch_of_a_pass(persistent):
    torch_data = pytest.importorskip("torch.utils.data")

    class Draws(torch_data.Sampler):  # as one with weights, that draws all indices of a pass at its beginning
        def __iter__(self):
            time.sleep(0.2)
            return iter(range(16))

        def __len__(self):
            return 16

    loader = torch_data.DataLoader(
        range(16), 4, sampler=Draws(), num_workers=1, persistent_workers=persistent
    )
    with hooks.Doctor().watching() as watcher:
        for _ in range(3):
            assert sum(1 for _ in loader) == 4
    ((_, found),) = watcher.results()
    assert all(wait.m_as("s") > 0.2 for wait in found.waits.first_waits)
