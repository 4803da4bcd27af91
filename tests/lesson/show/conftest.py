"""Pictures are not painted, as while grading: most tests look at the figure, and painting takes longest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from starvelab import runtime


@pytest.fixture
def painted() -> None:
    """A test asks for this if it looks at the image itself."""


@pytest.fixture(autouse=True)
def _nothing_is_painted_unasked(request: pytest.FixtureRequest) -> Iterator[None]:
    with nullcontext() if "painted" in request.fixturenames else runtime.use(runtime.GRADING):
        yield
