"""What tips about input pipelines are worth here, from threads and halves to huge pages and data servers.

Times are a processor's own, except those of the products of matrices, for which several processes compete.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
from tabulate import tabulate

from .report import machine, options

IMAGE, SIDE = (3, 224, 224), 256
PRODUCTS = f"""
import os
import time
import numpy as np
if core := __import__("sys").argv[2]:
    os.sched_setaffinity(0, [int(core)])
one, count = np.ones(({SIDE}, {SIDE}), dtype=np.float32), 0
end = time.perf_counter() + float(__import__("sys").argv[1])
while time.perf_counter() < end:
    one @ one
    count += 1
print(count)
"""


def own_ms(work: Callable[[], object], turns: int) -> float:
    """What one processor takes for it [ms], the median."""
    work()
    times = []
    for _ in range(turns):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * median(times)


def products(threads: int, processes: int, seconds: float, *, pinned: bool = False) -> float:
    """Products of matrices a second in all of so many processes, each with so many threads.

    Where they are pinned, each has a core of its own.
    """
    own = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))}
    command = [sys.executable, "-c", PRODUCTS, str(seconds)]
    cores = sorted(os.sched_getaffinity(0)) if pinned else [""]
    started = [
        subprocess.Popen([*command, str(cores[number % len(cores)])], env=own, stdout=subprocess.PIPE)
        for number in range(processes)
    ]
    return sum(int(one.communicate()[0]) for one in started) / seconds


def halves(turns: int) -> tuple[float, float]:
    """The time of making an image half as precise [ms], in NumPy and in PyTorch."""
    import torch

    image = np.random.default_rng(0).random(IMAGE, dtype=np.float32)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = own_ms(lambda: image.astype(np.float16), turns), own_ms(torch.from_numpy(image).half, turns)
    torch.set_num_threads(threads)
    return found


def read_in(chunk: int, turns: int) -> float:
    """What a processor reads from the page cache in such pieces [MB/s]."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(os.urandom(2**24))
        file.flush()

        def read() -> None:
            with open(file.name, "rb", buffering=0) as opened:
                while opened.read(chunk):
                    pass

        return 2**24 / 1e3 / own_ms(read, turns)


def dense_again(share: float, turns: int, count: int = 1_000_000) -> float:
    """The time of filling an array of which so much is not zero [ms]."""
    random = np.random.default_rng(0)
    places = np.sort(random.choice(count, int(share * count), replace=False))
    values = random.random(len(places), dtype=np.float32)

    def fill() -> None:
        np.zeros(count, dtype=np.float32)[places] = values

    return own_ms(fill, turns)


def fetched(turns: int, rows: int = 256, length: int = 64) -> tuple[float, float]:
    """The time of a batch of rows of a database [ms]: a query for each, and one for all."""
    random = np.random.default_rng(0)
    stored = [(number, random.random(length, dtype=np.float32).tobytes()) for number in range(20_000)]
    wanted = random.choice(len(stored), rows, replace=False).tolist()
    table = sqlite3.connect(":memory:")
    table.execute("create table rows (id integer primary key, content blob)")
    table.executemany("insert into rows values (?, ?)", stored)
    every = f"select content from rows where id in ({', '.join('?' * rows)})"

    def one_by_one() -> np.ndarray:
        found = (table.execute("select content from rows where id = ?", (number,)) for number in wanted)
        return np.stack([np.frombuffer(one.fetchone()[0], np.float32) for one in found])

    def together() -> np.ndarray:
        found = b"".join(content for (content,) in table.execute(every, wanted))
        return np.frombuffer(found, np.float32).reshape(rows, length)

    return own_ms(one_by_one, turns), own_ms(together, turns)


def fused(turns: int) -> tuple[float, float]:
    """The time of normalizing an image [ms]: in four operations, and by one table of 256 values."""
    image = np.random.default_rng(0).integers(0, 256, IMAGE, dtype=np.uint8)

    def one_by_one(pixels: np.ndarray) -> np.ndarray:
        return (pixels.astype(np.float32) / 255 - np.float32(0.45)) / np.float32(0.22)

    table = one_by_one(np.arange(256))
    return own_ms(lambda: one_by_one(image), turns), own_ms(lambda: table[image], turns)


def gathered(advice: int, turns: int, length: int, count: int = 2**18) -> tuple[float, float]:
    """The times of filling so many bytes, and of reading so many of its numbers in a random order [ms]."""
    places = np.random.default_rng(0).integers(0, length // 8, count)

    def fill() -> np.ndarray:
        memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(advice)
        numbers = np.frombuffer(memory)
        numbers[:] = 1.0
        return numbers

    filled = fill()
    return own_ms(fill, max(1, turns // 10)), own_ms(lambda: filled[places], turns)


def served(turns: int, size: int = 256 * 3 * 224 * 224) -> tuple[float, float]:
    """The time of a batch [ms] that comes through TCP from another process, and of a copy in memory."""
    batch, received = np.ones(size, np.uint8), np.empty(size, np.uint8)

    def serve() -> None:
        there, _ = listener.accept()
        while there.recv(1):
            there.sendall(batch)

    def receive() -> None:
        here.sendall(b"1")
        view = memoryview(received)
        while view:
            view = view[here.recv_into(view) :]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = multiprocessing.get_context("fork").Process(target=serve)  # its time is not the receiver's
        server.start()
        with socket.create_connection(listener.getsockname()) as here:
            times = own_ms(receive, turns), own_ms(lambda: np.copyto(received, batch), turns)
        server.join()
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(
        __doc__, seconds=(4.0, 0.1), turns=(30, 2), workers=((1, 2, 4), (1,)), memory=(2**28, 2**22)
    )
    asked = parser.parse_args(arguments)
    print(f"{machine()}\n")
    rows = []
    for workers in asked.workers:
        one, two = (products(threads, workers, asked.seconds) for threads in (1, 2))
        rows.append(
            [f"{workers} workers that multiply", f"{one:.0f}/s on one thread each", f"{two:.0f}/s on two"]
        )
    numpy, torch = halves(asked.turns)
    rows.append(
        ["an image from float32 to float16", f"{numpy:.3f} ms in NumPy", f"{torch:.3f} ms in PyTorch"]
    )
    for chunk in (512, 4096, 65536, 2**20):
        rows.append(
            ["reading what memory holds", f"in {chunk} B", f"{read_in(chunk, asked.turns):,.0f} MB/s"]
        )
    for share in (0.001, 0.01, 0.1):
        dense = f"{dense_again(share, asked.turns):.3f} ms to fill them in"
        rows.append([f"{share:.1%} of a million numbers", f"{200 * share:.1f} % of the bytes", dense])
    one, all_at_once = fetched(asked.turns)
    rows.append(["256 rows of a database", f"{one:.2f} ms one by one", f"{all_at_once:.2f} ms in one query"])
    passes, table = fused(asked.turns)
    rows.append(["normalizing an image", f"{passes:.3f} ms in four passes", f"{table:.3f} ms in one"])
    free, pinned = (products(1, 2, asked.seconds, pinned=pinned) for pinned in (False, True))
    rows.append(["2 workers that multiply", f"{free:.0f}/s on any core", f"{pinned:.0f}/s on a core each"])
    for name, advice in (("small", mmap.MADV_NOHUGEPAGE), ("huge", mmap.MADV_HUGEPAGE)):
        fill, read = gathered(advice, asked.turns, asked.memory)
        size = f"{asked.memory / 1e6:.0f} MB"
        rows.append([f"{size} in {name} pages", f"{fill:.0f} ms to fill", f"{read:.2f} ms to read at random"])
    through, copied = served(asked.turns)
    rows.append(["a batch of 39 MB", f"{through:.1f} ms to receive over TCP", f"{copied:.1f} ms to copy"])
    print(tabulate(rows))


if __name__ == "__main__":
    main()
