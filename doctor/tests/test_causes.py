"""Causes that samples show: each rules out the remedies that it makes wrong, and names the line."""

from dataclasses import replace

import pytest

from doctor.tests.test_advice import found
from starvelab.units import Q_
from starvelab_doctor.finding.lines import COLLATE, DATASET, LOOP, SAMPLER, START, JobLines, LineShare
from starvelab_doctor.judging import causes
from starvelab_doctor.judging.known_calls import known_call
from starvelab_doctor.judging.own_batches import own_batches
from starvelab_doctor.judging.remedies import remedies_of

# Of 50 ms, the loop waits 40.
STARVED = {"workers": 4, "wait": 0.04, "step": 0.01, "cpu": 1.0}


def job(*lines, of=None, **fields):
    """A job with workers, and what the sampler saw of them."""
    shares = tuple(LineShare(*line) for line in lines)
    return found(**(of or STARVED)).replace(lines=JobLines(preparing=shares, samples=100, **fields))


def first(finding):
    return remedies_of(finding, cores=8)[0]


def test_workers_without_shards_come_first_and_no_number_of_workers_beside_them():
    idle = job(("job.py:1", "read", DATASET, 1.0), working=(0.9, 0.0, 0.01, 0.0))
    assert first(idle).name != "shards"  # a map-style dataset has no shards
    stream = idle.replace(stream=True)
    assert first(stream).text.startswith("3 workers of 4 prepared nothing: the dataset divides its files")
    assert first(stream).gain[2] == pytest.approx(4, rel=0.05)  # as many times the workers bring no more
    assert not {one.name for one in remedies_of(stream, cores=8)} & {"workers", "prefetch"}
    busy = stream.replace(lines=replace(stream.loader.lines, working=(0.9, 0.8, 0.9, 0.7)))
    assert first(busy).name != "shards"


def test_threads_of_libraries_that_share_the_cores_name_the_variables(monkeypatch):
    monkeypatch.setattr(causes, "usable_cores", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    crowded = job(("job.py:9", "image @ weights", DATASET, 0.9), threads=15).replace(prepare_queued=0.5)
    assert first(crowded).name == "threads"
    assert "compute at job.py:9, in image @ weights. Let each worker" in first(crowded).text
    assert "(now OMP_NUM_THREADS=16)" in first(crowded).text
    monkeypatch.setattr(causes, "usable_cores", lambda: 64)
    assert first(crowded).name != "threads"


@pytest.mark.parametrize(
    ("line", "name", "part"),
    [
        (("job.py:7", "time.sleep", DATASET, 0.9), "first batch", "before it gives its first item"),
        (("job.py:8", "sorted", SAMPLER, 0.9), "sampler", "draw or sort the items once"),
        (("job.py:9", "", START, 0.9), "persistent", "keep the workers"),
        (("job.py:7", "time.sleep", DATASET, 0.3), "persistent", "keep the workers"),
    ],
)
def test_the_first_batch_of_a_pass_names_where_it_waits(line, name, part):
    waits = tuple(Q_(seconds, "s") for seconds in (1.5, 1.5, 1.5))
    slow = job(("job.py:7", "time.sleep", DATASET, 0.9), first=(LineShare(*line),))
    slow = slow.replace(stream=True, first_waits=waits, persists=False,
    )  # fmt: skip
    (remedy,) = [
        one for one in remedies_of(slow, cores=8) if one.name in ("first batch", "sampler", "persistent")
    ]
    assert (remedy.name, part in remedy.text) == (name, True)


def test_the_garbage_collector_is_named_where_it_is_long():
    assert "takes 30 % of the time of the workers" in first(job(pauses=0.3)).text
    assert "gc.freeze() before the loop" in first(job(pauses=0.1, loop_pauses=0.2)).text
    assert first(job(pauses=0.1)).name != "collector"


def test_workers_that_send_nothing_are_a_finding_of_their_own():
    waits = LineShare("job.py:3", "LOCK.acquire", DATASET, 1.0)
    hung = job(stuck=(waits,)).replace(batches=0, counted=0)
    (only,) = remedies_of(hung)
    assert only.text.startswith(
        "All workers live and none sends a batch: they are at job.py:3, 100 %, in LOCK"
    )
    assert "No worker sent a batch" in hung.state


def test_waste_comes_before_more_workers_and_work_after_them():
    waste = job(("job.py:4", "copy.deepcopy", DATASET, 0.6), ("job.py:5", "json.loads", DATASET, 0.3))
    assert first(waste).name == "deep copy"
    assert first(waste).text.startswith(
        "job.py:4, in the dataset, takes 60 % of the time in which batches are"
    )
    work = job(("job.py:5", "json.loads", COLLATE, 0.9))
    names = [one.name for one in remedies_of(work, cores=8)]
    assert (names[0], names[-1]) == ("workers", "parse")
    unknown = job(("job.py:5", "mine.compute", DATASET, 0.9))
    assert remedies_of(unknown, cores=8)[-1].text.endswith("or let faster code do it.")
    assert not [
        one
        for one in remedies_of(job(("job.py:5", "json.loads", DATASET, 0.1)), cores=8)
        if one.name == "parse"
    ]


def test_work_of_two_lines_may_be_the_same():
    twice = job(("job.py:4", "Image.open", DATASET, 0.5), ("job.py:9", "Image.Image.convert", DATASET, 0.4))
    last = remedies_of(twice, cores=8)[-1]  # an item may have an image and a mask
    assert last.text.startswith(
        "The item is decoded at 2 lines of the dataset: job.py:4, 50 %, in Image.open and job.py:9, 40 %, in "
    )


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("gzip.GzipFile.seek", "seek"), ("zipfile.ZipFile.__init__", "reopen"),
        ("tarfile.TarFile.open", "reopen"),
        ("copy.deepcopy", "deep copy"), ("logging.Logger.info", "log"), ("subprocess.run", "process"),
        ("index in self.chosen", "search"), ("self.names.index", "search"), ("json.loads", "parse"),
        ("ImageFile.ImageFile.load", "decode"), ("gzip.GzipFile.read", "decompress"),
        ("zipfile.ZipFile.read", "decompress"), ("self.table.iloc", "data frame"), ("file.read", "read"),
        ("collate.collate", "small pieces"), ("torch.tensor", "numbers"),
        ("image @ self.weights", None), ("time.sleep", None), ("", None),
    ],
)  # fmt: skip
def test_a_call_is_known_by_its_name(call, name):
    row = known_call(call)
    assert (row.name if row else None) == name


def test_the_lines_of_a_loop_without_a_loader_are_named_by_what_they_do():
    reads = LineShare("train.py:9", "np.memmap", LOOP, 0.2)
    copies, logs = LineShare("train.py:12", "x.to", LOOP, 0.3), LineShare("train.py:14", "print", LOOP, 0.2)
    said = own_batches([copies, reads, logs])
    assert "reads, copies or prepares in 50 % of the time: train.py:12, 30 %, in x.to (copies)" in said
    assert "; train.py:9, 20 %, in np.memmap (reads)" in said
    assert "print" not in said
    assert "it trains in nearly all of its time" in own_batches([logs])
    assert "nothing was seen to change weights twice" in own_batches([])


def test_lines_are_said_only_where_enough_was_seen():
    line = LineShare("train.py:14", "gzip.GzipFile.read", DATASET, 0.71)
    seen = JobLines(preparing=(line,), samples=100, loop=(LineShare("train.py:40", "", LOOP, 0.3),))
    assert seen.summary == (
        "Of the time in which batches are prepared, most goes to train.py:14, 71 %, in gzip.GzipFile.read "
        "(the dataset). Beside waiting, the loop's own thread is mostly at train.py:40, 30 % (the loop)."
    )
    assert JobLines(preparing=(line,), samples=9).summary == ""
    assert JobLines(reason="none of them wrote a sample").summary == (
        "The lines of the workers are not known: none of them wrote a sample."
    )
