"""Environment variables that are set for a while and then put back, whatever happens meanwhile.

nbgrader's own function for this, `nbgrader.utils.setenv`, puts nothing back after an error, and deletes a
variable that was set before. One submission that cannot be graded would then leave its process, such as the
JupyterLab that formgrader runs in, as one that grades: from then on figures come out empty and reveals store
nothing. So nbgrader is given ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import nbgrader.utils


@contextmanager
def environment_with(**variables: str) -> Iterator[None]:
    """Set these environment variables, and put back what they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# Its converters look the function up in its module at each call.
nbgrader.utils.setenv = environment_with
