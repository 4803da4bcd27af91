"""Twenty-four training jobs with a planted cause each: the script trains, or measures two settings by turns.

    python planted.py JOB [--seconds 6]                          trains, as `starvelab-doctor` runs it
    python planted.py JOB --turns 3 --change workers=4           batches a second, as it is and changed

Most of them sleep, and the rest compute for a known time, so that what would help is known.
"""

import argparse
import json
import queue
import tempfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

TEXT = b"starvation " * 4000
LOCK = Path(tempfile.gettempdir()) / "starvelab-planted.lock"


def compute(milliseconds):
    """Work of the CPU, as much as takes so long on a core of its own."""
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        zlib.compress(TEXT, 1)


class Items(Dataset):
    """Items that wait, one at a time or side by side, and compute; some batches take longer."""

    def __init__(self, wait=0.0, work=0.0, shape=(16,), dtype=torch.float32, serial=False, late=0.0, batch=8):
        self.wait, self.work, self.shape, self.dtype = wait, work, shape, dtype
        self.serial, self.late, self.batch = serial, late, batch

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        if self.serial:
            import fcntl

            with open(LOCK, "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # a drive that serves one request at a time
                time.sleep(self.wait / 1e3)
        elif self.wait:
            time.sleep(self.wait / 1e3)
        if self.late and index // self.batch % 12 == 0:
            time.sleep(self.late / 1e3)
        if self.work:
            compute(self.work)
        return torch.ones(self.shape, dtype=self.dtype)


class Cached(Items):
    """Items that are read once."""

    def __init__(self, count, wait):
        super().__init__(wait=wait)
        self.count, self.known = count, {}

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index not in self.known:
            self.known[index] = super().__getitem__(index)
        return self.known[index]


class Short(Items):
    """Few items, so that a pass is short."""

    def __len__(self):
        return 160


class Parts(Items):
    """Items of many small tensors."""

    def __getitem__(self, index):
        return {f"feature {number}": torch.ones(8) for number in range(113)}


def packed(items):
    """All of them in one tensor."""
    return torch.stack([torch.stack(list(item.values())) for item in items])


class RowGroups(Items):
    """Rows of groups that are read whole for each of them."""

    def __init__(self, once):
        super().__init__()
        self.once, self.group = once, (None, None)

    def __getitem__(self, index):
        number = index // 64
        if not self.once or self.group[0] != number:
            compute(1)  # reads a row group
            self.group = (number, torch.ones(64, 256))
        return self.group[1][index % 64]


class Tiny(Items):
    """Items that are looked up one by one."""

    def __init__(self):
        super().__init__()
        self.table = torch.ones(4096, 8)

    def __getitem__(self, index):
        return self.table[index % 4096].clone()


class Together(Tiny):
    """The same, a batch at once."""

    def __getitems__(self, indices):
        return list(self.table[torch.tensor(indices) % 4096])


def as_they_are(items):
    """For items that need no collate function."""
    return torch.stack(items)


class Background(threading.Thread):
    """A thread between the loader and the loop, as prefetch_generator has it."""

    def __init__(self, loader):
        super().__init__(daemon=True)
        self.loader, self.queue = loader, queue.Queue(4)
        self.start()

    def run(self):
        """Hand on batch after batch."""
        for batch in self.loader:
            self.queue.put(batch)

    def __iter__(self):
        while (batch := self.queue.get()) is not None:
            yield batch


class Threads(Items):
    """Items that threads of one process prepare, under one lock."""

    def __getitems__(self, indices):
        lock = threading.Lock()

        def one(index):
            with lock:
                return self[index]

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, indices))


def packer(loader):
    """Sequences that are packed in the loop's own thread."""
    for batch in loader:
        compute(15)
        yield batch


def slow_collate(items):
    """Stacks them number by number."""
    compute(12)
    return default_collate(items)


def training(milliseconds, work=0.0):
    """A training step: the loop waits for an accelerator, or computes."""

    def step(_):
        time.sleep(milliseconds / 1e3)
        compute(work)

    return step


class Moved(Items):
    """What the loop did in its own thread, in the workers."""

    def __getitem__(self, index):
        item = super().__getitem__(index)
        compute(15 / self.batch)
        return item


IMAGE = (3, 320, 320)
# Of each job: its dataset, its changed dataset, its batch size, its step, and the loader's settings.
JOBS = {
    "storage, one worker": {"data": Items(wait=4), "step": training(6), "workers": 1},
    "storage, no workers": {"data": Items(wait=4), "step": training(10)},
    "storage, two workers": {"data": Items(wait=5), "step": training(8), "workers": 2},
    "one request at a time, two workers": {
        "data": Items(wait=4, serial=True), "step": training(6), "workers": 2,
    },
    "one request at a time, no workers": {"data": Items(wait=4, serial=True), "step": training(24)},
    "decoding, no workers": {"data": Items(work=3), "step": training(12)},
    "decoding, one worker": {"data": Items(work=3), "step": training(10), "workers": 1},
    "decoding, all cores busy": {"data": Items(work=4), "step": training(4), "workers": 2},
    "storage and decoding": {"data": Items(wait=3, work=1), "step": training(8), "workers": 1},
    "slow collate": {"data": Items(work=0.2), "step": training(4), "workers": 2, "collate": slow_collate},
    "late batches": {"data": Items(wait=2, late=14), "step": training(14), "workers": 2, "prefetch": 1},
    "a cache that fills": {"data": Cached(400, 6), "step": training(12), "persistent": False, "passes": True},
    "large batches of floats": {"data": Items(shape=IMAGE), "batch": 48, "step": training(2), "workers": 2},
    "large batches of bytes": {
        "data": Items(shape=IMAGE, dtype=torch.uint8), "batch": 128, "step": training(2), "workers": 2,
    },
    "many small tensors": {"data": Parts(), "batch": 16, "step": training(4), "workers": 2},
    "augmentation in the loop": {"data": Items(wait=0.5), "step": training(8), "workers": 2, "within": 15},
    "a packer in the loop": {"data": Items(wait=0.5), "step": training(8), "workers": 2, "around": packer},
    "a thread between, hidden": {
        "data": Items(wait=1), "step": training(14), "workers": 1, "around": Background,
    },
    "a thread between, slow": {
        "data": Items(wait=4), "step": training(8), "workers": 1, "around": Background,
    },
    "threads under one lock": {"data": Threads(work=2), "step": training(8)},
    # The hand-over takes 2 to 3 ms, which is more than a twentieth of a shorter step.
    "a slow step": {"data": Items(work=0.2), "step": training(5, work=80), "workers": 1},
    "row groups": {"data": RowGroups(once=False), "batch": 32, "step": training(10), "workers": 1},
    "tiny items": {"data": Tiny(), "batch": 4096, "step": training(4), "workers": 1},
    "short passes": {"data": Short(wait=0.5), "step": training(6), "workers": 2, "passes": True},
}  # fmt: skip
CURED = {
    "large batches of floats": {"data": Items(shape=IMAGE, dtype=torch.uint8)},
    "many small tensors": {"collate": packed},
    "augmentation in the loop": {"data": Moved(wait=0.5), "within": 0},
    "a packer in the loop": {"data": Moved(wait=0.5), "around": iter},
    "row groups": {"data": RowGroups(once=True)},
    "tiny items": {"data": Together(), "collate": as_they_are},
    "slow collate": {"collate": default_collate},
}


class Job:
    """A planted job with its settings."""

    def __init__(self, workers=0, data=None, step=None, batch=8, within=0, around=iter, **settings):
        prefetch, persistent = settings.get("prefetch"), settings.get("persistent", False)
        more = {"prefetch_factor": prefetch, "persistent_workers": persistent} if workers else {}
        collate = settings.get("collate")
        self.loader = DataLoader(data, batch, num_workers=workers, collate_fn=collate, **more)
        self.around, self.step, self.within = around, step, within
        self.passes = settings.get("passes", False)
        # With workers, what was prepared while they started does not count.
        self.skip = 0 if self.passes else 3 * workers * (prefetch or 2) + 2

    def train(self, seconds):
        """Train for so long; return the batches a second."""
        begun, count, counted = time.perf_counter(), 0, 0
        end = begun + seconds
        while time.perf_counter() < end:
            for batch in self.around(self.loader):
                if self.within:
                    compute(self.within)
                self.step(batch)
                count += 1
                if count == self.skip:
                    begun, counted = time.perf_counter(), count
                over = time.perf_counter() > end and count > counted
                if over and (not self.passes or count % len(self.loader) == 0):
                    return (count - counted) / (time.perf_counter() - begun)
        return (count - counted) / (time.perf_counter() - begun)


def main():
    """Run one job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--change", nargs="*", default=[], help="settings, such as workers=4 or cured=1")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    known = JOBS[asked.job]
    changes = {name: int(value) for name, value in (each.split("=") for each in asked.change)}
    changed = known | (CURED[asked.job] if changes.pop("cured", 0) else {}) | changes
    if not asked.turns:
        Job(**known).train(asked.seconds)
        return
    rates = [
        [Job(**settings).train(asked.seconds) for settings in (known, changed)] for _ in range(asked.turns)
    ]
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
