"""Growth of memory that goes on, told apart from what ends, by sizes that are known."""

import mmap
import os

import numpy as np
import pytest

from starvelab_doctor.watching import memory
from starvelab_doctor.watching.memory import Looks, steady_growth

BATCHES = np.arange(0, 600, 10)
NOISE = np.random.default_rng(29).uniform(0, 2e6, len(BATCHES))


@pytest.mark.parametrize(
    "filled",
    [1e8 + 50_000 * BATCHES, 1e8 + 50_000 * BATCHES + NOISE, 1e8 + 50_000 * (BATCHES // 40) * 40],
    ids=["even", "with what comes and goes", "in pieces, as allocators take it"],
)
def test_what_each_batch_adds_is_found(filled):
    low, likely, high = steady_growth(BATCHES, filled)
    assert low <= 50_000 <= high
    assert likely == pytest.approx(50_000, rel=0.1)


@pytest.mark.parametrize(
    "filled",
    [
        np.full(len(BATCHES), 1e8),
        1e8 + 20 * NOISE,
        1e8 + 50_000 * np.minimum(BATCHES, 300),
        1e8 + 5e7 * (1 - np.exp(-BATCHES / 200)),
        1e8 + 1e8 * (BATCHES > 300),
        1e8 + 2_000 * BATCHES,
        2e8 - 50_000 * BATCHES,
    ],
    ids=["nothing", "comes and goes", "a buffer that is full", "a cache", "one table", "too little", "falls"],
)
def test_what_ends_is_no_growth(filled):
    assert steady_growth(BATCHES, filled) is None


def test_few_looks_tell_nothing():
    few = BATCHES[::6]
    assert steady_growth(few, 1e8 + 50_000 * few) is None
    assert steady_growth(np.full(20, 3), np.arange(20) * 1e7) is None  # all at one batch


def looks(rows, end=None):
    made = Looks((1, 2), end)
    made.rows = rows
    return made


def test_when_memory_is_full_and_who_ends_before():
    rows = [(batch / 10, batch, 0, 100_000 * batch) for batch in range(0, 600, 10)]  # 1 MB a second
    growth = looks(rows).growth(0, 60_000_000)
    assert growth.full == (pytest.approx(60), pytest.approx(60))
    assert (growth.looks, growth.seconds) == (60, pytest.approx(59))
    assert looks(rows, end=900).growth(0, 60_000_000).full is None
    assert looks(rows, end=1500).growth(0, 60_000_000).full is not None
    assert looks(rows).growth(0, None).full is None
    assert looks([]).growth(0, None) is None
    quick = [(second / 10, *row) for second, *row in rows]
    assert looks(quick).growth(0, None) is None  # in 5.9 s


def test_growth_that_is_explained_is_none():
    rows = [(batch / 10, batch, 0, 100_000 * batch) for batch in range(0, 600, 10)]
    assert looks(rows).growth(0, None, explained=90_000) is not None
    assert looks(rows).growth(0, None, explained=100_000) is None


def test_what_grows_after_a_buffer_was_full_is_found():
    filled = np.minimum(BATCHES, 250) * 1e6 + 60_000 * BATCHES
    rows = [(batch / 10, batch, 0, size) for batch, size in zip(BATCHES, filled, strict=True)]
    assert looks(rows).growth(0, None).batch[1] == pytest.approx(60_000, rel=0.05)
    assert looks(rows).growth(590, None) is None  # the queue was not full until then


@pytest.mark.parametrize("every", [1, 3, 100])
def test_of_many_looks_every_second_one_is_forgotten(monkeypatch, every):
    monkeypatch.setattr(memory, "MAX_LOOKS", 8)
    monkeypatch.setattr(memory.Process, "filled", lambda process: 10)
    monkeypatch.setattr(memory.Process, "look", lambda process: setattr(process, "own", 5))
    made = Looks((1,))
    for batch in range(100):
        made.add(batch, closely=batch % every == 0)
    assert len(made.rows) < 8
    assert 64 <= made.length <= 128
    assert [row[1] for row in made.rows] == list(range(0, 100, 16))  # the first ones as well
    assert [row[2:] for row in made.rows] == [(5, 10)] * len(made.rows)


def test_a_process_that_has_ended_tells_nothing():
    made = Looks((2**22 + 1,))
    made.add(1, closely=True)
    assert made.rows == []


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="only Linux tells")
def test_a_copy_of_what_was_shared_is_no_growth():
    # Of the system itself: an allocator may have as much at hand that tests before this one gave back.
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    block = mmap.mmap(-1, 40_000_000, private)
    block.write(b"a" * len(block))
    from_child, to_parent = os.pipe()
    child = os.fork()
    if not child:
        process = memory.Process(os.getpid())
        process.look()
        before = process.own, process.filled()
        for page in range(0, len(block), mmap.PAGESIZE):  # as counting references does
            block[page] = 1
        process.look()
        copied, filled = process.own - before[0], process.filled() - before[1]
        kept = mmap.mmap(-1, 30_000_000, private)
        for page in range(0, len(kept), mmap.PAGESIZE):
            kept[page] = 1
        os.write(to_parent, f"{copied} {filled} {process.filled() - before[1] - filled} {len(kept)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(to_parent)
    copied, filled, grown, _ = map(int, os.read(from_child, 100).split())
    os.close(from_child)
    assert copied == pytest.approx(40_000_000, rel=0.1)
    assert filled < 2_000_000
    assert grown == pytest.approx(30_000_000, rel=0.1)
