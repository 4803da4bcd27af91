"""The lines of a loop's own thread: which of them train, and which prepare batches."""

import sys
import time

import pytest

from starvelab_doctor.finding.lines import COLLATE, DATASET, GENERATOR, LOOP, JobLines, LineShare
from starvelab_doctor.watching.job_lines import (
    HANDED,
    TRAINING,
    WAITING,
    JobSamples,
    loop_phase,
    shares,
    with_freed,
)
from starvelab_doctor.watching.places import CodeLine, stack_of
from starvelab_doctor.watching.stack_samples import WAITS, Sample, StackSampler
from starvelab_doctor.watching.worker_sampler import phase_of
from tests.measure.patience import patiently


def here():
    return loop_phase(stack_of(sys._getframe()))[0]


def training_step():
    return here()


def packed():
    yield here()


def test_a_step_trains_and_a_generator_packs():
    assert (here(), training_step(), next(packed())) == (LOOP, TRAINING, GENERATOR)


@pytest.mark.parametrize(("file", "name", "phase"), [
    ("torch/nn/modules/linear.py", "call", TRAINING),
    ("torch/optim/adam.py", "apply", TRAINING),
    ("job.py", "my_loss", TRAINING),
    ("job.py", "augment", LOOP),
    ("/x/site-packages/lightning/pytorch/loops/fit_loop.py", "advance", TRAINING),  # below trainer.fit()
    ("/x/site-packages/tqdm/std.py", "update", LOOP),
    (f"lib{WAITS[0]}", "wait", HANDED),
    ("/x/starvelab_doctor/watching/hooks.py", "timed", WAITING),
])  # fmt: skip
def test_what_pytorch_trains_is_no_input_work(file, name, phase):
    code = compile("pass", file, "exec").replace(co_name=name)
    main = compile("pass", "job.py", "exec")
    assert loop_phase(((main, 0), (code, 0)))[0] == phase


@pytest.mark.parametrize("between", ["torch/utils/data/dataset.py", "starvelab_doctor/watching/probe.py"])
def test_what_stands_between_a_fetcher_and_the_data_is_not_the_line_that_prepares(between):
    files = ("torch/utils/data/_utils/fetch.py", between, "torchvision/datasets/mnist.py")
    stack = tuple((compile("pass", file, "exec"), 0) for file in files)
    phase, below = phase_of(stack)
    assert (phase, [code.co_filename for code, _ in below]) == (DATASET, ["torchvision/datasets/mnist.py"])
    assert phase_of(stack[:2])[1] == stack[1:2]


@pytest.mark.parametrize(("call", "kind"), [
    ("time.sleep", ""), ("logging.Logger.info", ""), ("x.to", "copies"), ("np.memmap", "reads"),
    ("augment", "prepares"),
])  # fmt: skip
def test_what_copies_or_logs_is_not_moved_into_workers(call, kind):
    line = LineShare("job.py:7", call, LOOP, 0.5)
    assert line.kind == kind
    moved = JobLines(loop=(line,), loop_samples=100).loop_work
    assert moved == ((line,) if kind in ("reads", "prepares") else ())
    assert JobLines(loop=(line,), loop_samples=9).loop_work == ()


def second_of_a_loop():
    """What share of a loop is sleep, by its own clock and by its lines, and what share all its lines have."""
    job, slept = JobSamples(), 0.0
    sampler, begun = StackSampler(job.see), time.perf_counter()
    sampler.start()
    while (now := time.perf_counter()) < begun + 1:
        while time.perf_counter() < now + 0.03:
            pass
        now = time.perf_counter()
        time.sleep(0.02)
        slept += time.perf_counter() - now
    sampler.stop()
    job.folder.close()
    passed = time.perf_counter() - begun
    lines = shares(job.main, passed)
    sleeps = sum(line.share for line in lines if line.call == "time.sleep")
    return slept / passed, sleeps, sum(line.share for line in lines)


def test_the_line_at_which_the_loop_computes_is_named_with_its_share():
    def is_right(found):
        return found[1:] == (pytest.approx(found[0], abs=0.25), pytest.approx(1, abs=0.15))

    found = patiently(second_of_a_loop, is_right)
    assert is_right(found), found


def test_what_an_item_frees_counts_at_its_lines():
    # A file that is mapped for each item is unmapped at the fetcher's line: half of the time had none.
    maps, slices = (CodeLine("job.py", number, "") for number in (12, 13))
    seen = [Sample(0, 3, DATASET, maps), Sample(1, 1, DATASET, slices), Sample(2, 4, DATASET, None),
            Sample(3, 2, COLLATE, maps)]  # fmt: skip
    lines = shares(with_freed(seen), 10)
    assert [(line.place, line.phase, line.share) for line in lines] == [
        ("job.py:12", DATASET, 0.6), ("job.py:12", COLLATE, 0.2), ("job.py:13", DATASET, 0.2),
    ]  # fmt: skip
    assert with_freed(seen[2:]) == seen[2:]  # no line of a dataset in C is known
