"""The fixture that every test has: what a test leaves behind makes it fail; all others show what does not."""

import os
import pwd
import re
from pathlib import Path

import pytest

from tests.harness import REPOSITORY
from tests.leaks import Snapshot

pytestmark = pytest.mark.programs

# Tests as somebody may write them, and more of them from LEFT.
MADE_UP = """
import os, subprocess, sys, threading, time
from pathlib import Path
import pytest

SLEEP = [sys.executable, "-IS", "-c", "import time; time.sleep(60)"]

@pytest.fixture(scope="module")
def server():
    os.environ["SERVER"] = "runs"
    process = subprocess.Popen(SLEEP)
    ended = threading.Event()
    threading.Thread(target=ended.wait, name="of the server").start()
    Path("server.log").touch()
    yield process
    ended.set()
    process.kill()
    process.wait()
    del os.environ["SERVER"]

def test_a_server_that_is_asked_for_in_the_middle(request): request.getfixturevalue("server")

def test_a_server_that_runs_already(server): assert os.environ["SERVER"] == "runs"
"""
# What a test does, and what is said of it; each test after it finds all as it was.
LEFT = {
    'os.environ["NEW"] = "1"': "the variable NEW: it was None and is '1'",
    'assert "NEW" not in os.environ; del os.environ["KNOWN"]': "the variable KNOWN: it was '1' and is None",
    'os.environ["KNOWN"] += "0"': "the variable KNOWN: it was '1' and is '10'",
    'threading.Thread(target=time.sleep, args=[3], name="nap", daemon=True).start()': "the thread nap",
    "sys.kept = subprocess.Popen(SLEEP)": r"the process \d+: .+ -IS -c import time; time\.sleep\(60\)",
    'sys.kept.wait(20); Path("left.txt").touch()': r"the file .+/left\.txt",
    "os.chdir(tmp_path)": r"the current folder is .+/test_left_60",
    'request.getfixturevalue("server"); os.umask(0o070)': "new files get the umask 070",
}


def test_each_kind_of_leftover_fails_its_test_and_no_other(pytester, monkeypatch):
    monkeypatch.setenv("KNOWN", "1")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv("COLUMNS", "1000")  # for a summary of whole messages
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(
        "from tests import leaks\n"
        "from tests.leaks import every_test_leaves_things_as_they_were, pytest_fixture_setup\n"
        "leaks.END_TIMEOUT = 1.0\n"
    )
    tests = [f"def test_left_{number}(request, tmp_path): {line}" for number, line in enumerate(LEFT)]
    pytester.makepyfile(test_made_up="\n".join([MADE_UP, *tests]))
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--tb=no")
    done.assert_outcomes(passed=2 + len(LEFT), errors=len(LEFT))
    messages = re.findall(r"^ERROR \S+::test_left_\d - Failed: (.*)$", done.stdout.str(), re.MULTILINE)
    for message, left in zip(messages, LEFT.values(), strict=True):
        assert re.fullmatch(f"This test leaves behind {left}\\.", message)


def test_a_lab_that_the_same_user_runs_beside_the_tests_is_no_leftover():
    """What somebody writes in another window stands in the user's own home and course, which no test has."""
    users = Path(pwd.getpwuid(os.getuid()).pw_dir)
    watched = [Path(folder) for folder in Snapshot.take().files]
    assert Path.cwd() in watched
    assert Path.home() != users
    assert not any(folder.is_relative_to(users) for folder in watched if folder != Path.cwd())
