"""Notebooks run to their end, once for all tests that look at what they show."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from filelock import FileLock
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

from starvelab.runtime import Runtime
from tests.assignments import Notebook

# The one in which pipelines run live; in the others what they would measure is simulated.
LIVE = "master-the-loader/01_write_the_loader"

# Run before each notebook: a kernel, and what it imports that is not ours, takes longest to start.
BEGIN_ANEW = """
import os as _os, sys as _sys
_os.chdir({folder!r})
_os.environ.update({environment!r})
{forget}
get_ipython().reset()
"""
# Where the same notebook ran just before, its modules stay, and what they kept of it does not.
ALL = """for _name in [name for name in _sys.modules if name.partition(".")[0] == "starvelab"]:
    del _sys.modules[_name]"""
WHAT_IT_KEPT = """from starvelab.lesson.widgets import cells as _cells, store as _store
for _kept in (_cells.LOG, _store.KERNEL):
    vars(_kept).update(vars(type(_kept)()))"""


@dataclass(frozen=True)
class Run:
    """A notebook that was run to its end, and what it showed."""

    source: Notebook  # as it is authored
    path: Path  # where the executed notebook stands, with its outputs and the state of its widgets

    @cached_property
    def notebook(self) -> NotebookNode:
        """The executed notebook."""
        return nbformat.read(self.path, as_version=4)

    @property
    def code(self) -> list[NotebookNode]:
        """Its code cells."""
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    def cells_with(self, function: str) -> list[NotebookNode]:
        """The cells that call a function."""
        cells = self.notebook.cells
        return [cells[position] for position, _ in self.source.calls(function)]

    @property
    def outputs(self) -> Iterator[NotebookNode]:
        """The outputs of all cells."""
        return (output for cell in self.code for output in cell.outputs)

    @property
    def html(self) -> list[str]:
        """Every piece of HTML, in outputs and in widgets."""
        shown = [output.data["text/html"] for output in self.outputs if "text/html" in output.get("data", {})]
        return shown + self.in_widgets

    def pictures(self, cell: NotebookNode) -> str:
        """What the pictures of a cell tell: their alt texts, and what those that move say of their data."""
        models = self.notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
        shown = [output.get("data", {}) for output in cell.outputs]
        html = [one.get("text/html", "") for one in shown]
        views = (one.get("application/vnd.jupyter.widget-view+json", {}).get("model_id") for one in shown)
        pending, told = [view for view in views if view], []
        for name in pending:
            state = models[name]["state"]
            pending += [child.removeprefix("IPY_MODEL_") for child in state.get("children", ())]
            if isinstance(state.get("value"), str):
                html.append(state["value"])
            if "run" in (state.get("data") or {}):
                told.append(what_moves(state["data"]))
        alts = re.findall(r"""alt="([^"]*)"|<(?:title|desc)[^>]*>([^<]*)<""", "\n".join(html))
        return "\n".join([*told, *map("".join, alts)])

    @property
    def in_widgets(self) -> list[str]:
        """The HTML in widgets."""
        models = self.notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
        return [one["state"].get("value", "") for one in models.values() if one["model_name"] == "HTMLModel"]


def what_moves(data: dict[str, Any]) -> str:
    """What a moving picture says of its run: the times of a batch, busy shares, and who binds."""
    run, end = data["run"], data["run"]["end"]
    columns = {name: np.array(value) for name, value in run.items() if isinstance(value, list)}
    parts = {
        "storage": ("read_start", "read_done"),
        "CPU": ("prepare_start", "prepared"),
        "link": ("copy_start", "copied"),
        "accelerator": ("step_start", "step_end"),
    }
    took = {name: columns[b] - columns[a] for name, (a, b) in parts.items() if a in columns}
    times = {name: float(each.mean()) / (run["lanes"] if name == "CPU" else 1) for name, each in took.items()}
    waits = 1 - times["accelerator"] * (columns["step_end"] <= end + 1e-6).sum() / end
    labels = {one["name"]: one["label"] for one in data["resources"]}
    busy = " ".join(f"{time:.3g} ms {100 * time / max(times.values()):.0f} %" for time in times.values())
    return f"{labels[max(times, key=times.get)]} binds: it waits {100 * waits:.0f} %. {busy}"


@contextmanager
def kernel(folder: Path) -> Iterator[KernelManager]:
    """A kernel that has started, for one notebook after the other, with its sockets in `folder`."""
    # Without ports: while two programs look for free ones, both may find the same.
    started = KernelManager(transport="ipc", ip=str(folder / "socket"))
    started.start_kernel()
    try:
        yield started
    finally:
        started.shutdown_kernel(now=True)


def run_once(source: Notebook, folder: Path, kernel: KernelManager, *, predictions: bool) -> Run:
    """A notebook run with its predictions locked beforehand, or without any, by whoever asks for it first.

    `folder` is that of all processes of the test run, and `kernel` that of this one.
    """
    folder = folder / source.assignment / source.name
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / f"predictions-{predictions}.ipynb"
    with FileLock(f"{wanted.parent}.lock"):
        if not wanted.exists():
            for locked in (False, True):
                _execute(source, folder / f"predictions-{locked}", kernel, predictions=locked)
    return Run(source, wanted)


def _execute(source: Notebook, folder: Path, kernel: KernelManager, *, predictions: bool) -> None:
    """Run a notebook in `folder`, and write it beside that."""
    # A notebook that measures does so once: without predictions nothing depends on what was measured.
    runtime = Runtime(clock="live" if predictions and str(source) == LIVE else "simulated")
    folder.mkdir()
    notebook = nbformat.read(shutil.copy(source.solution, folder), as_version=4)
    if predictions:
        source.lock_predictions(folder)
    for cell in notebook.cells:
        if cell.id == "without-widgets" and not predictions:
            # Here the instructor's answer locks every prediction, and that opens the explorers above it.
            cell.source = "def without_widgets():\n    return {}"
    _run_anew(notebook, folder, kernel, runtime, WHAT_IT_KEPT if predictions else ALL)
    nbformat.write(notebook, folder.with_suffix(".ipynb"))


def _run_anew(
    notebook: NotebookNode, folder: Path, kernel: KernelManager, runtime: Runtime, forget: str
) -> None:
    """Run a notebook in a kernel in which none of its cells has run."""
    begin = BEGIN_ANEW.format(folder=str(folder), environment=runtime.environment(), forget=forget)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(begin))
    client = NotebookClient(notebook, timeout=300, startup_timeout=300, allow_errors=True, km=kernel)
    client.execute()
    client.kc.stop_channels()
    first = notebook.cells.pop(0)
    assert first.outputs == []


def run_alone(sources: list[str], folder: Path, kernel: KernelManager) -> list[NotebookNode]:
    """Run some cells as after a restart of the kernel, when nothing of their notebook has run."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    _run_anew(notebook, folder, kernel, Runtime(), ALL)
    return list(notebook.cells)
