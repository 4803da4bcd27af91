"""Memory is free as far as the groups of the process leave any, and all that a job started is counted."""

import subprocess
import sys
import time

import pytest

from starvelab_doctor import host


@pytest.mark.parametrize(("own", "files", "free"), [
    ("0::/", {"memory.max": "9000", "memory.current": "8000"}, 1300),  # a container
    # A scheduler's job, and no limit around it.
    ("0::/job/step", {"memory.max": "max", "job/memory.max": "7000", "job/memory.current": "6500"}, 800),
    ("0::/", {"memory.max": "9000", "memory.current": "9800"}, 0),  # over its limit
])  # fmt: skip
def test_memory_is_free_as_far_as_groups_of_the_process_leave_any(monkeypatch, tmp_path, own, files, free):
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(host, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(host, "GROUPS", tmp_path / "all")
    for name, content in files.items():
        path = tmp_path / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        (path.parent / "memory.stat").write_text("anon 5\ninactive_file 300\n")
    assert host.free_memory() == free


@pytest.mark.programs
def test_what_a_process_and_all_that_it_started_computed_is_one_sum():
    # Workers of another loader, and a decoder that an item starts, were taken for other programs.
    compute = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.2: pass"
    started = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {compute!r}]); input()"
    before = host.tree_seconds()
    with subprocess.Popen([sys.executable, "-c", started], stdin=subprocess.PIPE) as child:
        end = time.monotonic() + 20
        while host.tree_seconds() - before < 0.2 and time.monotonic() < end:
            time.sleep(0.02)
        known = host.tree_seconds()
        assert child.poll() is None  # it waits for its input
        assert known - before >= 0.2
        assert (host.busy_cores() or known) >= known  # by these and all other programs
        child.communicate(b"\n")
    assert host.tree_seconds() >= known
