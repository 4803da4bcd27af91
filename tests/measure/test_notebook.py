"""Functions of a notebook's cell, and of a script, reach workers that have never seen them."""

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

from .scenes import images

CELLS = [
    "import numpy as np\nfrom starvelab import *\nfrom starvelab.measure import *",
    """
def scaled(array):
    return array / factor
factor = 255
samples = Samples(
    source=folder("own"),
    transforms=[
        Transform("as array", lambda raw: np.frombuffer(raw[:60], np.uint8)), Transform("scaled", scaled)
    ],
)
pipe = Pipeline(dataset=samples, batch_size=2, workers=1, hardware="2 ms")
""",
]
RUNS = """
record = pipe.replace({{"workers.kind": {loader!r}}}).measure(seconds="0.2 s")
print(sorted(record.stage_times))
"""


@pytest.mark.filterwarnings("default")  # the kernel's own
def test_functions_of_a_cell_run_in_workers(tmp_path):
    images(tmp_path / "own", 8, 8)
    notebook = nbformat.v4.new_notebook()
    sources = [*CELLS, *(RUNS.format(loader=loader) for loader in ("processes", "torch"))]
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    # Without ports: while two programs look for free ones, both may find the same.
    kernel = AsyncKernelManager(transport="ipc", ip=str(tmp_path / "socket"))
    client = NotebookClient(notebook, timeout=300, km=kernel, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(cleanup_kc=True)
    for cell in notebook.cells[2:]:
        said = "".join(out.text for out in cell.outputs if out.get("name") == "stdout")
        assert said.endswith("['as array', 'collate', 'read', 'scaled']\n")
        assert not [out for out in cell.outputs if out.get("name") == "stderr" and "Error" in out.text]
