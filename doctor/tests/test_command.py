"""`starvelab-doctor --try` and `--ladder`: short runs of a script, and what is said of them."""

import json
import os
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("torch")

from doctor.tests.known_jobs import found
from starvelab.errors import InputError
from starvelab.units import Q_
from starvelab_doctor import BatchContents, doctor
from starvelab_doctor.finding.memory import MemoryUse
from starvelab_doctor.judging.remedy import Remedy
from starvelab_doctor.trials import command
from starvelab_doctor.trials import runs as command_runs
from starvelab_doctor.trials.ascent import Turns
from starvelab_doctor.trials.runs import Runs

pytestmark = pytest.mark.programs

SCRIPT = """
    import time
    import torch
    from pathlib import Path
    from torch.utils.data import DataLoader, Dataset

    class Photos(Dataset):
        def __len__(self):
            return 10_000
        def __getitem__(self, index):
            time.sleep(0.002)
            return index

    if __name__ == "__main__":
        Path("log.txt").write_text("other")
        torch.save([1], "saved/last.pt")  # which writes without Python
        for batch in DataLoader(Photos(), 4, {line}
                                shuffle=True):
            time.sleep(0.001)
        Path("{end}").write_text("the script went on to its end")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    folder = tmp_path / "job"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "saved").mkdir()
    for name in ("log.txt", "saved/last.pt"):
        (folder / name).write_text("mine")
    path = folder / "train.py"
    path.write_text(dedent(SCRIPT).format(line="", end=tmp_path / "end.txt"))
    return path


@pytest.fixture
def base():
    """Return a folder with a short path, which sockets of workers need."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_a_run_is_ended_after_some_batches_and_changes_no_file(script, tmp_path, base, monkeypatch):
    runs = Runs(str(script), [], base)
    monkeypatch.setattr(command_runs, "SECONDS", 0.4)
    runs.seconds = 0.4
    first = runs.first()
    assert first["loop"] == f"{script}:17 Photos 10000"
    assert (first["setup"]["workers"], first["whole"]) == (0, False)
    assert first["pace"]["waits"] > 0.5
    ((name, finding),) = first["results"]
    assert (name, finding.loader.stages.largest) == ("Photos at train.py:17", "dataset")
    assert 0.4 < runs.each < 60  # with its start
    second = runs.run({"num_workers": 2})
    assert second["setup"]["workers"] == 2
    for name in ("log.txt", "saved/last.pt"):
        assert (script.parent / name).read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "job"]
    assert list(base.iterdir()) == []


def test_a_loop_that_draws_its_batches_itself_ends_the_first_run_and_is_told_its_lines(
    tmp_path, base, monkeypatch
):
    # nanoGPT's train.py ran for 600 s, and was told to do less before its loop.
    path = tmp_path / "train.py"
    path.write_text(
        "import time, torch\n"
        "optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)])\n"
        "while True:\n"
        "    time.sleep(0.02); open('train.py').read()\n"
        "    optimizer.step()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command_runs, "LIMIT", 60.0)
    with pytest.raises(
        InputError, match=r"went over none in its own process\.\nstarvelab-doctor: no loop got"
    ):
        Runs(str(path), [], base).first()


def test_ctrl_c_ends_the_run_and_its_workers(script, base, monkeypatch):
    started, wait = [], subprocess.Popen.wait

    def interrupted(process, *limit):
        if not started:
            started.append(process.pid)
            raise KeyboardInterrupt
        return wait(process, *limit)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Runs(str(script), [], base).run({})
    with pytest.raises(ProcessLookupError):
        os.killpg(started[0], 0)


@pytest.mark.parametrize(("status", "result", "said"), [
    (None, None, "A trial needs its batches within 600 s, and train.py had too few by then."),
    (1, None, "ended with status 1 before it had enough batches. Correct that first. It said: no / data"),
    (-11, None, "ended with status -11"),
    (0, {"loop": ""}, "went over none in its own process. Run doctor without --try and --ladder."),
    (0, {"loop": "a", "pace": None, "batches": 7}, "more batches than train.py has, which ended after 7"),
], ids=["slow", "fails", "killed", "no loader", "few batches"])  # fmt: skip
def test_a_script_that_cannot_be_tried_is_told_why(tmp_path, status, result, said):
    (tmp_path / "said").write_text("no\ndata\n")
    if result is not None:
        (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(InputError) as error:
        Runs("train.py", [], tmp_path)._left(tmp_path, status)
    assert said in str(error.value)


def planted(monkeypatch, *, rates, short=False, shared=None, ceiling=4.0, waits=0.5, **setup):
    """Let runs find these batches a second by the number of workers, and persistent ones as given.

    On the rungs of the ladder they find `ceiling` times those of the job as it is.
    """
    setup = {"workers": 0, "prefetch": None, "persistent": False, "pinned": True} | setup
    finding = found(workers=setup["workers"], wait=0.03, step=0.01, cpu=0.0)
    memory = MemoryUse(setup["workers"], *[Q_("0 B")] * 3, shared_free=shared)
    finding = finding.replace(memory=memory, contents=BatchContents(1, Q_("50 MB"), "uint8", 1))

    def run(self, settings, rung=""):
        workers = settings.get("num_workers", setup["workers"])
        return {
            "loop": f"{__file__}:1 Photos 90",
            "setup": {"stream": False} | setup,
            "pace": {"rate": rates[workers] * (ceiling if rung else 1), "waits": waits, "seconds": 3.0},
            "on_gpu": False,
            "whole": short,
            "batches": 90,
            "results": [("Photos at train.py:2", finding)],
        }

    monkeypatch.setattr(Runs, "run", run)


def test_the_lines_to_change_and_what_was_measured(monkeypatch, tmp_path, capsys, script):
    planted(monkeypatch, rates={0: 20.0, 3: 60.0, 6: 61.0})
    assert doctor.main(["--try", "--json", str(tmp_path / "found.json"), "train.py"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("starvelab-doctor runs train.py for 8 s of its loop first, and then says how long")
    assert "starvelab-doctor: Photos at train.py:2, 40 batches" in told
    assert "\n  num_workers=3: 3.00 times the batches a second, kept.\n" in told
    assert "\n  num_workers=6: 1.02 times the batches a second, not kept.\n" in told
    assert f'Change {__file__}, line 1: """`starvelab-doctor --try` and' in told
    assert "\n  Give that call num_workers=3.\n  Measured in 6 turns: 3.00 times the batches a second" in told
    known = json.loads((tmp_path / "found.json").read_text())
    assert known["try"]["settings"] == {"num_workers": 3}
    assert known["try"]["gain"] == [3.0, 3.0, 3.0]
    assert [one["kept"] for one in known["try"]["trials"]] == [True, False, False]
    assert known["loops"][0]["verdict"] == "highly input-bound"


def test_who_keeps_workers_is_told_what_they_do_not_see(monkeypatch, capsys, script):
    planted(monkeypatch, rates=defaultdict(lambda: 20.0), workers=2, short=True)
    usual = Runs.run

    def run(self, settings, rung=""):
        found = usual(self, settings, rung)
        found["pace"]["rate"] *= 2.0 if settings.get("persistent_workers") else 1.0
        return found

    monkeypatch.setattr(Runs, "run", run)
    assert doctor.main(["--try", "train.py"]) == 0
    assert "Workers that persist do not see what the script changes" in capsys.readouterr().err


def test_trials_that_are_ended_early_have_an_answer_about_the_advice(monkeypatch, capsys, script):
    # minGPT's --try ended before it tried what doctor advises, no workers.
    planted(monkeypatch, rates={0: 60.0, 2: 20.0}, workers=2)
    usual = Runs.compare

    def compare(self, old, new, *turns):
        if turns:  # the last ones
            raise KeyboardInterrupt
        return usual(self, old, new)

    monkeypatch.setattr(Runs, "compare", compare)
    advice = [Remedy("dataset", ""), Remedy("workers", "", value=0)]
    monkeypatch.setattr(command, "remedies_of", lambda _: advice)
    assert doctor.main(["--try", "train.py"]) == 130
    assert "num_workers=0: 3.00 times the batches a second, kept." in capsys.readouterr().err


@pytest.mark.parametrize("handed", [True, False])
def test_no_workers_are_tried_for_tiny_batches_that_hardly_wait(monkeypatch, capsys, script, handed):
    # minGPT's adder waits 0.7 %, and takes less time without workers, which take cores from its step.
    planted(monkeypatch, rates={0: 25.0, 2: 20.0}, workers=2, waits=0.007, ceiling=1.3)
    monkeypatch.setattr(command, "remedies_of", lambda _: ())
    monkeypatch.setattr(command, "is_for_handover", lambda _: handed)
    assert doctor.main(["--try", "train.py"]) == 0
    assert ("num_workers=0: 1.25 times the batches a second, kept." in capsys.readouterr().err) is handed


@pytest.mark.parametrize(("job", "said"), [
    ({}, "Nothing of that is worth a change: leave these settings as they are."),
    ({"ceiling": 0.8}, "Nothing of that helped while another program used the machine, which proves little."),
    ({"waits": 0.007}, "No setting was tried, since the loop hardly waits for data."),
    ({"stream": True}, "No setting was tried, since none fits this loader and finds room."),
])  # fmt: skip
def test_where_nothing_helps_or_is_tried_that_is_said(monkeypatch, capsys, script, job, said):
    planted(monkeypatch, rates=dict.fromkeys(range(40), 20.0), **job)
    assert doctor.main(["--try", "train.py"]) == 0
    assert said in capsys.readouterr().err


def test_a_gain_that_not_all_of_six_turns_show_is_not_certain(monkeypatch, capsys, script):
    planted(monkeypatch, rates={0: 20.0, 3: 60.0, 6: 61.0})
    usual, last = Runs.compare, Turns(((20.0, 15.0), (20.0, 60.0), (20.0, 62.0)), 0.5)
    monkeypatch.setattr(
        Runs, "compare", lambda runs, *settings: last if len(settings) == 3 else usual(runs, *settings)
    )
    assert doctor.main(["--try", "train.py"]) == 0
    told = capsys.readouterr().err
    assert "num_workers=3 brought 3.00 times the batches a second, but 0.75 to 3.10 in 6 turns" in told
    assert "That is not certain: try again while the machine does less." in told
    assert "Change" not in told


def test_a_trial_that_is_ended_says_so(monkeypatch, capsys, script):
    def run(self, settings, rung=""):
        raise KeyboardInterrupt

    monkeypatch.setattr(Runs, "run", run)
    assert doctor.main(["--try", "train.py"]) == 130
    assert "Ended, with all that ran for it." in capsys.readouterr().err


def test_what_trials_need_of_the_machine(monkeypatch, capsys, script):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert doctor.main(["--try", "train.py"]) == 2
    assert (
        "Trials run one process, got several ranks, each of which waits for the others in its step."
        in capsys.readouterr().err
    )
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.delattr(command.os, "killpg")
    assert doctor.main(["--try", "train.py"]) == 2
    assert "Trials need Linux, macOS or WSL, got Windows." in capsys.readouterr().err


def test_no_more_workers_are_tried_than_find_room(monkeypatch, capsys, script):
    planted(monkeypatch, rates={0: 20.0, 2: 40.0, 4: 60.0}, shared=300e6)
    assert doctor.main(["--try", "train.py"]) == 0
    told = capsys.readouterr().err
    assert "\n  num_workers=3: " not in told
    assert "\n  num_workers=2: 2.00 times the batches a second, kept.\n" in told


def test_a_line_is_written_for_each_trial_and_how_long_they_take_before(monkeypatch, capsys, script):
    # 49 trials printed nothing for 200 s.
    planted(monkeypatch, rates={0: 20.0, 3: 60.0, 6: 61.0})
    assert doctor.main(["--try", "train.py"]) == 0
    lines = capsys.readouterr().err.splitlines()
    (ladder,) = (number for number, line in enumerate(lines) if line.startswith("The ladder takes 6 runs, "))
    assert lines[ladder + 1] == "  ladder, turn 1 of 2, as the job is: 20 batches a second"
    (others,) = (number for number, line in enumerate(lines) if "Settings take at most 48 runs, " in line)
    assert others == ladder + 7
    assert lines[others + 1] == "  num_workers=3: 3.00 times the batches a second, kept."


def test_the_ladder_alone(monkeypatch, capsys, script, tmp_path):
    planted(monkeypatch, rates={0: 20.0})
    assert doctor.main(["--ladder", "--json", str(tmp_path / "found.json"), "train.py"]) == 0
    told = capsys.readouterr().err
    assert "\n  No change of the input brings more than 4 times the batches a second." in told
    assert "starvelab-doctor --try" not in told.partition("--ladder: ")[2]
    known = json.loads((tmp_path / "found.json").read_text())
    assert known["ladder"]["ceiling"] == 4
    assert "try" not in known


def test_where_it_is_not_the_data_no_setting_is_tried(monkeypatch, capsys, script):
    planted(monkeypatch, rates={0: 20.0}, ceiling=1.02)
    assert doctor.main(["--try", "train.py"]) == 0
    told = capsys.readouterr().err
    assert "Not the data: without its loader the job is at most 1.02 times as fast." in told
    assert "num_workers" not in told.partition("--ladder: ")[2]
