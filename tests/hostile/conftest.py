"""The small course, for submissions with an unusual structure."""

from tests.grader.conftest import (  # noqa: F401  (pytest finds fixtures by their names)
    _programs_beside_python_are_found,
    _what_sqlalchemy_has_compiled_is_kept,
    course,
    one_sandbox,
    pytest_collection_modifyitems,
    released_course,
)
