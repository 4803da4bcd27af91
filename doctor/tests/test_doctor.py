"""`starvelab-doctor`: a script runs as it would without, and what its loaders took is said at the end."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from importlib.metadata import version
from itertools import cycle, islice
from textwrap import dedent

import pytest

from doctor.tests.loops import Slow
from starvelab_doctor import doctor
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.script import run_script
from starvelab_doctor.watching import hooks

pytestmark = pytest.mark.programs

torch = pytest.importorskip("torch")

SCRIPT = """
    import sys, time, random, torch
    from torch.utils.data import DataLoader, Dataset

    class Photos(Dataset):
        def __len__(self):
            return 48
        def __getitem__(self, index):
            time.sleep(0.002)
            return torch.tensor([index, random.random(), torch.rand(1).item()])

    if __name__ == "__main__":
        torch.manual_seed(7); random.seed(7)
        seen = []
        for epoch in range(2):
            for batch in DataLoader(Photos(), 4, shuffle=True):
                seen.append(batch)
                time.sleep(0.001)
        print(f"{torch.cat(seen).double().sum().item():.12f}", torch.rand(1).item(), sys.argv[1:], __name__)
"""


def test_a_script_gives_the_same_and_is_told_what_it_waited(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(dedent(SCRIPT), encoding="utf-8")
    assert run_script(path, ["--lr", "1"]) == 0
    alone = capsys.readouterr().out
    assert alone.endswith(" ['--lr', '1'] __main__\n")
    base = torch.utils.data.dataloader._BaseDataLoaderIter
    kinds = (base, *base.__subclasses__())
    before = sys.argv, sys.path[0], [dict(vars(kind)) for kind in kinds]
    assert doctor.main([str(path), "--lr", "1"]) == 0
    assert (sys.argv, sys.path[0], [dict(vars(kind)) for kind in kinds]) == before
    printed = capsys.readouterr()
    assert printed.out == alone
    told = printed.err
    assert told.startswith("starvelab-doctor: Photos at train.py:16, 24 batches\n  The training loop waits ")
    assert "This job is highly input-bound." in told
    assert "workers instead of 0. " in told


# A scheduler ends the workers as well, and PyTorch raises an error for each of them that is gone.
ALL_TERMINATED = """
import signal
def gone(*_):
    raise RuntimeError("DataLoader worker is killed by signal: Terminated.")
signal.signal(signal.SIGCHLD, gone)
both = {signal.SIGTERM, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
for each in both:
    signal.raise_signal(each)
signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
"""


@pytest.mark.parametrize(("end", "status", "printed"), [
    ("raise SystemExit(3)", 3, ""),
    ("raise SystemExit('no')", 1, "no"),
    ("raise SystemExit", 0, ""),
    ("raise KeyboardInterrupt", 130, "Interrupted. This is what is known so far."),
    ("raise ValueError('broken')", 1, "ValueError: broken"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 130,
     "Interrupted. This is what is known so far."),
    (ALL_TERMINATED, 130, "Interrupted. This is what is known so far."),
])  # fmt: skip
def test_however_a_script_ends_what_is_known_is_said(tmp_path, capsys, request, end, status, printed):
    request.addfinalizer(partial(signal.signal, signal.SIGCHLD, signal.getsignal(signal.SIGCHLD)))
    path = tmp_path / "train.py"
    path.write_text(
        f"from torch.utils.data import DataLoader\nfor _ in DataLoader(list(range(40)), 4): pass\n{end}\n",
        encoding="utf-8",
    )
    assert doctor.main([str(path)]) == status
    told = capsys.readouterr()
    assert "starvelab-doctor: list at train.py:2, 10 batches" in told.err
    assert printed in told.err


def train(clock, loader, step, within=lambda number: None):
    for number, _ in enumerate(loader):
        clock.sleep(step)
        within(number)


@pytest.mark.parametrize("left_early", [False, True])
def test_an_evaluation_in_a_step_is_no_part_of_the_step(clock, left_early):
    loader = torch.utils.data.DataLoader(Slow(clock, 0.01), 2)
    others = [torch.utils.data.DataLoader(Slow(clock, 0.02, count), 1) for count in (20, 30)]

    def evaluate(number):
        if number % 2 and left_early:
            next(iter(others[1]))
        if number % 2:
            train(clock, others[0], 0.02)

    watched = hooks.Doctor()
    with watched.watching():
        for _ in range(2):
            train(clock, loader, 0.06, evaluate)
    training, evaluation, *_ = sorted(
        (found for _, found in watched.results()),
        key=lambda one: (-one.loader.batch_size, -one.waits.batches),
    )
    assert training.waits.host_wait == pytest.approx(0.25)
    assert (training.waits.batches, training.waits.counted, len(training.waits.first_waits)) == (40, 38, 2)
    assert training.waits.throughput.m_as("img/s") == pytest.approx(25)
    assert evaluation.waits.host_wait == pytest.approx(0.5)
    # A gain is that of the whole job: 38 batches of 80 ms, and what the evaluations in them take.
    inner = training.waits.interrupted.m_as("s")
    assert inner == pytest.approx(20 * 20 * 0.04 + left_early * 20 * 0.02)
    assert training.interrupted_share == pytest.approx(inner / (inner + 38 * 0.08), rel=0.05)


def test_a_loop_has_its_share_of_the_time_in_all_loops(clock):
    # Of a script that trains, and then evaluates, the gain of the evaluation was said: 3.6, where 1.7 came.
    sizes = ((0.01, 40), (0.02, 60))
    first, second = (torch.utils.data.DataLoader(Slow(clock, *each), 2) for each in sizes)
    watched = hooks.Doctor()
    with watched.watching():
        for _ in range(3):
            clock.sleep(5)  # what is in no loop
            train(clock, first, 0.04)
            train(clock, second, 0.01)
    times = 3 * 20 * 0.06, 3 * 30 * 0.05
    # Before the later passes of training the script does something else, and before no evaluation.
    gaps = [[end - begin for begin, end in watched.gaps_before(loop)] for loop in watched.loops.values()]
    assert gaps == [pytest.approx([5, 5]), []]
    shares = [one.waits.loop_share for _, one in watched.results()]
    assert sorted(shares) == pytest.approx([each / sum(times) for each in times], rel=0.03)
    # Training and evaluation go through one function, and each has a name.
    names = [name for name, _ in watched.results()]
    assert sorted(name.split(", ")[1] for name in names) == ["40 items", "60 items"]


def test_batches_that_itertools_cycle_keeps_are_left_out(clock):
    loader = torch.utils.data.DataLoader(Slow(clock, 0.01), 2)
    watched = hooks.Doctor()
    with watched.watching():
        train(clock, islice(cycle(loader), 200), 0.02)
    ((_, found),) = watched.results()
    # 20 batches of 40 ms, and 180 of 20.
    assert (found.waits.batches, found.waits.host_wait) == (20, pytest.approx(0.5))
    assert found.interrupted_share == pytest.approx(3.6 / 4.4, rel=0.02)
    first, *_ = remedies_of(found.replace(core_waits=0.0), cores=2)
    assert first.gain.high < 4.4 / 3.6 + 0.01


def test_the_end_of_a_script_is_no_long_step(clock):
    watched = hooks.Doctor()
    with watched.watching():
        train(clock, torch.utils.data.DataLoader(Slow(clock, 0.01), 2), 0.02)
    clock.sleep(0.5)  # it saves its model
    ((_, found),) = watched.results()
    assert (found.waits.interruptions, found.interrupted_share) == (0, 0.0)


def test_a_loop_that_is_left_early_and_begun_again(clock):
    loader = torch.utils.data.DataLoader(Slow(clock, 0.01), 1)
    watched = hooks.Doctor()
    with watched.watching():
        for _ in range(3):  # the loader is made once, its iterators each time
            for number, _ in enumerate(loader):
                clock.sleep(0.03)
                if number == 10:
                    break
            clock.sleep(1000)
    (_, found), *others = watched.results()
    assert not others
    assert found.waits.host_wait == pytest.approx(0.25)
    assert found.waits.batches == 33
    assert watched.gaps_before(*watched.loops.values()) == []  # they may be steps


def test_what_a_thread_between_loader_and_loop_waits_is_not_what_the_loop_waits(clock):
    loader = torch.utils.data.DataLoader(Slow(clock, 0.01), 2)
    watched = hooks.Doctor()
    with watched.watching():
        thread = threading.Thread(target=train, args=(clock, loader, 0.02))
        thread.start()
        thread.join()
    ((_, found),) = watched.results()
    assert (found.verdict, remedies_of(found)) == ("cannot tell", ())
    assert "another thread fetches the batches" in found.summary


def test_nothing_of_the_program_is_replaced_but_pytorchs_iterators():
    # Doctor once replaced Condition.wait and SimpleQueue, of all that the user's program imports.
    def parts():
        return threading.Condition.wait, threading.Condition.notify, queue.SimpleQueue

    before = parts()
    with hooks.Doctor().watching():
        assert parts() == before


def test_a_loop_of_a_framework_is_named_by_the_line_that_starts_it(tmp_path, monkeypatch, capsys):
    # Of a script of Hugging Face's Trainer the loop was said to be at data_loader.py:552, of accelerate.
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "a_framework.py").write_text("def fit(loader):\n    for _ in loader: pass\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    path = tmp_path / "train.py"
    path.write_text("import a_framework\nfrom torch.utils.data import DataLoader\n"
                    "a_framework.fit(DataLoader(list(range(40)), 4))\n")  # fmt: skip
    assert doctor.main(["--no-lines", str(path)]) == 0
    assert "starvelab-doctor: list at train.py:3, 10 batches" in capsys.readouterr().err


def test_a_script_without_a_dataloader_that_goes_to_another_folder(tmp_path, capsys, monkeypatch):
    path = tmp_path / "train.py"
    path.write_text("import os; os.chdir('..'); print('done')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert doctor.main(["--json", "found.json", str(path)]) == 0
    assert (tmp_path / "found.json").exists()
    told = capsys.readouterr()
    assert told.out == "done\n"
    assert told.err.startswith(
        "starvelab-doctor: no loop got a batch from a DataLoader of PyTorch. Where the loop draws its "
    )


@pytest.mark.parametrize(("text", "error"), [
    ("import torch\nimport a_package_that_nobody_has\n", "ModuleNotFoundError"),
    ("from torch.utils.data import DataLoader\nfor _ in DataLoader([print]): pass\n", "TypeError"),
])  # fmt: skip
def test_a_script_that_fails_before_its_first_batch_is_not_told_to_run_longer(tmp_path, capsys, text, error):
    script = tmp_path / "train.py"
    script.write_text(text, encoding="utf-8")
    assert doctor.main([str(script)]) == 1
    said = capsys.readouterr().err
    assert said.endswith(
        "starvelab-doctor: the script ended with status 1 before a loop got a batch. Correct that first.\n"
    )
    assert error in said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_process_that_the_script_forks_makes_no_report(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import os, sys, torch\nif not (child := os.fork()): sys.exit(3)\n"
        "sys.exit(os.waitpid(child, 0)[1] >> 8)\n"
    )
    command = [sys.executable, "-m", "starvelab_doctor", str(path)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr.count("starvelab-doctor: ")) == (3, 1)


def test_a_script_that_is_not_there(tmp_path, capsys):
    with pytest.raises(SystemExit):
        doctor.main([str(tmp_path / "none.py")])
    assert "doctor runs a Python script, and there is none at" in capsys.readouterr().err


def test_doctor_alone_names_only_what_is_missing_and_without_a_script_its_version(capsys):
    with pytest.raises(SystemExit):
        doctor.main([])
    assert capsys.readouterr().err.endswith("error: the following arguments are required: script\n")
    with pytest.raises(SystemExit, match=r"^0$"):
        doctor.main(["--version"])
    assert capsys.readouterr().out == f"starvelab-doctor {version('starvelab-doctor')}\n"


def test_without_pytorch(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        doctor.main([__file__])
    message = capsys.readouterr().err
    assert f"into {sys.executable}, which has none. Run that other Python" in message
    assert "in a checkout of starvelab with -m pip install . ./doctor" in message


def test_the_start_of_the_workers_is_part_of_the_first_wait(monkeypatch):
    kind = torch.utils.data.dataloader._SingleProcessDataLoaderIter
    original = kind.__init__

    def slow(iterator, loader):
        time.sleep(0.2)  # it forks
        original(iterator, loader)

    monkeypatch.setattr(kind, "__init__", slow)
    watched = hooks.Doctor()
    with watched.watching():
        for _ in range(2):
            list(torch.utils.data.DataLoader(list(range(40)), 2))
    ((_, found),) = watched.results()
    assert all(0.2 <= wait.m_as("s") < 2 for wait in found.waits.first_waits)


def test_a_module_runs_as_python_would_run_it(tmp_path, capsys, monkeypatch):
    package = tmp_path / "package_of_doctor"
    package.mkdir()
    (package / "__init__.py").write_text("SIZE = 4\n")
    (package / "train.py").write_text(
        "import sys\nfrom torch.utils.data import DataLoader\nfrom . import SIZE\n"
        "for _ in DataLoader(list(range(40)), SIZE): pass\nprint(sys.argv[1:], __name__)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert doctor.main(["-m", "package_of_doctor.train", "--lr", "1"]) == 0
    told = capsys.readouterr()
    assert told.out == "['--lr', '1'] __main__\n"
    assert "starvelab-doctor: list at train.py:4, 10 batches" in told.err


def test_lines_and_stages_of_a_job_have_a_switch(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(
        "import time\nfrom torch.utils.data import DataLoader\nclass Slow(list):\n"
        "    def __getitem__(self, index):\n        time.sleep(0.02)\n        return index\n"
        "for _ in DataLoader(Slow(range(90))): pass\n"
    )

    def told(*switches):
        assert doctor.main([*switches, str(path)]) == 0
        return capsys.readouterr().err

    usual = told()
    assert re.search(r"Lines that prepare: train\.py:5, \d+ %, in time\.sleep \(the dataset\)", usual)
    assert "Stages of a batch" not in usual
    assert "Stages of a batch" in told("--probe")
    assert "time.sleep" not in told("--no-lines")


def test_a_loop_that_draws_its_batches_itself_is_told_its_lines(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(
        "import numpy as np, torch\n"
        "data = np.zeros(1_000_000, np.uint16)\n"
        "def get_batch():\n"
        "    return torch.stack([torch.from_numpy(data[i:i + 4000].astype(np.int64)) for i in range(500)])\n"
        "model = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(40):\n"
        "    batch = get_batch()\n"
        "    model(batch[:, :4].float()).sum().backward()\n"
        "    optimizer.step()\n"
    )
    assert doctor.main([str(path)]) == 0
    said = capsys.readouterr().err
    assert "the loop's own thread reads, copies or prepares in " in said
    assert re.search(r"train\.py:4, \d+ %, in .+? \((prepares|reads)\)", said)
    assert "First: let a DataLoader with workers, or a thread, draw the next batch" in said
