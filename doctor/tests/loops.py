"""A clock that only moves when a test says so, and a loader that takes its time by it."""


class Clock:
    """A clock that only moves when a test says so: no test depends on how busy this machine is."""

    def __init__(self):
        self.now, self.computed = 100.0, 0.0  # who sleeps computes nothing

    def sleep(self, seconds):
        self.now += seconds

    def perf_counter(self):
        return self.now

    def thread_time(self):
        return self.computed

    process_time = monotonic = perf_counter


class Loader:
    """A loader that takes a while to start, to deliver its first batch, and to deliver each other one."""

    def __init__(self, clock, wait, count=40, *, start=1.0, first=2.0):
        self.clock, self.wait, self.count, self.start, self.first = clock, wait, count, start, first

    def __len__(self):
        return self.count

    def __iter__(self):
        self.clock.sleep(self.start)
        return self.batches()

    def batches(self):
        for number in range(self.count):
            self.clock.sleep(self.wait if number else self.first)
            yield number


class Iterating(Loader):
    """A loader that is its own iterator, as those of PyTorch are, which know of workers and queues."""

    def batches(self):
        return self

    def __next__(self):
        self.count -= 1
        if not self.count:
            raise StopIteration
        self.clock.sleep(self.wait)
        return self.count


class Slow:
    """A dataset of numbers, each of which takes its time of the clock."""

    def __init__(self, clock, seconds, count=40):
        self.clock, self.seconds, self.count = clock, seconds, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.clock.sleep(self.seconds)
        return index


def train(clock, loader, step):
    for _ in loader:
        clock.sleep(step)
