"""The small course, for hand-ins that are odd in structure."""

from tests.grading.conftest import (  # noqa: F401  (pytest finds fixtures by their names)
    _programs_beside_python_are_found,
    course,
    released_course,
)
