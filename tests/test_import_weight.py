"""What `import starvelab` loads: pint and numpy, and nothing a notebook would have to wait for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.assignments import notebooks_of

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


def test_figures_load_matplotlib_when_one_is_drawn():
    code = "from starvelab.show import svg, stage_bars, table, whole_pipeline"
    assert loaded_by(code) == set()
    assert loaded_by(f"{code}; whole_pipeline()") == {"matplotlib"}


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


@pytest.mark.parametrize("name", ["show", "checks", "jobs", "simulate", "widgets"])
def test_the_upper_layers_load_when_they_are_first_asked_for(name):
    code = (
        f"import sys, starvelab; before = 'starvelab.{name}' in sys.modules; starvelab.{name}; print(before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# What a browser's Python lacks: processes, threads, and packages that are not there. Pint asks for dask.
BROWSER = """
import sys, threading
import IPython, ipywidgets, multiprocessing, concurrent.futures
missing = ["psutil", "loky", "filelock", "PIL", "matplotlib", "dask", "_multiprocessing"]
sys.modules.update(dict.fromkeys(missing))
def refuse(self): raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
sys.platform = "emscripten"
"""


def run_in_a_browser(code, folder):
    """What `code` prints where none of this is there; the folder is the notebook's."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BROWSER + code], cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_measuring_is_imported_where_there_are_no_processes(tmp_path):
    code = (
        "from starvelab.jobs import *; from starvelab.measure import *; "
        "import starvelab.checks, starvelab.widgets; "
        "print(diagnose({'nothing': '2 / s', 'host batch': '4 / s', 'device batch': '8 / s'}).bottleneck)"
    )
    assert run_in_a_browser(code, tmp_path) == "read + decode + transform + collate"


def test_the_first_assignment_runs_to_its_end_without_processes_and_matplotlib(tmp_path, repository):
    for notebook in notebooks_of("starving-the-gpu"):
        notebook.lock_predictions(tmp_path)  # so that answers and pictures are shown
    code = f"""
import io, json, os
from contextlib import redirect_stdout
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell
shell, shown = InteractiveShell.instance(), io.StringIO()
os.environ["STARVELAB_CACHE"] = os.getcwd()
for notebook in sorted(Path({str(repository)!r}, "solutions/starving-the-gpu").glob("*.ipynb")):
    with redirect_stdout(shown):
        shell.reset()
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            with redirect_stdout(shown):
                result = shell.run_cell("".join(cell["source"]), store_history=True)
            if not result.success:
                print(notebook.stem, "".join(cell["source"])[:80], result.error_in_exec)
from starvelab import Hardware, Models, Pipeline, show
step = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8).solve()
print(show.timeline(step)._repr_html_()[:62])
"""
    begins = '<figure style="margin:0.5em 0"><figcaption>The first 5 batches.'
    assert run_in_a_browser(code, tmp_path) == begins[:62]


def test_the_upper_layers_complete_with_tab_before_they_are_loaded():
    import starvelab

    assert {"show", "checks", "jobs", "simulate", "widgets", "Pipeline", "Q_"} <= set(dir(starvelab))


def test_a_name_that_the_lab_does_not_have_is_an_ordinary_attribute_error():
    import starvelab

    with pytest.raises(AttributeError, match="module 'starvelab' has no attribute 'pipelines'"):
        _ = starvelab.pipelines


def test_every_public_name_exists():
    import starvelab

    for name in starvelab.__all__:
        assert getattr(starvelab, name) is not None
