"""The small course, for submissions with an unusual structure."""

from tests.grader.conftest import (  # noqa: F401  (pytest finds fixtures by their names)
    _programs_beside_python_are_found,
    course,
    released_course,
)
