"""A training of a framework that has the loop to itself: what the callbacks for all of them share."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from ..finding.job import JobFinding
from .hooks import Doctor
from .recorder import Recorder

OWN_LOOP = "Install it, or put watch(loader) around the loader of your own loop."  # without a framework


class WatchedTraining:
    """Watches each loop over a DataLoader from the beginning of a training to its end.

    The framework's own class of callbacks stands behind it as the second base.
    """

    def __init__(self, *, progress: bool = True) -> None:
        super().__init__()
        self._doctor, self._watching, self._progress = Doctor(), ExitStack(), progress

    @property
    def result(self) -> JobFinding:
        """What was found of the loop that took longest so far, also while the training runs."""
        loops = self._doctor.results()
        return loops[0][1] if loops else Recorder().finding()

    def _begin(self) -> None:
        self._watching.enter_context(self._doctor.watching())

    def _end(self) -> None:
        self._watching.close()
        if self._progress:
            for name, finding in self._doctor.results():
                print(f"{name}: {finding.summary}", file=sys.stderr)
