"""Samples of a stack say at which line a thread is, also while it keeps Python's lock."""

import sys
from collections import Counter

import pytest

from starvelab_doctor.watching.places import code_line_of
from starvelab_doctor.watching.stack_samples import Sample, SampleFile, StackSampler, read_samples

from .planted_lines import Job, line_numbers


def sampled(unit, seconds):
    """The true share of each line, and that of the samples."""
    job, seen = Job(unit), Counter()
    numbers = {number: name for name, number in line_numbers().items()}

    def see(moment, seconds, stack):
        # `python` runs in a function of its own file: the line that calls it counts.
        own = next((frame for frame in stack if frame[0].co_qualname == "Job.run"), None)
        place = code_line_of(stack[: stack.index(own) + 1]) if own else None
        if place is not None:
            seen[numbers.get(place.line)] += seconds

    sampler, usual = StackSampler(see, quick=True), sys.getswitchinterval()
    sampler.start()
    try:
        true = job.run(seconds)
    finally:
        sampler.stop()
        sys.setswitchinterval(usual)
    return true, {name: seen[name] / sum(seen.values()) for name in true}


@pytest.mark.parametrize("unit", [0.015])  # shorter lines: see benchmarks.sampler
def test_the_share_of_each_line_is_near_the_true_one(unit):
    for _ in range(4):  # the machine may do something else meanwhile
        true, seen = sampled(unit, 3.0)
        if max(abs(true[name] - seen[name]) for name in true) <= 0.1:
            return
    pytest.fail(f"true {true}, seen {seen}")


def test_what_is_written_is_read_back_and_a_line_that_is_being_written_is_left_out(tmp_path):
    file = SampleFile(tmp_path / "0-1-2.samples")
    file.add(1.0, 0.02, "dataset", None)
    file.flush(threads=3)
    file.add(2.0, 0.03, "collate", None)
    file.add(3.0, 0.03, "dataset", None)
    file.flush(threads=4, pauses=0.5)
    with file.path.open("a") as partly:
        partly.write('{"keys": [[')
    samples, more = read_samples(file.path)
    assert samples == [
        Sample(1.0, 0.02, "dataset", None),
        Sample(2.0, 0.03, "collate", None),
        Sample(3.0, 0.03, "dataset", None),
    ]
    assert more == {"threads": 4, "pauses": 0.5}


def test_a_file_whose_folder_is_gone_disturbs_nobody(tmp_path):
    file = SampleFile(tmp_path / "gone" / "0-1-2.samples")
    file.add(1.0, 0.02, "dataset", None)
    file.flush()
    assert not file.path.exists()
