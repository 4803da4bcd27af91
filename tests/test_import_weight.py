"""What `import starvelab` loads: pint and numpy, and nothing a notebook would have to wait for."""

import subprocess
import sys
from itertools import pairwise

import pytest

from tests.assignments import notebooks_of

pytestmark = pytest.mark.programs

HEAVY = ("matplotlib", "ipywidgets", "IPython", "anywidget", "pandas", "tabulate", "PIL", "torch")
ROOMS = ("show", "checks", "measure", "simulate", "widgets")
LAYERS = {f"starvelab.{name}" for name in ROOMS}
PIPELINE = "Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, storage=Storage.HDD)"
FIGURES = "from starvelab.show import svg, stage_bars, table"


def loaded_by(*lines: str) -> list[set[str]]:
    """What of it is in memory after each of these lines of a fresh interpreter, and was not before it."""
    report = f"print('loaded', *({{*{HEAVY!r}, *{LAYERS!r}}} & sys.modules.keys()))"
    code = "\n".join(["import sys", *(f"{line}\n{report}" for line in lines)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    words = (line.split() for line in done.stdout.splitlines() if line.startswith("loaded"))
    found = [{"loaded"}, *map(set, words)]
    return [now - before for before, now in pairwise(found)]


@pytest.mark.needs("starvelab_doctor")
def test_what_a_notebook_begins_with_loads_nothing_heavy_and_upper_layers_when_they_are_asked_for():
    assert loaded_by(
        "import starvelab; from starvelab import *", f"{PIPELINE}.solve()._repr_html_()",
        "from starvelab.host import usable_cores; usable_cores()", f"{PIPELINE}.simulate()._repr_html_()",
        "import starvelab_doctor", FIGURES,
    ) == [set(), set(), set(), {"starvelab.simulate"}, set(), {"starvelab.show"}]  # fmt: skip


def test_a_heavy_package_is_noticed_where_it_is_needed():
    drawn, tabled, with_widgets, checked = loaded_by(
        f"from starvelab import *; import starvelab.show; pipelines = {{'one': {PIPELINE}}}\n"
        "starvelab.show.over_workers(pipelines, workers=[1, 8])",
        "import starvelab; starvelab.show.table(['a'], [[1]])",
        "starvelab.widgets",
        "starvelab.checks",
    )
    assert drawn & set(HEAVY) == {"matplotlib", "PIL"}
    assert (tabled, checked - LAYERS) == ({"tabulate"}, set())
    assert {"ipywidgets", "starvelab.widgets"} <= with_widgets
    assert "starvelab.measure" not in with_widgets


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


@pytest.mark.needs("starvelab_doctor")
def test_the_first_assignment_runs_to_its_end_without_processes(tmp_path, repository):
    for notebook in notebooks_of("starving-the-gpu"):
        notebook.lock_predictions(tmp_path)  # so that answers and pictures are shown
    code = f"""
from starvelab_doctor import *
from starvelab.measure import *
import starvelab.checks, starvelab.widgets
print(diagnose({{'nothing': '2 / s', 'host batch': '4 / s', 'device batch': '8 / s'}}).bottleneck)
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
pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8)
print("<svg" in show.stage_bars(pipeline.solve())._repr_html_())
"""
    assert run_in_a_browser(code, tmp_path).splitlines() == ["read + decode + transform + collate", "True"]


def test_the_names_of_the_lab_exist_and_complete_with_tab_and_no_others():
    import starvelab

    assert {*ROOMS, "Pipeline", "Q_"} <= set(dir(starvelab))
    assert None not in [getattr(starvelab, name) for name in (*starvelab.__all__, *ROOMS)]
    with pytest.raises(AttributeError, match="module 'starvelab' has no attribute 'pipelines'"):
        _ = starvelab.pipelines
