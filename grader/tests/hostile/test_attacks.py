"""No hostile submission gains a point, reaches anything outside, leaves a process or takes too long."""

import os
import socket
import tempfile
import time
import tomllib
from pathlib import Path

import nbformat
import psutil
import pytest

from grader.tests.hostile.tiny import FOUND, MOST, RIGHT, execute, graded, notebook, points, printed
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde.outputs import MAX_OUTPUTS

pytestmark = [pytest.mark.long, pytest.mark.sandbox]

TIMES = {"timeout": 0.5, "deadline": 1.5}
KINDS = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text(encoding="utf-8"))
KINDS["runner"] = {name: f"{FOUND}{source}\nprint('in place')" for name, source in KINDS["runner"].items()}
ATTACKS = {name: source for kind in KINDS.values() for name, source in kind.items()}
ZERO = "def double(x): return 0\nanswer = 0\n"
# They take neither time nor room of others in their sandbox, and so share one.
STAYS = (KINDS["tricks"] | KINDS["crossing"] | KINDS["reach"]).keys() - {"kills-all"}
# Its time, the grace of one question, and starting a sandbox on a busy machine.
MAX_SECONDS = 40.0
LARGEST = 5_000_000  # bytes of a notebook of four cells, each of which may put out 1 MB


@pytest.fixture(scope="module")
def host():
    """What an instructor has: a file that anybody on the machine may read, a secret, a port that answers."""
    with (
        tempfile.TemporaryDirectory(prefix="starvelab-instructor-", dir="/var/tmp") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        home = Path(folder)
        home.chmod(0o755)
        (home / "gradebook.db").write_text("everybody's marks")
        server.setblocking(False)
        patch.setenv("A_SECRET", "of the instructor")
        yield home / "gradebook.db", server


def sleepers() -> set[int]:
    """What "stays-behind" would leave."""
    every = psutil.process_iter(["cmdline"])  # None of one that ends meanwhile
    return {process.pid for process in every if "4242" in (process.info["cmdline"] or [])}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_submission_gets_nothing(host, tmp_path, name):
    file, server = host
    port = str(server.getsockname()[1])
    source = f"{ZERO}{ATTACKS[name]}".replace("HOST", str(file)).replace("PORT", port)
    before = sleepers()
    start = time.monotonic()
    nb = notebook(source)
    nb.cells.insert(2, nbformat.v4.new_code_cell("1", id="next"))
    execute(nb, tmp_path, student="" if name in STAYS else name, **TIMES)
    assert sum(points(nb).values()) == 0
    nbformat.validate(nb)
    assert len(nbformat.writes(nb).encode()) < LARGEST
    assert all(len(cell.get("outputs", [])) <= MAX_OUTPUTS for cell in nb.cells)
    assert name not in KINDS["runner"] or "in place" in printed(nb, "answer")
    assert time.monotonic() - start < MAX_SECONDS
    assert file.read_text() == "everybody's marks"
    assert os.listdir(tmp_path) == []
    with pytest.raises(BlockingIOError):
        server.accept()
    if name not in STAYS:
        RUNNERS.end_student()
    assert sleepers() <= before


def test_whoever_comes_after_all_of_them_gets_what_is_theirs(tmp_path):
    assert graded(RIGHT, tmp_path, student="next") == MOST
