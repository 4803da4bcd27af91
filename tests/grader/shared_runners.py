"""The runners that the tests of one process share: to start the one of the checks takes a second."""

from __future__ import annotations

from starvelab_grader.sandbox.process import Runners

RUNNERS = Runners()
