"""The memory of a job's workers: what is said of it, and what is seen of workers that leak or copy a list."""

import mmap
import os
import time
from dataclasses import replace

import pytest

from starvelab.jobs import recorder, watch
from starvelab.jobs.memory import MemoryUse
from starvelab.measure.memory import Growth
from starvelab.units import Q_

NOTHING = Q_("0 B")


def use(**fields):
    return MemoryUse(8, Q_("3.2 GB"), **({"copied": NOTHING, "shared": NOTHING} | fields))


def test_what_grows_and_when_memory_is_full_is_said_with_what_it_rests_on():
    growth = Growth((1.1e6, 1.2e6, 1.3e6), 120, 61.0, (2460.0, 2880.0))
    assert use(growth=growth, batch_size=8).summary == (
        "The 8 workers, with 3.2 GB each, gained 150 KB for each item, which is neither the copy of a list "
        "nor the queue: memory is full in 41 minutes to 48 minutes if that goes on. That rests on 120 looks "
        "in 61 s; a cache or a buffer that is not full yet looks the same."
    )
    assert str(use()) == "3.2 GB each, 8 workers"


@pytest.mark.parametrize(
    ("full", "said"),
    [
        (None, "they end with the pass before that fills the memory."),
        ((3e7, 4e7), "that takes months to fill the memory."),
        ((50.0, 50.4), "memory is full in 50 s if that goes on."),
        ((20_000.0, 400_000.0), "memory is full in 6 hours to 5 days if that goes on."),
    ],
)
def test_how_long_that_takes_is_said_roughly(full, said):
    assert said in use(growth=Growth((1.0, 2.0, 3.0), 12, 6.0, full)).summary


def test_the_copy_of_a_list_is_said_and_no_leak():
    assert use(copied=Q_("0.9 GB"), shared=Q_("1.2 GB")).summary == (
        "Each worker copied 0.9 GB of the objects of the training process, and may copy 1.2 GB more: one "
        "array is not copied, a list of many objects is."
    )
    assert use(large=True).summary == "The 8 workers have 3.2 GB each."
    assert use(copied=Q_("20 MB")).summary == ""


def test_one_worker_is_spoken_of_as_one():
    growth = Growth((1.1e6, 1.2e6, 1.3e6), 120, 61.0, None)
    one = MemoryUse(1, Q_("3.2 GB"), NOTHING, NOTHING, large=True)
    assert (one.summary, str(one)) == ("The only worker has 3.2 GB.", "3.2 GB, 1 worker")
    assert replace(one, growth=growth).summary.startswith("The only worker, with 3.2 GB, gained 1.2 MB for")
    copied = replace(one, copied=Q_("0.9 GB"), large=False)
    assert copied.summary.startswith("The only worker copied 0.9 GB of the objects")


def test_who_grows_without_workers_cannot_be_told_apart_from_the_step():
    growth = Growth((1.0e6, 1.2e6, 1.3e6), 20, 10.0, None)
    alone = MemoryUse(0, NOTHING, NOTHING, NOTHING, loop_growth=growth)
    assert alone.summary.startswith(
        "The training process, which prepares the batches, gained 1.2 MB for each"
    )
    assert use(loop_growth=growth).summary.startswith("The training process gained 1.2 MB for each batch")


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="only Linux tells")
@pytest.mark.parametrize("leaks", [True, False])
def test_workers_that_keep_something_of_each_item_are_told_from_others(monkeypatch, leaks):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(recorder, "POLL_INTERVAL", 0.01)

    class Items(torch.utils.data.Dataset):
        kept = []  # noqa: RUF012

        def __len__(self):
            return 2000

        def __getitem__(self, index):
            if leaks:  # from the system itself: an allocator may have as much at hand
                self.kept.append(mmap.mmap(-1, 100_000, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
                self.kept[-1].write(b"x" * 100_000)
            return index

    watched = watch(torch.utils.data.DataLoader(Items(), 4, num_workers=1), progress=False)
    end = time.monotonic() + 3
    for number, _ in enumerate(watched):
        time.sleep(0.01)
        if number > 60 or time.monotonic() > end:
            break
    memory = watched.result.memory
    assert memory.workers == 1
    assert (memory.growth is not None) == leaks
    assert memory.loop_growth is None
    if leaks:
        assert memory.growth.batch[1] == pytest.approx(400_000, rel=0.3)
        assert "gained " in watched.result.summary
