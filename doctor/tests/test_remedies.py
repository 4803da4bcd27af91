"""Remedies: each looks at what it cures, and the one that brings most stands first."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from doctor.tests.test_advice import found
from starvelab.units import Q_
from starvelab_doctor import BatchContents, advise
from starvelab_doctor.contents import Items, contents_of, items_of
from starvelab_doctor.finding.loop_work import LoopWork
from starvelab_doctor.finding.records import Ceiling
from starvelab_doctor.finding.stages import MANY_OBJECTS
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.judging.remedy import IN_LOOP
from starvelab_doctor.judging.report import html_report, json_report, text_report
from starvelab_doctor.watching.recorder import Recorder

# Of 50 ms from batch to batch, receiving takes 30.
HANDED_OVER = {"workers": 2, "wait": 0.03, "step": 0.02, "cpu": 0.9, "ready": 2}
HANDED_OVER |= {"items": 0.01, "collate": 0.002, "unpacking": 0.03}
# Of 50 ms, the dataset takes 39.
READ = {
    "workers": 1,
    "wait": 0.04,
    "step": 0.01,
    "cpu": 1.0,
    "items": 0.049,
    "collate": 0.0,
    "unpacking": 0.0,
}


QUICK = {"items": 0.004, "collate": 0.0, "unpacking": 0.0005}  # what a worker takes, in seconds


def contents(objects=1, size="60 MB", dtype="float32"):
    return BatchContents(objects, Q_(size), dtype)


def names(finding):
    return [one.name for one in remedies_of(finding, cores=2)]


@pytest.mark.parametrize(("holds", "first", "step"), [
    (contents(), "bytes", "For that stage, try uint8 instead of float32"),
    (contents(dtype="uint8"), None,
     "For that stage, send only what the step uses: the batches are uint8 already."),
    (contents(113, "60 KB"), "packing",
     "For that stage, pack the 113 objects of a batch: each is handed over on its own."),
], ids=["floats", "bytes", "small tensors"])  # fmt: skip
def test_a_remedy_for_the_hand_over_looks_at_the_batch(holds, first, step):
    job = found(**HANDED_OVER).replace(contents=holds)
    assert names(job)[:1] == ([first] if first else [])
    assert step in job.summary
    for one in remedies_of(job, cores=2):
        assert one.gain is None or one.gain[0] <= one.gain[1] <= one.gain[2]
        assert "uint8 instead of uint8" not in one.text


def test_what_the_loop_computes_to_receive_a_batch_is_less_once_its_objects_are_packed():
    # Of 50 ms the loop computes 45, and 30 of them to receive: 15 on one core and 20 of the step are left.
    job = found(**HANDED_OVER).replace(contents=contents(113, "60 KB"), loop_cpu=0.9)
    first, *_ = remedies_of(job, cores=1)
    assert first.name == "packing"
    assert first.gain[2] > 50 / 21


def test_a_range_holds_what_is_likely_also_beside_other_programs():
    job = found(workers=2, wait=0.0005, step=0.0295, cpu=0.9, ready=3, **QUICK)
    job = job.replace(
        loop_work=(LoopWork("train.py:12", 0.5, True),), loop_cpu=0.5, others_cpu=0.5, prepare_queued=0.3
    )
    assert job.busy
    first, *_ = remedies_of(job, cores=2)
    assert (first.name, sorted(first.gain)) == ("move", list(first.gain))


def test_fewer_bytes_are_a_bound_that_what_follows_them_does_not_exceed():
    job = found(**HANDED_OVER).replace(contents=contents())
    first, *_ = remedies_of(job, cores=2)
    # If all that is received takes a quarter: 20 ms and 7.5.
    assert first.gain[1] == pytest.approx(50 / (20 + 7.5), rel=0.02)
    assert first.at_most
    assert first.gain[0] <= 1
    double = job.replace(contents=contents(dtype="float64"))
    assert remedies_of(double, cores=2)[0].gain[1] == pytest.approx(50 / (20 + 30 / 8), rel=0.02)


def test_of_two_stages_that_are_alike_both_have_their_remedy():
    # 18 ms of a batch are the dataset's, and 17 the hand-over's: a job that waits was told nothing to do.
    job = found(**HANDED_OVER | {"items": 0.036, "unpacking": 0.017})
    job = job.replace(contents=contents(), stages=replace(job.loader.stages, certain=False))
    assert {"bytes", "dataset"} <= set(names(job))


def test_a_step_may_have_waited_for_the_core_that_fewer_bytes_leave():
    # Three processes on two cores: 27 % was said of float32, and 2.7 times measured: steps got shorter.
    job = found(**HANDED_OVER).replace(contents=contents())
    crowded = job.replace(core_waits=0.3)
    first, more = remedies_of(job, cores=2)[0], remedies_of(crowded, cores=2)[0]
    assert first.gain[:2] == more.gain[:2]
    assert first.gain[2] == pytest.approx(50 / (20 + 30 / 8), rel=0.1)
    assert more.gain[2] >= 50 / (20 - 0.3 * 50 + 30 / 4)


def test_texts_are_not_packed():
    texts = contents_of((["a review"] * 64, np.zeros(64)))
    assert (texts.objects, texts.one_by_one) == (65, 0)
    job = found(**HANDED_OVER).replace(contents=texts)
    assert "packing" not in names(job)
    assert "Pack" not in job.summary


def test_packing_takes_as_many_objects_for_one():
    job = found(**HANDED_OVER).replace(contents=contents(MANY_OBJECTS, "60 KB"))
    first, *_ = remedies_of(job, cores=2)
    assert (first.name, first.at_most) == ("packing", True)
    assert first.gain[1] == pytest.approx(50 / (20 + 30 / MANY_OBJECTS), rel=0.02)


@pytest.mark.parametrize(("items", "first", "said"), [
    (Items(32, False, 1024, 64.0), "views", "Each item is a view of 64 times its bytes"),
    (
        Items(4096, False, 32, 1.0),
        "together",
        "4096 items of 12 microseconds are fetched one by one for each batch: give the dataset a method "
        "__getitems__",
    ),
    (Items(4096, True, 32, 1.0), "workers", "2 workers instead of 1"),
    (Items(32, False, 1024, 1.0), "workers", "2 workers instead of 1"),
], ids=["views", "tiny", "together already", "ordinary"])  # fmt: skip
def test_what_the_items_are_is_named(items, first, said):
    job = found(**READ)
    job = job.replace(stages=replace(job.loader.stages, items=items))
    remedy, *_ = remedies_of(job, cores=2)
    assert remedy.name == first
    assert remedy.text.startswith(said)
    if first in ("views", "together"):  # of 50 ms, the step takes 10: nothing promises less than that leaves
        assert remedy.at_most
        assert remedy.gain[0] == 1
        assert remedy.gain[2] >= 5


@pytest.mark.programs
def test_items_are_looked_at_for_what_they_are_views_of(tmp_path):
    torch = pytest.importorskip("torch")
    groups = [torch.ones(64, 256) for _ in range(8)]
    assert items_of([group[3] for group in groups], False) == Items(8, False, 1024, 64.0)
    # Items of one array lie in memory, whatever else they wait for.
    assert items_of(list(groups[0][:8]), False) == Items(8, False, 1024, 1.0)
    assert items_of([(row, 1) for row in np.ones((64, 256))], False).spread == 1.0
    assert items_of([{"x": groups[0][3].clone(), "y": 1}], True) == Items(1, True, 1024, 1.0)
    np.save(tmp_path / "file.npy", np.ones((64, 100), np.float32))
    mapped = np.load(tmp_path / "file.npy", mmap_mode="r")
    assert items_of([(mapped[:, 3], 0)], False).spread == pytest.approx(99, rel=0.01)  # one column
    assert items_of([mapped[3]], False).spread == 1.0  # one row
    assert items_of([np.ones((8, 4))[2]], False).spread == 8.0
    assert items_of([7, 8], False) == Items(2, False, 0, 1.0)
    assert items_of("no list", False) is None


def test_work_of_the_loops_own_thread_is_input_work():
    job = found(workers=2, wait=0.0005, step=0.0295, cpu=0.1, ready=3, **QUICK)
    assert job.verdict == "not input-bound"
    packed = job.replace(loop_work=(LoopWork("train.py:12", 0.5, True),), loop_cpu=0.5)
    assert packed.verdict == "highly input-bound"
    assert "and prepares batches itself in 50.0 %, mostly at train.py:12" in packed.summary
    first, *_ = remedies_of(packed, cores=2)
    assert (first.name, first.at_most) == ("move", False)
    # 15 of 30 ms go into two workers.
    assert first.gain[1] == pytest.approx(30 / 15, rel=0.1)
    assert first.text.startswith(
        "The loop's own thread computes at train.py:12 in 50.0 % of the time: move it into "
    )


def test_work_that_moves_saves_no_more_than_it_is():
    # The loop computes in 14 % of its time, and waits for its only worker in half of it.
    job = found(workers=1, wait=0.025, step=0.024, cpu=0.9, items=0.049, collate=0.0, unpacking=0.0005)
    job = job.replace(loop_work=(LoopWork("train.py:20", 0.14, False),), others_cpu=0.3, prepare_queued=0.4)
    moves = [one for one in remedies_of(job, cores=2) if one.name == "move"]
    assert all(one.gain[1] <= 1 / 0.86 + 1e-9 and one.gain[2] <= 1 / (1 - 1.2 * 0.14) + 1e-9 for one in moves)
    assert names(job)[0] == "workers"
    # Where the loop lacks a core, workers beside it get some of their own: four times as much was measured.
    lacks = remedies_of(job.replace(core_waits=0.8), cores=2)
    assert all(one.gain is None or one.gain[2] > 1.3 for one in lacks if one.name == "move")


def test_what_only_a_trial_can_tell_is_said_without_a_number():
    job = found(workers=2, wait=0.0005, step=0.0295, cpu=0.1, ready=3, **QUICK)
    job = job.replace(loop_work=(LoopWork("train.py:12", 0.3, False),), loop_cpu=0.5)
    plain, *_ = remedies_of(job, cores=2)
    assert " times the throughput" in plain.text
    first, *_ = remedies_of(job.replace(core_waits=0.9, others_cpu=0.4, prepare_queued=0.4), cores=2)
    assert (first.name, first.gain) == ("move", None)
    assert "1/s" not in first.text
    assert first.text.endswith(
        "into the dataset or collate_fn, with 2 workers. Only a trial can tell what that brings."
    )


def test_the_range_of_work_that_moves_holds_what_the_loop_may_save():
    # Of 24 ms the loop computes 15; two workers wait 4 ms for a batch. The planted job gained 2.35.
    job = found(
        workers=2, wait=0.0009, step=0.0234, cpu=0.1, ready=3, items=0.0046, collate=0.0, unpacking=0.001
    )
    job = job.replace(loop_work=(LoopWork("train.py:12", 0.625, True),), loop_cpu=0.63)
    low, likely, high = next(one for one in remedies_of(job, cores=2) if one.name == "move").gain
    assert low < likely < 24.3 / 9.3 < high
    # A fifth more of the line is as much less of the loop, but no more for the workers than they get.
    assert high < 24.3 / 5.5


def test_what_the_loop_computes_in_no_generator_may_be_its_training():
    job = found(workers=2, wait=0.002, step=0.028, cpu=0.1, ready=3, **QUICK)
    job = job.replace(loop_work=(LoopWork("train.py:12", 0.5, False),), loop_cpu=0.5)
    assert job.verdict == "moderately input-bound"
    first, *_ = remedies_of(job, cores=2)
    assert (first.name, first.at_most) == ("move", True)
    assert "if that prepares the batch, move it into" in first.text


def test_nothing_is_advised_for_a_job_that_does_not_wait_or_of_which_too_little_is_known():
    for job in (found(workers=2, wait=0.0001, step=0.05), found(workers=2, wait=0.05, step=0.05, batches=3)):
        assert remedies_of(job) == ()
        assert text_report([("list at train.py:2", job)]).endswith(f"\n  {job.next_step}")


def test_threads_that_keep_a_core_busy_want_to_be_processes():
    job = found(workers=4, wait=0.09, step=0.01).replace(processes=False, loop_cpu=0.99)
    first, *_ = remedies_of(job, cores=16)
    assert (first.name, first.gain) == ("processes", None)


def test_a_report_advises_one_thing_of_a_stage_and_says_it_once():
    slow = found(workers=2, wait=0.03, step=0.02, items=0.01, collate=0.0, unpacking=0.0, sampler=0.03)
    assert slow.loader.stages.largest == "sampler"
    first, *_ = remedies_of(slow, cores=2)
    advised = "draw the indices of a pass at once, or before it."
    assert advised in first.text
    assert slow.next_step == f"For that stage, {advised}"
    read = found(**READ)
    assert "For that stage, try prepare offline: do it once" in read.summary
    for job in (slow, read):
        page = html_report([("list at train.py:2", job)], "train.py")
        assert f"<caption>{job.state}</caption>" in page
        assert all(page.count(one.text) == 1 for one in remedies_of(job))


def test_the_report_as_json_has_its_version_and_each_remedy():
    job = found(**HANDED_OVER).replace(contents=contents())
    known = json.loads(json_report([("list at train.py:2", job)]))
    assert known["version"] == 1
    (loop,) = known["loops"]
    assert (loop["loop"], loop["verdict"], loop["workers"]) == ("list at train.py:2", "highly input-bound", 2)
    assert loop["waits"] == pytest.approx(0.6)
    assert [one["name"] for one in loop["remedies"]] == names(job)
    assert len(loop["remedies"][0]["gain"]) == 3


def test_where_more_workers_may_bring_nothing_twice_as_many_decide():
    # Two workers wait for storage, which may serve one of them at a time.
    stages = {"items": 0.1, "collate": 0.0, "unpacking": 0.0}
    job = found(workers=2, wait=0.045, step=0.005, cpu=0.0, batch_size=8, **stages)
    advice = advise(job, cores=64)
    assert advice.best.workers > 8
    first, *_ = remedies_of(job, cores=64)
    assert (first.name, first.value, first.at_most) == ("workers", 4, True)
    low, likely, high = first.gain
    assert 0.95 < low < 1  # what was measured holds at worst
    assert likely == pytest.approx(2)
    assert high < 2.2
    assert first.text.startswith(
        "4 workers instead of 2. That brings 2 times the throughput at most, and 0.96 at worst. Where they "
        f"bring that, {advice.best.workers} bring "
    )
    decides = "serves 4 at once: a short run with 4 workers decides, or starvelab-doctor --try."
    assert first.text.endswith(decides)


def test_where_workers_bring_something_in_any_case_all_of_them_are_advised():
    job = found(workers=0, wait=0.03, step=0.03, cpu=0.0)
    first, *_ = remedies_of(job, cores=8)
    assert first.value == advise(job, cores=8).best.workers


def test_small_batches_are_better_not_handed_over():
    # Of 1 ms, receiving takes 0.8; both workers together prepare a batch in 0.1 ms.
    tiny = {"workers": 2, "wait": 0.0008, "step": 0.0002, "cpu": 0.1, "ready": 2}
    tiny |= {"items": 0.00008, "collate": 0.00002, "unpacking": 0.0008}
    job = found(**tiny).replace(contents=contents(3, "56 B"))
    first, *_ = remedies_of(job, cores=2)
    assert (first.name, first.value) == ("workers", 0)
    assert first.gain[1] == pytest.approx(1 / 0.3, rel=0.01)
    assert first.text.startswith(
        "num_workers=0, or larger batches: to hand so small a batch over takes longer"
    )
    assert first.gain[0] < first.gain[1] < first.gain[2]
    # Where the loop lacks a core, its steps say nothing: 5.8 times as much was measured, and 2 predicted.
    first, *_ = remedies_of(job.replace(core_waits=0.6), cores=2)
    assert (first.name, first.value, first.gain) == ("workers", 0, None)
    assert first.text.endswith("than to prepare it. Only a trial can tell what that brings.")
    assert "For that stage, hand over less often, in larger batches" in job.summary
    for other in (contents(), contents(113, "60 KB")):
        assert ("workers", 0) not in [
            (one.name, one.value) for one in remedies_of(job.replace(contents=other))
        ]


def test_where_a_batch_is_ready_its_dataset_is_not_what_the_loop_waits_for():
    # A thread of the process computed and held Python's lock: to start more workers was advised.
    slow = {"items": 0.02, "collate": 0.001, "unpacking": 0.006}
    job = found(workers=1, wait=0.007, step=0.023, cpu=0.1, ready=1.5, **slow)
    (remedy,) = remedies_of(job, cores=2)
    assert remedy.text == (
        "A batch is ready when the loop asks, and takes 7 ms to be received: send fewer bytes or tensors, "
        "and let no other thread of this process compute, since it holds Python's lock."
    )


def test_the_gain_is_that_of_the_whole_job_with_its_long_steps():
    recorder = Recorder(batch_size=8, workers=0)
    # Of 21 batches of 50 ms the last takes 1 s more: as much as all others.
    steps = [0.03 + 1.0 * (number % 20 == 19) for number in range(200)]
    recorder.replay(None, [0.02] * 200, steps)
    recorder.use.add(0.0, 1.0)
    finding = recorder.finding()
    assert finding.interrupted_share == pytest.approx(1.05 / (19 * 0.05 + 1.05))
    first, *_ = remedies_of(finding, cores=2)
    plain, *_ = remedies_of(finding.replace(interrupted=Q_("0 s")), cores=2)
    share = finding.interrupted_share
    assert first.gain == pytest.approx([1 / ((1 - share) / each + share) for each in plain.gain])
    assert f"That brings {first.gain[1]:.2g} times the throughput of the whole job (" in first.text
    share = 1 - 0.4 * (1 - share)  # and of the time of all its loops
    first, *_ = remedies_of(finding.replace(loop_share=0.4), cores=2)
    assert first.gain == pytest.approx([1 / ((1 - share) / each + share) for each in plain.gain])
    # What is long for want of a core may end with the waits.
    crowded = finding.replace(core_waits=0.5)
    assert remedies_of(crowded, cores=2)[0].gain[2] >= plain.gain[2]


def test_no_gain_is_said_above_what_the_ladder_measured():
    job = found(workers=0, wait=0.03, step=0.03, cpu=0.0)
    without, *_ = remedies_of(job, cores=8)
    assert (without.name, without.gain[1] > 1.5) == ("workers", True)
    first, *_ = remedies_of(job.replace(ceiling=Ceiling(1.4)), cores=8)
    assert max(first.gain) == 1.4
    assert "That brings 1.4 times the throughput (1.4 to 1.4)." in first.text


def test_where_the_ladder_says_that_it_is_not_the_data_no_cure_of_the_input_is_named():
    job = found(workers=2, wait=0.03, step=0.02, cpu=0.5).replace(ceiling=Ceiling(1.03))
    assert remedies_of(job, cores=8) == ()
    assert "Not the data: without its loader the job is at most 1.03 times as fast." in job.state
    assert "look at the training step itself" in text_report([("job", job)])
    # What the loop computes itself, and what passes begin with, the ladder serves as the job does.
    moved = job.replace(loop_work=(LoopWork("train.py:12", 0.5, True),), loop_cpu=0.5)
    assert {one.name for one in remedies_of(moved, cores=8)} <= IN_LOOP


def test_what_may_make_the_job_slower_is_to_be_tried_and_not_first():
    job = found(workers=2, wait=0.09, step=0.01, cpu=0.0)
    risky = next(one for one in remedies_of(job, cores=8) if one.name == "workers")
    assert risky.gain[0] < 1
    assert "\n  Try: " in text_report([("job", job)])
    certain = found(workers=0, wait=0.03, step=0.03, cpu=0.0)
    assert "\n  First: " in text_report([("certain", certain)])
