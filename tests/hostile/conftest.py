"""The small course, for submissions with an unusual structure."""

from tests.grading.conftest import (  # noqa: F401  (pytest finds fixtures by their names)
    course,
    released_course,
)
