"""Temporary folders: what a killed grader leaves of submissions is removed by the next one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from starvelab_grader import files
from starvelab_grader.files import SCRATCH, SCRATCH_AGE, scratch_folder

HOLDS_A_SUBMISSION = """
import time
from starvelab_grader.files import scratch_folder
with scratch_folder() as folder:
    (folder / "one.ipynb").write_text("private")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder of temporary files, which this process and its children use."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files._remove_abandoned.cache_clear()
    yield tmp_path
    files._remove_abandoned.cache_clear()


def test_what_a_killed_grader_leaves_goes_and_what_others_hold_stays(temporary):
    command = [sys.executable, "-c", HOLDS_A_SUBMISSION]
    killed, alive = (subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in "ab")
    try:
        left, held = (Path(each.stdout.readline().strip()) for each in (killed, alive))
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        elsewhere = temporary / "elsewhere"
        elsewhere.mkdir()
        (temporary / f"{SCRATCH}link").symlink_to(elsewhere)
        new = temporary / f"{SCRATCH}new"
        new.mkdir()
        for path in (left.parent, held.parent, elsewhere):
            old = path.stat().st_mtime - 2 * SCRATCH_AGE
            os.utime(path, (old, old))
        assert left.is_dir(), "kill -9 leaves it"
        with scratch_folder() as folder:
            assert folder.is_dir()
            assert not left.parent.exists()
            assert (held / "one.ipynb").read_text() == "private"
            assert elsewhere.is_dir()
            assert new.is_dir(), "somebody is making it"
        assert not folder.parent.exists()
    finally:
        for each in (killed, alive):
            each.kill()
            each.communicate()


def test_every_temporary_folder_of_the_grader_is_such_a_one():
    """But for those beside the folder that they take the place of."""
    package = Path(files.__file__).parent
    using = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "TemporaryDirectory(" in path.read_text() or "mkdtemp(" in path.read_text()
    }
    assert using == {"files.py", "sandbox/cgroup.py"}, "files.py has the two kinds; a cgroup holds no file"
