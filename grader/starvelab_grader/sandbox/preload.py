"""Work that nearly every notebook needs, done once before a runner forks.

A runner imports this module only for its effects: what packages of the course need has been imported and
read, and an error has been shown.
"""

from __future__ import annotations

import contextlib
import sys

from IPython.core.ultratb import VerboseTB

from ..plugins import functions


def _fail() -> None:
    try:
        raise RuntimeError("an error to show")
    except RuntimeError:
        VerboseTB().structured_traceback(*sys.exc_info())


for preload in functions("preload"):
    preload()
# If a library has changed, notebooks become slower, and nothing else happens.
with contextlib.suppress(Exception):
    _fail()
