"""What nearly every notebook does once, done before a runner forks: the catalogue read, an error shown.

Imported for that alone, so that no notebook pays for it again.
"""

from __future__ import annotations

import contextlib
import sys

from IPython.core.ultratb import VerboseTB

from ... import Hardware, Links, Models, Storage


def _fail() -> None:
    try:
        raise RuntimeError("a rehearsal")
    except RuntimeError:
        VerboseTB().structured_traceback(*sys.exc_info())


for part in (Hardware, Links, Models, Storage):
    dir(part)  # reads its file
# A library that has changed makes notebooks slower, and no more than that.
with contextlib.suppress(Exception):
    _fail()
