"""Pictures are not painted, as while grading: most tests look at the figure, and painting takes longest."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from matplotlib.figure import Figure

from starvelab import runtime
from starvelab.lesson.show import plots, timelines
from starvelab.lesson.show.figure import render_figure


@pytest.fixture
def painted() -> None:
    """A test asks for this if it looks at the image itself."""


@pytest.fixture(autouse=True)
def _nothing_is_painted_unasked(request: pytest.FixtureRequest) -> Iterator[None]:
    with nullcontext() if "painted" in request.fixturenames else runtime.use(runtime.GRADING):
        yield


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The matplotlib figures behind the pictures that a test draws."""
    figures = []

    def keep(figure, **words):
        figures.append(figure)
        return render_figure(figure, **words)

    for module in (plots, timelines):
        monkeypatch.setattr(module, "render_figure", keep)
    return figures
