"""What a test leaves behind is looked for where no test of anybody else, and no user, writes."""

import os
import pwd
from pathlib import Path

from tests.leaks import Snapshot


def test_a_lab_that_the_same_user_runs_beside_the_tests_is_no_leftover():
    """What somebody writes in another window stands in the user's own home and course, which no test has."""
    users = Path(pwd.getpwuid(os.getuid()).pw_dir)
    watched = [Path(folder) for folder in Snapshot.take().files]
    assert Path.cwd() in watched
    assert Path.home() != users
    assert not any(folder.is_relative_to(users) for folder in watched if folder != Path.cwd())
