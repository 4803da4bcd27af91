"""In which order the tests run, and which of them share a process.

Markers say what a test needs (pyproject.toml explains them), and pytest's `-m` leaves tests out.
"""

from importlib.util import find_spec
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

BROWSER = "browser"  # the folder, in each house
# Whoever asks for a released course has its reference solution graded in the sandbox.
COURSE = "released_course"
# The one notebook for which the doctor is installed beside the lab.
DOCTOR_NOTEBOOK = "09_your_own_job"


@pytest.hookimpl(tryfirst=True)  # before pytest's own, which leaves out what `-m` names
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark who drives a browser or grades a course, and begin with the longest, so that none runs alone."""
    for item in items:
        if BROWSER in item.path.parts:
            item.add_marker(pytest.mark.browser)
        if COURSE in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.sandbox)
        if DOCTOR_NOTEBOOK in item.name:
            item.add_marker(pytest.mark.needs("starvelab_doctor"))
        packages = {name for marker in item.iter_markers("needs") for name in marker.args}
        if missing := sorted(name for name in packages if find_spec(name) is None):
            item.add_marker(pytest.mark.skip(f"needs {', '.join(missing)}"))
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """The place of a test in the order of the run: all that share the browser come first."""
    return 0 if item.get_closest_marker("browser") else 1 if item.get_closest_marker("long") else 2


class _ByFile(LoadScopeScheduling):
    """The tests of a file run in one process, and those that share the browser do too."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return BROWSER if f"/{BROWSER}/" in file else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    """Deal the tests out by file."""
    return _ByFile(config, log)
