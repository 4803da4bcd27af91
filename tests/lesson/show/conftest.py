"""Pictures are not painted: most tests look at the figure, and painting takes longest."""

import pytest
from matplotlib.figure import Figure

from starvelab.lesson.show import plots, timelines
from starvelab.lesson.show.figure import render_figure


@pytest.fixture
def painted() -> None:
    """A test asks for this if it looks at the image itself."""


@pytest.fixture(autouse=True)
def _nothing_is_painted_unasked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "painted" not in request.fixturenames:
        monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The matplotlib figures behind the pictures that a test draws."""
    figures = []

    def keep(figure, **words):
        figures.extend([] if isinstance(figure, str) else [figure])
        return render_figure(figure, **words)

    for module in (plots, timelines):
        monkeypatch.setattr(module, "render_figure", keep)
    return figures
