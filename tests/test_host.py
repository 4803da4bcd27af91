"""Cores are counted as this process may use them, and the cache folder is where the variable says."""

import os
import shutil
import subprocess
import sys

import pytest

from starvelab.host import cache_folder, has_processes, usable_cores

pytestmark = pytest.mark.programs


def test_there_are_as_many_as_the_process_may_use():
    assert 1 <= usable_cores(physical=True) <= usable_cores() <= os.cpu_count()


def test_without_loky_and_in_a_browser_the_cores_of_the_host_are_counted(monkeypatch):
    assert has_processes()
    monkeypatch.setitem(sys.modules, "loky", None)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert usable_cores(physical=True) == 3
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert not has_processes()
    assert usable_cores(physical=True) == 5


@pytest.mark.skipif(shutil.which("taskset") is None, reason="needs taskset to take cores away")
def test_cores_that_were_taken_away_do_not_count():
    core = min(os.sched_getaffinity(0))
    code = "from starvelab.host import usable_cores; print(usable_cores(), usable_cores(physical=True))"
    command = ["taskset", "-c", str(core), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]


def test_the_cache_folder_is_the_variable_s_or_else_the_user_s_own(monkeypatch, tmp_path):
    monkeypatch.setenv("STARVELAB_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("STARVELAB_CACHE")
    assert cache_folder().name == "starvelab"
