"""Each analysis of a step that does not fit into memory says so."""

from __future__ import annotations

from functools import partial

import pytest

from starvelab import Datasets, Hardware, Models, Pipeline

FITS = Pipeline(
    model=Models.ResNet50,
    hardware=Hardware.Cloud.A100,
    dataset=Datasets.ImageNet,
    storage="1 GB/s",
    phase="training",
)
TOO_LARGE = FITS.replace(batch_size=2048)
WHY = (
    "The step needs about 90.11 GB of memory, and NVIDIA A100 80GB SXM has 80 GB. "
    "Use a batch of at most 1817."
)


@pytest.mark.parametrize(
    "ask", [Pipeline.sensitivity, Pipeline.throughput_range, partial(Pipeline.epochs, memory="64 GB")]
)
def test_a_table_of_a_step_that_does_not_fit_says_so_below_it(ask):
    found = ask(TOO_LARGE)
    assert repr(found).splitlines()[-1].endswith(WHY)
    assert f"{WHY}</p>" in found._repr_html_()
    assert "memory, and NVIDIA" not in repr(ask(FITS))


def test_memory_stands_in_the_way_of_workers():
    found = TOO_LARGE.replace(storage=None).workers_needed()
    assert not found.feasible
    assert WHY in found.obstacles
    assert WHY not in FITS.workers_needed().obstacles
    assert not any("needs about" in one for one in FITS.workers_needed(batch_size="any").obstacles)


def test_a_crossover_beyond_the_memory_says_so():
    fed = FITS.replace(storage=None, workers="1e9 img/s")
    found = fed.replace(workers=fed.solve(batch_size=2000).throughput).crossover()
    assert found.starves_from in (2000, 2001)
    assert str(found).endswith(f"Batch {found.starves_from} is not feasible. {found.infeasible_reason}")
    assert found.infeasible_reason.startswith("The step needs about")
    assert FITS.crossover().infeasible_reason == ""
    assert "feasible" not in str(FITS.crossover())


def test_an_accelerator_without_room_for_its_step_is_not_busy():
    rich = TOO_LARGE.replace(storage=None, workers="1e6 img/s")
    assert rich.replace(batch_size=1024).accelerators_fed() > 10
    assert rich.accelerators_fed() == 0
