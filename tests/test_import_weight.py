"""What `import starvelab` loads: pint and numpy, and nothing a notebook would have to wait for."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("matplotlib", "ipywidgets", "IPython", "anywidget", "pandas", "tabulate")


def loaded_by(code):
    """The heavy packages in memory after a fresh interpreter has run `code`."""
    report = f"{code}\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_lab_loads_nothing_heavy():
    assert loaded_by("import starvelab") == set()


def test_solving_a_pipeline_loads_nothing_heavy():
    solve = "Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, storage=Storage.HDD).solve()"
    assert loaded_by(f"from starvelab import *; {solve}._repr_html_()") == set()


def test_simulating_a_loader_loads_nothing_heavy():
    code = (
        "from starvelab.simulate import *; "
        "simulate(Loader(step_time='20 ms', prepare_time='50 ms', in_order=False))._repr_html_()"
    )
    assert loaded_by(code) == set()


def test_counting_cores_loads_no_images():
    code = "from starvelab.host import usable_cores; usable_cores(); import sys; print('PIL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("code", "package"),
    [
        ("import matplotlib", "matplotlib"),
        ("import ipywidgets", "ipywidgets"),
        ("import starvelab; starvelab.widgets", "ipywidgets"),
        ("import starvelab; starvelab.show.table(['a'], [[1]])", "tabulate"),
    ],
)
def test_a_heavy_package_would_be_noticed(code, package):
    # What the code itself prints is no package's name, so it does no harm to the report.
    assert package in loaded_by(code)


@pytest.mark.parametrize("name", ["show", "checks", "simulate", "widgets"])
def test_the_upper_layers_load_when_they_are_first_asked_for(name):
    code = (
        f"import sys, starvelab; before = 'starvelab.{name}' in sys.modules; starvelab.{name}; print(before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_measuring_is_imported_where_there_are_no_processes():
    # As in a browser's Python, which has neither these packages nor processes. Pint asks for dask.
    code = (
        "import sys; "
        "sys.modules.update(dict.fromkeys(['psutil', 'loky', 'PIL', 'dask', '_multiprocessing'])); "
        "from starvelab.measure import *; "
        "print(diagnose({'nothing': '2 / s', 'host batch': '4 / s', 'device batch': '8 / s'}).bottleneck)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("read + decode + transform + collate", "")


def test_the_upper_layers_complete_with_tab_before_they_are_loaded():
    import starvelab

    assert {"show", "checks", "simulate", "widgets", "Pipeline", "Q_"} <= set(dir(starvelab))


def test_a_name_that_the_lab_does_not_have_is_an_ordinary_attribute_error():
    import starvelab

    with pytest.raises(AttributeError, match="module 'starvelab' has no attribute 'pipelines'"):
        _ = starvelab.pipelines


def test_every_public_name_exists():
    import starvelab

    for name in starvelab.__all__:
        assert getattr(starvelab, name) is not None
