"""Pictures are not painted, as while grading: most tests look at the figure, and painting takes longest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import ModuleType

import pytest
from matplotlib.figure import Figure

from starvelab import runtime


@pytest.fixture
def painted() -> None:
    """A test asks for this if it looks at the image itself."""


@pytest.fixture(autouse=True)
def _nothing_is_painted_unasked(request: pytest.FixtureRequest) -> Iterator[None]:
    with nullcontext() if "painted" in request.fixturenames else runtime.use(runtime.GRADING):
        yield


@pytest.fixture
def drawn_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], list[Figure]]:
    """Keeps the matplotlib figures behind the pictures that a module draws."""

    def keep_those_of(module: ModuleType) -> list[Figure]:
        figures = []
        rendered = module.render_figure

        def keep(figure, **words):
            figures.append(figure)
            return rendered(figure, **words)

        monkeypatch.setattr(module, "render_figure", keep)
        return figures

    return keep_those_of
