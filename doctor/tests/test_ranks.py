"""Several ranks of one job: who holds up whom, from times that are known and from processes that sleep."""

from __future__ import annotations

import json
import os
from textwrap import dedent

import numpy as np
import pytest

from starvelab_doctor import doctor
from starvelab_doctor.judging.report import text_report
from starvelab_doctor.watching import ranks
from starvelab_doctor.watching.hooks import Doctor
from starvelab_doctor.watching.ranks import RankLoop, merge
from starvelab_doctor.watching.recorder import Recorder
from tests.file_server import free_port

pytestmark = pytest.mark.programs


def of(waits, steps):
    """What one rank found of a loop."""
    recorder = Recorder(batch_size=8, workers=2)
    recorder.replay(None, waits, steps)
    return [RankLoop("Photos at train.py:12", recorder.finding(), np.array(waits), np.array(steps))]


def merged(loops):
    ((name, found),) = merge(loops)
    assert name == "Photos at train.py:12"
    return found


def test_the_rank_that_waits_for_data_holds_up_the_others():
    # All take 50 ms: rank 0 spends its time in the all-reduce, where it waits for rank 1.
    found = merged({0: of([0.001] * 40, [0.049] * 40), 1: of([0.03] * 40, [0.02] * 40)})
    assert (found.ranks.rank, found.verdict, sorted(found.ranks.found)) == (1, "highly input-bound", [0, 1])
    assert found.waits.host_wait == pytest.approx(0.6)
    assert found.summary.startswith(
        "The training loop waits 60.0 % of its time for data (95 % interval 60.0 % to 60.0 %). This job is "
        "highly input-bound. Rank 1 holds up the others, which wait for it in their step, unless another "
        "step takes as long, which the times do not tell: rank 0 waits 2.0 %; rank 1 waits 60.0 %."
    )


def test_ranks_that_wait_by_turns_make_the_job_wait_for_each_of_them():
    late, early = [0.04, 0.0] * 20, [0.0, 0.04] * 20
    found = merged(
        {0: of(late, [0.05 - wait for wait in late]), 1: of(early, [0.05 - wait for wait in early])}
    )
    assert found.ranks.found[0].waits.host_wait == pytest.approx(0.4)
    assert found.waits.host_wait == pytest.approx(0.8)
    assert "No single rank holds up the others: rank 0 waits 40.0 %; rank 1 waits 40.0 %." in found.summary


def differing(milliseconds, seed, spread=0.1):
    """Seconds that differ as those of real work do."""
    return (np.random.default_rng(seed).normal(milliseconds, spread * milliseconds, 40) / 1e3).tolist()


def test_reads_that_a_slow_step_of_another_rank_hides_hold_up_nobody():
    # Rank 0 trains for 200 ms; rank 1 reads for 80, trains for 40, and waits for rank 0.
    quick, lengths, reads = [0.001] * 40, differing(200, 0, 0.02), differing(80, 1)
    rest = [length - read for length, read in zip(lengths, reads, strict=True)]
    found = merged({0: of(quick, lengths), 1: of(reads, rest)})
    assert found.ranks.found[1].waits.host_wait == pytest.approx(0.4, abs=0.01)
    assert (found.verdict, found.waits.host_wait) == ("not input-bound", pytest.approx(0, abs=0.04))
    assert found.ranks.together.startswith(
        "What the ranks wait for data hides behind another rank's step, or what they exchange: steps with "
        "longer waits take no longer. Rank 0 waits 0.5 %; rank 1 waits 40."
    )
    # The same waits where nobody trains as long.
    own = differing(120, 2, 0.02)
    lengths = [read + step for read, step in zip(reads, own, strict=True)]
    found = merged({0: of(quick, lengths), 1: of(reads, own)})
    assert found.ranks.together.startswith("Rank 1 holds up the others, which wait for it in their step: ")
    assert found.verdict == "highly input-bound"
    # Steps that differ more than the waits do tell nothing.
    lengths = differing(200, 0)
    rest = [length - read for length, read in zip(lengths, reads, strict=True)]
    found = merged({0: of(quick, lengths), 1: of(reads, rest)})
    assert (
        "in their step, unless another step takes as long, which the times do not tell: "
        in found.ranks.together
    )


def test_ranks_that_each_wait_a_little_make_a_job_that_waits():
    # Each waits 4 % of its time, in steps of its own.
    each = [[0.008 if step % 5 == rank else 0.0 for step in range(40)] for rank in range(4)]
    whole = np.array([0.04 if step % 5 < 4 else 0.032 for step in range(40)])
    found = merged({rank: of(late, (whole - late).tolist()) for rank, late in enumerate(each)})
    assert found.verdict == "moderately input-bound"
    assert found.ranks.together.startswith("No single rank holds up the others: rank 0 waits 4.2 %;")


def test_what_the_waits_do_not_tell_is_said():
    found = merged({0: of([0.001] * 40, [0.049] * 40), 1: of([0.0005] * 40, [0.0495] * 40)})
    assert found.verdict == "not input-bound"
    assert (
        "No rank waits for data: rank 0 waits 2.0 %; rank 1 waits 1.0 %. Their waits do not tell which"
        in (text_report([("", found)]))
    )
    apart = merged({0: of([0.001] * 40, [0.099] * 40), 1: of([0.03] * 40, [0.02] * 40)})
    assert apart.ranks.together.startswith(
        "The ranks go at different rates, so they do not wait for each other"
    )
    assert apart.waits.host_wait == pytest.approx(0.6)


def test_one_rank_is_no_job_of_several(monkeypatch):
    assert merged({0: of([0.03] * 40, [0.02] * 40)}).ranks.together == ""
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert ranks.local_ranks() is None
    for name, value in zip(names, ("0", "0", "1", "29500"), strict=True):
        monkeypatch.setenv(name, value)
    assert ranks.local_ranks() is None


def test_a_rank_that_does_not_come_is_not_waited_for_for_ever(tmp_path):
    ranks.write(tmp_path, 1, of([0.03] * 40, [0.02] * 40))
    assert list(ranks.read(tmp_path, 2, patience=0.1)) == [1]


JOB = """
    import sys, time, torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.utils.data import DataLoader

    class Slow(list):
        def __init__(self, items, seconds):
            super().__init__(items)
            self.seconds = seconds

        def __getitem__(self, index):
            time.sleep(self.seconds)
            return index

    def train(rank, ranks):
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{sys.argv[1]}", rank=rank, world_size=ranks)
        for batch in DataLoader(Slow(range(20), 0.05 if rank == 1 else 0.001), 1):
            time.sleep(0.02)
            dist.all_reduce(torch.ones(4))
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(train, (2,), 2)
"""
# As torchrun starts it, by the clock of a test.
RANK = """
    import os
    from starvelab_doctor.watching.recorder import time
    from torch.utils.data import DataLoader

    class Slow(list):
        def __getitem__(self, index):
            time.sleep((0.001, 0.03)[int(os.environ["RANK"])])

    for _ in DataLoader(Slow(range(40)), 1, collate_fn=list):
        time.sleep((0.049, 0.02)[int(os.environ["RANK"])])
"""


def test_ranks_that_a_script_spawns_get_one_report(tmp_path, capsys):
    pytest.importorskip("torch")
    script, found = tmp_path / "train.py", tmp_path / "found.json"
    script.write_text(dedent(JOB), encoding="utf-8")
    assert doctor.main(["--json", str(found), str(script), str(free_port())]) == 0
    assert "Rank 1 holds up the others, which wait for it in their step" in capsys.readouterr().err
    (loop,) = json.loads(found.read_text())["loops"]
    assert (loop["rank"], loop["verdict"]) == (1, "highly input-bound")


def test_ranks_that_torchrun_starts_get_one_report(clock, monkeypatch, tmp_path, capsys):
    pytest.importorskip("torch")
    script, told = tmp_path / "train.py", []
    script.write_text(dedent(RANK), encoding="utf-8")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_PORT", "29500")
    for rank in "10":  # the second one finds what the first one left: they have one parent
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("LOCAL_RANK", rank)
        assert doctor.main([str(script)]) == 0
        told.append(capsys.readouterr().err)
    assert told[0] == ""
    assert told[1].count("starvelab-doctor: ") == 1
    assert "Rank 1 holds up the others" in told[1]


def test_a_rank_that_cannot_write_what_was_found_ends_as_it_would(tmp_path):
    assert ranks.watched_rank(abs, tmp_path / "gone", Doctor, -1) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_process_leaves_the_folder_in_which_ranks_write():
    context = ranks.spawned(Doctor)
    folder = context.__enter__()
    if not (child := os.fork()):
        context.__exit__(None, None, None)
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.exists()
    context.__exit__(None, None, None)
    assert not folder.exists()
