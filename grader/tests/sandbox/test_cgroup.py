"""Control groups: their limits, who enters them, and where they can be made."""

import os
import subprocess
from pathlib import Path

import pytest

from starvelab_grader.sandbox import cgroup, process

pytestmark = pytest.mark.programs

LIMITS = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max")


@pytest.fixture
def kernel(monkeypatch):
    """Files appear in a new group, as the kernel makes them, and go with it."""

    def made(folder: Path) -> Path:
        for name in (*LIMITS, "cgroup.procs", "cgroup.kill", "cgroup.events"):
            (folder / name).write_text("populated 0" if name == "cgroup.events" else "")
        return folder

    make = cgroup.tempfile.mkdtemp
    monkeypatch.setattr(cgroup.tempfile, "mkdtemp", lambda **where: str(made(Path(make(**where)))))

    def remove(folder: Path) -> None:
        for path in folder.iterdir():
            path.unlink()
        os.rmdir(folder)

    monkeypatch.setattr(Path, "rmdir", remove)


def test_a_group_limits_memory_processes_and_processor_time(tmp_path, kernel):
    group = cgroup.ControlGroup.make(tmp_path, memory=300_000_000, processes=20)
    found = [(group.folder / name).read_text() for name in LIMITS]
    assert found == ["300000000", "0", "1", "20", "100000 100000"]
    group.kill()  # at once: one after the other, each could start another meanwhile
    assert (group.folder / "cgroup.kill").read_text() == "1"
    group.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_command_enters_the_group_before_it_begins_and_gets_nothing_of_the_environment(tmp_path, kernel):
    group = cgroup.ControlGroup.make(tmp_path, memory=1, processes=1)
    command = group.command(["/bin/sh", "-c", "echo $$; echo $SECRET"])
    said = subprocess.check_output(command, env={"SECRET": "of the instructor"}, text=True)
    assert (group.folder / "cgroup.procs").read_text() == "0\n"  # 0 is whoever writes it
    assert said.strip().isdigit()


def test_where_a_limit_is_unknown_no_group_is_left(tmp_path):
    with pytest.raises(FileNotFoundError):
        cgroup.ControlGroup.make(tmp_path, memory=1, processes=1)
    assert list(tmp_path.iterdir()) == []
    assert cgroup._works(tmp_path) is False
    assert cgroup._works(tmp_path / "missing") is False


def test_a_command_that_cannot_enter_does_not_run(tmp_path):
    command = cgroup.ControlGroup(tmp_path / "missing").command(["/bin/sh", "-c", "echo it runs"])
    assert "it runs" not in subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_groups_are_looked_for_from_that_of_this_process_upwards(tmp_path):
    (tmp_path / "cgroup").write_text("4:memory:/old\n0::/user.slice/app.slice/shell.scope\n")
    (tmp_path / "mountinfo").write_text(
        "1 1 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
    )
    found = [str(path) for path in cgroup._above_this_process(tmp_path)]
    top = "/sys/fs/cgroup"
    assert found == [
        f"{top}/user.slice/app.slice/shell.scope", f"{top}/user.slice/app.slice", f"{top}/user.slice", top,
    ]  # fmt: skip
    assert list(cgroup._above_this_process(tmp_path / "missing")) == []


def test_empty_groups_of_graders_that_are_gone_are_removed_when_a_place_is_found(
    tmp_path, kernel, monkeypatch
):
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    for name in (f"starvelab-{ended.pid}-a", f"starvelab-{os.getpid()}-b", "of-somebody-else"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.events").write_text("populated 0")
    monkeypatch.setattr(cgroup, "_above_this_process", lambda: [tmp_path / "useless", tmp_path])
    monkeypatch.setattr(cgroup, "_works", lambda folder: folder == tmp_path)
    assert cgroup.place.__wrapped__() == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "of-somebody-else", f"starvelab-{os.getpid()}-b",
    ]  # fmt: skip


def test_a_sandbox_gets_a_group_with_the_limits_of_a_sandbox(tmp_path, kernel, monkeypatch):
    monkeypatch.setattr(cgroup, "place", lambda: tmp_path)
    group = process._group()
    assert (group.folder / "memory.max").read_text() == str(process.MAX_MEMORY)
    assert (group.folder / "pids.max").read_text() == str(process.LIMITS["RLIMIT_NPROC"])
    group.remove()
    monkeypatch.setattr(cgroup, "place", lambda: tmp_path / "gone")
    assert process._group() is None
