"""Four lines that take a known share of the time each, with and without Python's lock."""

import json
import time
import zlib
from collections import Counter

from starvelab_doctor.watching.places import code_line_of
from starvelab_doctor.watching.stack_samples import StackSampler

KEPT = {"python": "in Python", "parse": "in one call of C", "search": "by a search of a list"}
FREE = {"sleep": "the lock is free, and so is the core", "compress": "the lock is free"}


def times_of(call, goal):
    """How many times as much to do takes so many seconds."""
    begun = time.perf_counter()
    call()
    return max(goal / (time.perf_counter() - begun), 1.0)


def python(count):
    total = 0
    for number in range(count):
        total += number
    return total


class Job:
    """Takes some milliseconds in each of its lines, and times them."""

    def __init__(self, unit):
        self.unit = unit
        python(1000)
        self.count = int(1e5 * times_of(lambda: python(100_000), unit))
        numbers = int(1e5 * times_of(lambda: json.loads("[" + "1," * 100_000 + "1]"), unit))
        self.text = "[" + "1," * numbers + "1]"
        items = list(range(500_000))
        self.items = list(range(int(5e5 * times_of(lambda: -1 in items, unit))))
        words = int(2e4 * times_of(lambda: zlib.compress(b"starvation " * 20_000, 6), unit))
        self.bytes = b"starvation " * words

    def run(self, seconds):
        """Run for so long; return the share of each line, by its number."""
        clock = time.perf_counter
        end, spent = clock() + seconds, dict.fromkeys((*KEPT, *FREE), 0.0)
        while (begun := clock()) < end:
            python(self.count)  # python
            done = clock()
            spent["python"], begun = spent["python"] + done - begun, done
            json.loads(self.text)  # parse
            done = clock()
            spent["parse"], begun = spent["parse"] + done - begun, done
            found = -1 in self.items  # search
            done = clock()
            spent["search"], begun = spent["search"] + done - begun, done
            time.sleep(self.unit)  # sleep
            done = clock()
            spent["sleep"], begun = spent["sleep"] + done - begun, done
            zlib.compress(self.bytes, 6)  # compress
            spent["compress"] += clock() - begun
        assert not found
        return {name: taken / sum(spent.values()) for name, taken in spent.items()}


def line_numbers():
    """The number of the line of each name in this file."""
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    names = (*KEPT, *FREE)
    return {name: next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {name}")) for name in names}


def sampled(unit, seconds):
    """The true share of each line, and that of the samples; a line takes `unit` seconds."""
    job, seen = Job(unit), Counter()
    names = {number: name for name, number in line_numbers().items()}

    def see(_, passed, stack):
        # `python` runs in a function of its own file: the line that calls it counts.
        run = next((number for number, (code, _) in enumerate(stack) if code.co_qualname == "Job.run"), None)
        place = code_line_of(stack[: run + 1]) if run is not None else None
        if place is not None:
            seen[names.get(place.line)] += passed

    sampler = StackSampler(see)
    sampler.start()
    try:
        true = job.run(seconds)
    finally:
        sampler.stop()
    return true, {name: seen[name] / max(sum(seen.values()), 1e-9) for name in true}
