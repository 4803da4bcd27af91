"""The fixture that every test has: what a test leaves behind makes it fail; all others show what does not."""

import os
import pwd
import re
from pathlib import Path

import pytest

from tests.harness import REPOSITORY
from tests.leaks import Snapshot

pytestmark = pytest.mark.programs

# Tests as somebody may write them; LEFT says which of them leave something behind.
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

@pytest.fixture
def careless():
    yield
    os.environ["FROM_A_FIXTURE"] = "1"

def test_a_variable_that_is_new(): os.environ["NEW"] = "1"

def test_a_variable_that_is_gone(): del os.environ["KNOWN"]

def test_a_variable_that_is_other(): os.environ["KNOWN"] = "other"

def test_variables_are_put_back_for_the_next():
    assert os.environ["KNOWN"] == "1"
    assert "NEW" not in os.environ

def test_a_fixture_of_its_own(careless): pass

def test_a_thread(): threading.Thread(target=time.sleep, args=[3], name="sleeper", daemon=True).start()

def test_a_process(): sys.kept = subprocess.Popen(SLEEP)

def test_a_process_is_ended_for_the_next(): sys.kept.wait(20)

def test_a_file(): Path("left.txt").touch()

def test_another_folder(tmp_path): os.chdir(tmp_path)

def test_a_server_that_is_asked_for(server): assert server.poll() is None

def test_a_server_that_runs_already(server): assert os.environ["SERVER"] == "runs"
"""
MADE_UP_LATE = """
import os, subprocess, sys, threading
import pytest

@pytest.fixture(scope="session")
def late():
    os.environ["LATE"] = "1"
    process = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(60)"])
    ended = threading.Event()
    threading.Thread(target=ended.wait).start()
    yield
    ended.set()
    process.kill()
    process.wait()
    del os.environ["LATE"]

def test_a_server_that_is_asked_for_in_the_middle(request): request.getfixturevalue("late")

def test_a_server_is_no_excuse(request):
    request.getfixturevalue("late")
    os.environ["NEW"] = "1"
"""
LEFT = {
    "test_a_variable_that_is_new": "the variable NEW: it was None and is '1'",
    "test_a_variable_that_is_gone": "the variable KNOWN: it was '1' and is None",
    "test_a_variable_that_is_other": "the variable KNOWN: it was '1' and is 'other'",
    "test_a_fixture_of_its_own": "the variable FROM_A_FIXTURE: it was None and is '1'",
    "test_a_thread": "the thread sleeper",
    "test_a_process": r"the process \d+: \S+ -IS -c import time; time\.sleep\(60\)",
    "test_a_file": r"the file \S+/left\.txt",
    "test_another_folder": r"the current folder is \S+/test_another_folder0",
    "test_a_server_is_no_excuse": "the variable NEW: it was None and is '1'",
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
    pytester.makepyfile(test_made_up=MADE_UP, test_made_up_late=MADE_UP_LATE)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--tb=no")
    done.assert_outcomes(passed=(MADE_UP + MADE_UP_LATE).count("def test_"), errors=len(LEFT))
    messages = dict(re.findall(r"^ERROR \S+::(\w+) - Failed: (.*)$", done.stdout.str(), re.MULTILINE))
    for name, left in LEFT.items():
        assert re.fullmatch(f"This test leaves behind {left}\\.", messages[name])


def test_a_lab_that_the_same_user_runs_beside_the_tests_is_no_leftover():
    """What somebody writes in another window stands in the user's own home and course, which no test has."""
    users = Path(pwd.getpwuid(os.getuid()).pw_dir)
    watched = [Path(folder) for folder in Snapshot.take().files]
    assert Path.cwd() in watched
    assert Path.home() != users
    assert not any(folder.is_relative_to(users) for folder in watched if folder != Path.cwd())
