"""The memory of a job's workers: what is said of it, and what is seen of workers that leak or copy a list."""

import mmap
import os
import time
from dataclasses import replace

import pytest

from doctor.tests.known_jobs import AT_ONCE, ONE, found
from starvelab.units import Q_
from starvelab_doctor import BatchContents, advise, watch
from starvelab_doctor.finding.memory import LARGE_COPY, Growth, MemoryUse, Room
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.watching import memory, recorder
from starvelab_doctor.watching.memory import Looks, MemoryMeter

pytestmark = pytest.mark.programs

NOTHING = Q_("0 B")


def use(**fields):
    return MemoryUse(8, Q_("3.2 GB"), **({"copied": NOTHING, "shared": NOTHING} | fields))


def test_what_grows_and_when_memory_is_full_is_said_with_what_it_rests_on():
    growth = Growth((1.1e6, 1.2e6, 1.3e6), 120, 61.0, (2460.0, 2880.0))
    assert use(growth=growth).summary == (
        "8 workers (3.2 GB per worker) gained 1.2 MB for each batch, which is neither the copy of a list "
        "nor the queue: memory is full in 41 minutes to 48 minutes if that goes on. This is from 120 looks "
        "in 61 s; a cache or a buffer that is not full yet looks the same."
    )


@pytest.mark.parametrize(("full", "said"), [
    (None, "they end with the pass before that fills the memory."),
    ((50.0, 50.4), "memory is full in 50 s if that goes on."),
    ((20_000.0, 400_000.0), "memory is full in 6 hours to 5 days if that goes on."),
])  # fmt: skip
def test_how_long_that_takes_is_said_roughly(full, said):
    assert said in use(growth=Growth((1.0, 2.0, 3.0), 12, 6.0, full)).summary


def test_the_copy_of_a_list_is_said_and_no_leak():
    assert use(copied=Q_("0.9 GB"), shared=Q_("1.2 GB")).summary == (
        "Each worker copied 0.9 GB of the objects of the training process, and may copy 1.2 GB more. A "
        "list of many objects is copied, one array is not."
    )
    assert use(copied=Q_("20 MB")).summary == ""


def test_who_grows_without_workers_cannot_be_told_apart_from_the_step():
    growth = Growth((1.0e6, 1.2e6, 1.3e6), 20, 10.0, None)
    alone = MemoryUse(0, NOTHING, NOTHING, NOTHING, loop_growth=growth)
    assert alone.summary.startswith(
        "The training process, which prepares the batches, gained 1.2 MB for each"
    )
    assert use(loop_growth=growth).summary.startswith("The training process gained 1.2 MB for each batch")


def limited(job, workers, *, each="2 GB", free=10e9, shm=None, size="100 MB", **fields):
    """Return a job whose workers have so much memory, where so much is free [B]."""
    known = MemoryUse(workers, Q_(each), **({"copied": NOTHING, "shared": NOTHING} | fields))
    known = replace(known, free=free, shared_free=shm)
    return job.replace(memory=known, contents=BatchContents(1, Q_(size), "uint8", 1))


def test_as_many_workers_are_advised_as_find_room():
    job = found(**ONE, cpu=0.01, **AT_ONCE)
    assert advise(job, cores=2).best.workers == 12
    advice = advise(limited(job, 1), cores=2)
    # Each more takes 2.2 GB, and 7 of the 10 may be used: two of the batches in the queue are there already.
    assert (advice.best.workers, advice.options[-1].workers) == (4, 4)
    room = "more do not fit: each takes 2 GB, and 2 batches of 100 MB ahead in shared memory, and 10 GB"
    assert f"; {room} of memory are free." in advice.summary
    roomy = advise(limited(job, 1, free=1e12), cores=2)
    assert (roomy.best.workers, roomy.room) == (12, "")
    unknown = advise(limited(job, 1, free=None), cores=2)
    assert (unknown.best.workers, unknown.room) == (12, "")


def test_where_no_worker_finds_room_that_is_the_remedy():
    job = found(workers=0, wait=0.09, step=0.01, cpu=0.0)
    (remedy,) = remedies_of(limited(job, 0, free=20e9, shm=64e6, size="38.5 MB"), cores=2)
    assert (remedy.name, remedy.gain) == ("memory", None)
    assert remedy.text == (
        "Keep the 0 workers: more do not fit: each takes 38 MB, and 2 batches of 38 MB ahead in shared "
        "memory, and 64 MB of /dev/shm (docker run --shm-size) are free."
    )
    # What is no tensor goes through a pipe, and a thread shares all memory.
    arrays = limited(job, 0, free=20e9, shm=64e6, size="38.5 MB")
    arrays = arrays.replace(contents=BatchContents(1, Q_("38.5 MB"), "uint8", 0))
    assert advise(arrays, cores=2).best.workers > 1
    threads = limited(found(**ONE, cpu=0.01, **AT_ONCE), 1).replace(processes=False)
    assert advise(threads, cores=2).best.workers == 12


def test_workers_that_would_bring_nothing_are_not_missed():
    computes = found(**ONE, cpu=1.0)
    assert advise(limited(computes, 1, free=1e9), cores=1).summary == (
        "Keep the 1 worker: more would bring less than 5 %."
    )


def test_a_worker_that_copies_a_list_will_have_all_of_it():
    job = found(**ONE, cpu=0.01, **AT_ONCE)
    shares = {"shared": Q_("2 GB")}
    assert limited(job, 1, **shares).room.each == 2e9  # an array, which is not copied
    assert limited(job, 1, **shares, copied=Q_(LARGE_COPY, "B")).room.each == 4e9


@pytest.mark.parametrize(("shm", "ahead"), [(1e12, 4), (4e8, 3), (2e8, None)])
def test_a_deeper_queue_is_advised_as_far_as_it_finds_room(shm, ahead):
    # Two workers: six batches of 50 MB are less than 70 % of 400 MB with those that lie there, eight are not.
    late = [0.016 if number % 13 else 0.128 for number in range(260)]
    times = {"items": 0.0246, "collate": 0.0, "unpacking": 0.0}
    job = found(workers=2, wait=0.00754, step=0.015, cpu=0.0, ready=1, **times).replace(prefetch=1)
    job = job.replace(stages=replace(job.loader.stages, prepared=tuple(1e3 * time for time in late)))
    job = limited(job, 2, each="50 MB", shm=shm, size="50 MB")
    assert [one.value for one in remedies_of(job, cores=2) if one.name == "prefetch"] == [ahead] * bool(ahead)


def test_batches_that_lie_there_already_need_no_more_room():
    room = Room(2, each=1e9, batch=1e8, ready=4, free=1e9, shared=1e12)
    assert (room.workers_for(2), room.workers_for(8)) == (2, 1)
    assert Room(7).workers_for(2) == float("inf")
    assert room.reason(1).startswith("more do not fit: each takes 1 GB, and 1 batch of 100 MB ahead")


@pytest.mark.parametrize(("batches", "size", "collated", "found"), [
    (200, 0.9e5, False, True), (200, 1e5, False, False), (600, 1e5, False, True), (200, 1e5, True, True),
])  # fmt: skip
def test_the_first_batches_of_a_worker_may_leave_as_much_as_they_are(batches, size, collated, found):
    # Of their first 128 batches two workers keep something: an honest job was said to leak.
    meter = MemoryMeter()
    meter.collated = collated
    meter.workers, meter.longest = Looks((1, 2)), Looks(())
    meter.workers.rows = [(batch / 10, batch, 0, 100_000 * batch) for batch in range(0, batches, 10)]
    meter.loop.rows = [(0.0, 0, 0, 0)]
    contents = BatchContents(1, Q_(size, "B"), "uint8", 1)
    assert (meter.use(contents).growth is not None) == found


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="only Linux tells")
@pytest.mark.parametrize("leaks", [True, False])
def test_workers_that_keep_something_of_each_item_are_told_from_others(monkeypatch, leaks):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(recorder, "POLL_INTERVAL", 0.01)
    monkeypatch.setattr(recorder, "PAUSE", 0)
    monkeypatch.setattr(memory, "MIN_SECONDS", 0.1)

    class Items(torch.utils.data.Dataset):
        kept = []  # noqa: RUF012

        def __len__(self):
            return 2000

        def __getitem__(self, index):
            if leaks:  # from the system itself: an allocator may have as much at hand
                self.kept.append(mmap.mmap(-1, 100_000, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
                self.kept[-1].write(b"x" * 100_000)
            return index

    collate = None if leaks else list
    loader = torch.utils.data.DataLoader(Items(), 4, num_workers=1, collate_fn=collate)
    watched = watch(loader, progress=False)
    end = time.monotonic() + 3
    for number, _ in enumerate(watched):
        time.sleep(0.01)
        if number > 60 or time.monotonic() > end:
            break
    found = watched.result.machine.memory
    assert (found.workers, watched._recorder.memory.collated) == (1, leaks)
    assert (found.growth is not None) == leaks
    assert found.loop_growth is None
    if leaks:
        assert found.growth.batch[1] == pytest.approx(400_000, rel=0.3)
        assert "gained " in watched.result.summary
