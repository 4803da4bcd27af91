"""The doctor's cases: jobs whose times are known, and what has to be said of each (cases.toml)."""

from dataclasses import replace
from typing import ClassVar

import pytest

from doctor.tests.known_jobs import TABLE, found, job_of
from starvelab.errors import InputError
from starvelab.units import Q_
from starvelab_doctor import advise
from starvelab_doctor.finding.lines import DATASET, LOOP, JobLines, LineShare
from starvelab_doctor.judging import causes, model
from starvelab_doctor.judging.known_calls import known_call
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.judging.report import own_batches
from starvelab_doctor.watching.recorder import Recorder

CASES = {case["name"]: case for case in TABLE["case"]}
FIELDS = {
    "name", "job", "found", "cores", "verdict", "first", "last", "value", "gain", "told", "names", "absent",
    "says", "state", "step",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case(case):
    assert case.keys() <= FIELDS
    job = job_of(case)
    remedies = remedies_of(job, cores=case.get("cores", 8))
    names = [remedy.name for remedy in remedies]
    first = next(iter(remedies), None)
    assert job.verdict == case.get("verdict", job.verdict)
    if "names" in case:
        assert {*case["names"]} <= {*names}
        assert bool(names) == bool(case["names"])
    assert not {*case.get("absent", ())} & {*names}
    if "first" in case:
        assert first.name == case["first"]
    if "last" in case:
        assert names[-1] == case["last"]
    if "value" in case:
        assert first.value == case["value"]
    if "gain" in case:
        low, high = case["gain"]
        assert low <= first.gain.likely <= high
    if "told" in case:
        assert (first.told is not None) == case["told"]
        assert (" times the throughput" in first.text) == case["told"]
        assert ("Only a trial can tell" in first.text) == (not case["told"])
    for part in case.get("says", ()):
        assert part in first.text
    assert case.get("state", "") in job.state
    assert case.get("step", "") in job.summary
    for remedy in remedies:
        assert remedy.gain is None or remedy.gain.low <= remedy.gain.likely <= remedy.gain.high


def test_the_table_has_each_name_once():
    assert len(CASES) == len(TABLE["case"])


@pytest.mark.parametrize(("workers", "shown"), [(1, 4), (2, 4), (6, 6)])
def test_two_hardware_threads_of_a_core_are_promised_as_little_more_than_one(monkeypatch, workers, shown):
    # Four cores with two threads each. As many as compute at once already have one.
    monkeypatch.setattr(model, "usable_cores", lambda physical=False: 4 if physical else 8)
    busy = {"items": 0.1 * workers, "collate": 0.0, "unpacking": 0.0}
    eight = advise(found(workers=workers, wait=0.09, step=0.01, cpu=1.0, **busy)).options[8].gain
    assert workers * eight.likely == pytest.approx(shown, rel=0.02)
    assert workers * eight.high == pytest.approx(8, rel=0.15)


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_a_change_of_nothing_brings_nothing(workers):
    job = model.model_of(found(workers=workers, wait=0.04, step=0.02, cpu=0.5), cores=4)
    gain = job.gain(lambda costs: costs)
    assert (gain.low, gain.likely) == (pytest.approx(1, rel=0.1), pytest.approx(1, rel=0.01))
    assert job.gain(lambda costs: costs, sure=False).low <= 1


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_advice_is_bounded_by_the_resources_behind_it(workers):
    job = found(workers=workers, wait=0.095, step=0.005, cpu=0.5, items=0.095 * max(workers, 1), collate=0.0)
    for option in advise(job, cores=64).options[workers + 1 :]:
        assert option.gain.high <= 1.1 * (option.workers / workers if workers else option.workers + 1)


@pytest.mark.parametrize(("cores", "summary"), [
    (64, "6 workers instead of 2: 1600 img/s (1600 img/s to 1600 img/s) instead of 640 img/s."),
    (2, "Keep the 2 workers: more would bring less than 5 %."),
])  # fmt: skip
def test_the_advice_says_how_many_workers_and_what_they_bring(cores, summary):
    job = found(
        workers=2, wait=0.03, step=0.02, cpu=1.0, batch_size=32, items=0.1, collate=0.0, unpacking=0.0
    )
    assert advise(job, cores=cores).summary == summary
    storage = found(workers=2, wait=0.03, step=0.02, cpu=0.0, batch_size=32)
    assert advise(storage, cores=cores).summary.endswith("A short run decides, or starvelab-doctor --try.")


@pytest.mark.parametrize(("changes", "message"), [
    ({"workers": None}, r"advise needs the number of workers, and this finding has none. Pass it: watch\("),
    ({"batches": 3}, "advise needs 8 watched batches, got 3. Watch a longer run."),
])  # fmt: skip
def test_too_little_is_known(changes, message):
    with pytest.raises(InputError, match=message):
        advise(found(**{"workers": 2, "wait": 0.1, "step": 0.1} | changes))


def test_several_ranks_are_told_no_gain():
    job = found(workers=2, wait=0.03, step=0.02, cpu=1.0, items=0.1, collate=0.0, unpacking=0.0)
    ranks = job.replace(found={0: job, 1: job})
    (first, *_), (alone, *_) = (remedies_of(finding, cores=64) for finding in (ranks, job))
    assert (first.name, first.told, alone.told is None) == ("workers", None, False)


def test_threads_of_libraries_that_share_the_cores_name_the_variables(monkeypatch):
    monkeypatch.setattr(causes, "usable_cores", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    line = LineShare("job.py:9", "image @ weights", DATASET, 0.9)
    lines = JobLines(preparing=(line,), samples=100, threads=15, queued=0.5)
    job = found(workers=4, wait=0.04, step=0.01, cpu=1.0).replace(lines=lines)
    first, *_ = remedies_of(job, cores=8)
    assert first.name == "threads"
    assert "compute at job.py:9, 90 %, in image @ weights. Let each worker" in first.text
    assert "(now OMP_NUM_THREADS=16)" in first.text
    rested = job.replace(lines=replace(lines, queued=0.0))
    assert remedies_of(rested, cores=8)[0].name != "threads"
    monkeypatch.setattr(causes, "usable_cores", lambda: 64)
    assert remedies_of(job, cores=8)[0].name != "threads"


def test_the_gain_is_that_of_the_whole_job_with_its_long_steps():
    recorder = Recorder(batch_size=8, workers=0)
    # Of 21 batches of 50 ms the last takes 1 s more: as much as all others.
    steps = [0.03 + 1.0 * (number % 20 == 19) for number in range(200)]
    recorder.replay(None, [0.02] * 200, steps)
    recorder.use.add(0.0, 1.0)
    finding = recorder.finding()
    assert finding.interrupted_share == pytest.approx(1.05 / (19 * 0.05 + 1.05))
    plain, *_ = remedies_of(finding.replace(interrupted=Q_("0 s")), cores=2)
    for loops in (1.0, 0.4):  # and of the time of all its loops
        share = 1 - loops * (1 - finding.interrupted_share)
        first, *_ = remedies_of(finding.replace(loop_share=loops), cores=2)
        assert first.gain.likely == pytest.approx(1 / ((1 - share) / plain.gain.likely + share))
        assert "times the throughput of the whole job (" in first.text


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("gzip.GzipFile.seek", "seek"), ("torch.stack", "collate"), ("match.group", "tokenize"),
        ("zipfile.ZipFile.__init__", "reopen"),
        ("tarfile.TarFile.open", "reopen"),
        ("copy.deepcopy", "deep copy"), ("logging.Logger.info", "log"), ("subprocess.run", "process"),
        ("index in self.chosen", "search"), ("self.names.index", "search"), ("json.loads", "parse"),
        ("ImageFile.ImageFile.load", "decode"), ("gzip.GzipFile.read", "decompress"),
        ("Image.Image.convert", "decode"), ("Image.Image.resize", "resize"), ("cv2.resize", "resize"),
        ("zipfile.ZipFile.read", "decompress"), ("self.table.iloc", "data frame"), ("file.read", "read"),
        ("_npyio_impl.NpzFile.__getitem__", "unpack"), ("found.fetchone", "query"),
        ("self.database.execute", "query"), ("synchronize.SemLock.__enter__", "lock"),
        ("managers.BaseProxy._callmethod", "manager"), ("torch.utils.data.DataLoader", "loader"),
        ("dataloader._BaseDataLoaderIter.__next__", "loader"), ("self.lock.acquire", "lock"),
        ("clock.sleep", None),
        ("collate.collate", "joined"), ("torch.tensor", "numbers"),
        ("image @ self.weights", None), ("time.sleep", "sleep"), ("zlib.compress", None), ("", None),
    ],
)  # fmt: skip
def test_a_call_is_known_by_its_name(call, name):
    row = known_call(call)
    assert (row.name if row else None) == name


class TestLines:
    reads: ClassVar = LineShare("train.py:9", "np.memmap", LOOP, 0.2)
    copies: ClassVar = LineShare("train.py:12", "x.to", LOOP, 0.3)
    logs: ClassVar = LineShare("train.py:14", "print", LOOP, 0.2)

    def test_those_of_a_loop_without_a_loader_are_named_by_what_they_do(self):
        said = own_batches([self.copies, self.reads, self.logs])
        assert "reads, copies or prepares in 50 % of the time: train.py:12, 30 %, in x.to (copies)" in said
        assert "; train.py:9, 20 %, in np.memmap (reads)" in said
        assert "print" not in said
        # nanoGPT's train.py: to draw a batch takes next to nothing, and to run longer changes nothing.
        fed = own_batches([self.logs, LineShare("train.py:125", "torch.stack", LOOP, 0.02)])
        assert "prepares in 2 % of the time between the changes of the weights, so it is not the" in fed
        assert "longer" not in fed
        assert "nothing was seen to change weights twice" in own_batches([])

    def test_they_are_said_only_where_enough_was_seen(self):
        line = LineShare("train.py:14", "gzip.GzipFile.read", DATASET, 0.71)
        seen = JobLines(preparing=(line,), samples=100, loop=(replace(self.copies, call=""),))
        assert seen.statements == (
            "Lines that prepare: train.py:14, 71 %, in gzip.GzipFile.read (the dataset).",
            "Lines of the loop: train.py:12, 30 % (the loop).",
        )
        assert JobLines(preparing=(line,), samples=9).statements == ()
        assert JobLines(reason="none of them wrote a sample").statements == (
            "The lines of the workers are not known: none of them wrote a sample.",
        )
