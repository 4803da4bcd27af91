"""`starvelab-doctor compare`: a run is not called different from itself, and a loss of 10 % is found."""

from __future__ import annotations

import json

import numpy as np
import pytest

from starvelab.commands import main as starvelab
from starvelab.errors import InputError
from starvelab.measure.verdict import UNKNOWN
from starvelab_doctor.compare import BETTER, PAIRED, SAME, WORSE, compare, pairs_of, read
from starvelab_doctor.judging.report import json_report
from starvelab_doctor.shares import BLOCKS
from starvelab_doctor.watching.recorder import Recorder


def loop(blocks, name="Items at train.py:15", **known):
    """A loop as doctor writes it, with so many seconds a batch in each block."""
    usual = {
        "loop": name, "counted": 200, "batches": 201, "batch_size": None, "host_wait": 0.3,
        "others_cpu": 0.0, "core_waits": 0.0, "first_waits": [0.5], "ending": None,
    }  # fmt: skip
    return usual | {"blocks": list(blocks)} | known


def series(rng, *, mean=0.02, spread=0.1, alike=0.0, drift=0.0, runs=0.01):
    """Blocks of a run: neighbors that resemble each other, a wave of a random phase, a mean of its own."""
    noise = np.empty(BLOCKS)
    value = rng.normal()
    for place in range(BLOCKS):
        value = alike * value + np.sqrt(1 - alike**2) * rng.normal()
        noise[place] = value
    wave = drift * np.sin(2 * np.pi * (np.arange(BLOCKS) / (2 * BLOCKS) + rng.random()))
    return mean * np.exp(spread * noise + wave + runs * rng.normal())


# Of each kind of noise, how many of a hundred losses of a tenth have to be found.
KINDS = {
    "apart": ({}, 90), "much": ({"spread": 0.2}, 30), "alike": ({"spread": 0.06, "alike": 0.8}, 30),
    "very alike": ({"spread": 0.05, "alike": 0.9}, 20), "drifting": ({"spread": 0.04, "drift": 0.03}, 80),
    "still": ({"spread": 0.002}, 100),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_than_five_of_a_hundred_runs_are_called_different_and_losses_are_found(kind):
    rng, (noise, enough) = np.random.default_rng(1), KINDS[kind]
    runs = [[series(rng, **noise) for _ in range(2)] for _ in range(100)]
    again = [compare(loop(one), loop(other)).verdict for one, other in runs]
    worse = [compare(loop(one), loop(other / 0.9)).verdict for one, other in runs]
    assert sum(one != SAME for one in again) < 5
    assert worse.count(WORSE) >= enough


def test_beside_other_programs_a_change_has_to_be_larger():
    rng = np.random.default_rng(7)
    before, after = (series(rng, spread=0.02) for _ in range(2))
    for others, waits, verdict in (
        (0.9, 0.01, WORSE),
        (0.9, 0.2, SAME),
        (0.05, 0.2, WORSE),
        (0.9, None, WORSE),
    ):
        run = loop(after / 0.9, others_cpu=others, core_waits=waits)
        assert compare(loop(before), run).verdict == verdict


def test_a_run_that_goes_on_drifting_is_not_called_different():
    rng = np.random.default_rng(3)
    drifting = 0.02 * (1 + np.linspace(0, 0.2, 2 * BLOCKS)) * np.exp(0.01 * rng.normal(size=2 * BLOCKS))
    assert compare(loop(drifting[:BLOCKS]), loop(drifting[BLOCKS:])).verdict == SAME


def test_a_comparison_says_what_it_rests_on():
    rng = np.random.default_rng(4)
    before = loop(series(rng, spread=0.02, runs=0.0))
    assert compare(before, loop(2 * np.array(before["blocks"]))).summary.startswith(
        "Items at train.py:15: worse, 0.50 times the throughput (95 % interval 0.4"
    )
    moved = loop(before["blocks"], "Items at train.py:17", host_wait=0.123, others_cpu=0.4, core_waits=0.1)
    said = compare(before, moved).summary
    assert said.startswith("Items at train.py:15 and then Items at train.py:17: no difference, 1.00 times ")
    assert "It waits 12.3 % of its time, and 30.0 % before. A change of less than " in said
    assert said.endswith(" Other programs took cores from it: run both again while the machine does less.")


# The names and batch sizes of the loops of two runs, longest first; which of them are one, and by what.
NAME, SIZE, DATASET, PLACE, TIME = PAIRED
TRAIN, VAL = ("Items at train.py:15", 8), ("Items at train.py:30", 64)


@pytest.mark.parametrize(("before", "after", "pairs"), [
    ([TRAIN, VAL], [VAL, TRAIN], [(0, 1, NAME), (1, 0, NAME)]),
    # A loop is added in front, so that lines move, and one has the line that another one had.
    ([TRAIN, VAL], [("Items at train.py:9", 2), ("Items at train.py:36", 64), ("Items at train.py:21", 8)],
     [(0, 2, SIZE), (1, 1, SIZE)]),
    ([TRAIN], [("Words at train.py:15", 8), ("Items at train.py:21", 16)], [(0, 1, DATASET)]),
    ([VAL, TRAIN], [("Items at train.py:17", 16), ("Items at train.py:32", 128)],
     [(1, 0, DATASET), (0, 1, DATASET)]),
    ([TRAIN], [("Cached at train.py:15, 90 items, 2 workers", 8)], [(0, 0, PLACE)]),
    ([TRAIN], [("Items at train.py:21", 2), ("Items at train.py:23", 2)], [(0, 0, TIME)]),
    ([TRAIN, VAL], [("Cached at new.py:9", 8)], [(0, 0, TIME)]),
    ([("loader", 8)], [("loader", 8)], [(0, 0, NAME)]),
])  # fmt: skip
def test_loops_of_two_runs_are_paired_by_what_they_are(before, after, pairs):
    first, second = ([loop([], name, batch_size=size) for name, size in run] for run in (before, after))
    found = [(first.index(one), second.index(other), how) for one, other, how in pairs_of(first, second)]
    assert found == pairs


def test_of_too_few_batches_nobody_can_tell():
    one = compare(loop([0.02] * 24, counted=24), loop([0.03] * BLOCKS))
    assert (one.verdict, one.interval) == (UNKNOWN, None)
    assert one.summary == (
        "Items at train.py:15: cannot tell, because 24 and 200 batches count, and each run needs 25. Let "
        "doctor watch longer runs."
    )


def test_if_not_even_a_doubling_would_show_nobody_can_tell():
    rng = np.random.default_rng(8)
    runs = [loop(series(rng, spread=0.02), others_cpu=0.9, core_waits=waits) for waits in (0.0, 0.8)]
    one = compare(*runs)
    assert (one.verdict, one.interval is None) == (UNKNOWN, False)
    assert "cannot tell, " in one.summary
    assert "Even a doubling would not show: let doctor watch longer runs." in one.summary


def test_samples_count_where_batches_have_another_size():
    rng = np.random.default_rng(5)
    before, after = series(rng, spread=0.02), 2 * series(rng, spread=0.02)
    assert compare(loop(before, batch_size=8), loop(after, batch_size=16)).verdict == SAME
    assert compare(loop(before, batch_size=8), loop(after)).verdict == WORSE


def test_what_it_takes_to_begin_passes_counts_where_both_runs_have_some():
    rng = np.random.default_rng(6)
    blocks = [series(rng, spread=0.02) for _ in range(2)]
    # Ten batches of 20 ms in a pass, for which workers start in 200 ms, and end in 50.
    slow = {"first_waits": [0.3, *[0.2] * 20], "batches": 210, "ending": 0.05}
    quick = {"first_waits": [0.3, *[0.02] * 20], "batches": 210}
    one = compare(loop(blocks[0], **slow), loop(blocks[1], **quick))
    assert one.verdict == BETTER
    assert one.ratio == pytest.approx((9 * 20 + 250) / (9 * 20 + 20), rel=0.05)
    assert compare(loop(blocks[0], **slow), loop(blocks[1])).verdict == SAME


@pytest.mark.parametrize(("text", "why"), [
    (None, "No such file or directory"),
    ("train", "Expecting value"),
    ("[]", "it holds no loops of doctor"),
    ('{"loops": []}', "it holds no loops of doctor"),
    ('{"loops": [{"loop": "list at train.py:2"}]}', "it holds no loops of doctor"),
])  # fmt: skip
def test_a_file_that_doctor_did_not_write_is_an_error(tmp_path, text, why):
    file = tmp_path / "before.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read(file)
    assert str(error.value).startswith(f"compare reads what doctor wrote, got {file}: ")
    assert why in str(error.value)
    assert str(error.value).endswith(f" Write it: starvelab-doctor --json {file} train.py")


def test_the_command_compares_what_doctor_writes_and_has_a_status(tmp_path, capsys):
    for name, step in (("before", 0.01), ("after", 0.02)):
        recorder = Recorder(batch_size=8, workers=1)
        recorder.replay(1.0, [0.01] * 100, [step] * 100)
        report = json_report([("list at train.py:2", recorder.finding())])
        (tmp_path / f"{name}.json").write_text(report, encoding="utf-8")
        assert len(json.loads(report)["loops"][0]["blocks"]) == BLOCKS
    files = [str(tmp_path / f"{name}.json") for name in ("before", "after")]
    with pytest.raises(SystemExit, match=r"^3$"):
        starvelab(["compare", *files])
    assert capsys.readouterr().out.startswith(
        "starvelab-doctor compare: list at train.py:2: worse, 0.67 times the throughput (95 % interval 0.6"
    )
    with pytest.raises(SystemExit, match=r"^0$"):
        starvelab(["compare", *reversed(files)])
    moved = json.loads((tmp_path / "after.json").read_text(encoding="utf-8").replace("py:2", "py:4"))
    first = moved["loops"][0] | {"loop": "Words at train.py:2"}
    content = json.dumps({"loops": [first, *moved["loops"]]})
    (tmp_path / "after.json").write_text(content, encoding="utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"^3$"):
        starvelab(["compare", *files])
    assert capsys.readouterr().out.startswith(
        "starvelab-doctor compare: list at train.py:2 and then list at train.py:4 (paired by dataset, file "
        "and batch size): worse, 0.67 "
    )
    with pytest.raises(SystemExit, match=r"^2$"):
        starvelab(["compare", files[0], "nothing.json"])
    assert "got nothing.json: " in capsys.readouterr().err
