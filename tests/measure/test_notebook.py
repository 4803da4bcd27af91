"""Functions of a notebook's cell reach workers that have never seen them."""

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

pytestmark = pytest.mark.programs

CELLS = [
    "import numpy as np\nfrom starvelab import *\nfrom starvelab.measure import *",
    """
def scaled(array):
    return array / factor
factor = 255
samples = Samples(
    source=StoredSource("own", (bytes(60), bytes(60))),
    transforms=[
        Transform("as array", lambda raw: np.frombuffer(raw[:60], np.uint8)), Transform("scaled", scaled)
    ],
)
pipe = Pipeline(dataset=samples, batch_size=2, workers=1, hardware="2 ms")
""",
]
RUN = """
record = pipe.replace({"workers.kind": "processes"}).measure(seconds="0.2 s")
print(sorted(record.stage_times))
"""


@pytest.mark.filterwarnings("default")  # the kernel's own
def test_functions_of_a_cell_run_in_workers(tmp_path):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in (*CELLS, RUN)]
    # Without ports: while two programs look for free ones, both may find the same.
    kernel = AsyncKernelManager(transport="ipc", ip=str(tmp_path / "socket"))
    client = NotebookClient(notebook, timeout=300, km=kernel, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(cleanup_kc=True)
    shown = notebook.cells[2].outputs
    said = "".join(out.text for out in shown if out.get("name") == "stdout")
    assert said.endswith("['as array', 'collate', 'read', 'scaled']\n")
    assert not [out for out in shown if out.get("name") == "stderr" and "Error" in out.text]
