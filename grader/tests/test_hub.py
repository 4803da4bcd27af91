"""The page docs/jupyterhub.md, followed to the letter: a real hub, three accounts, and a shared exchange.

It needs root, and it installs programs and makes accounts. So it runs only where STARVELAB_HUB names the
repository to clone in place of the public one, as in a job of the workflow.
"""

import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
import pytest

from tests.assignments import REPOSITORY, notebooks_of

pytestmark = [
    pytest.mark.skipif(not os.environ.get("STARVELAB_HUB"), reason="it installs a hub and makes accounts"),
    pytest.mark.timeout(2400),
]
PAGE = (REPOSITORY / "docs" / "jupyterhub.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- as (?P<who>[\w, ]+) -->\n```bash\n(?P<lines>.*?)```", re.DOTALL)
HUB, PASSWORD = "http://127.0.0.1:8000", "to-try-it"
ACCOUNTS = ("teacher", "ada", "bob")
ASSIGNMENT, RENAMED = "starving-the-gpu", "02_storage_check (1)"
START_SECONDS = 60
MARK = 3.0  # of an explanation
CLONED = os.environ.get("STARVELAB_HUB", "")
HERE = f"""git config --global url."{CLONED}".insteadOf https://github.com/starvelab/starvelab
git config --global --replace-all safe.directory '*'
"""
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # no Python of whoever runs the tests


def blocks(who: str) -> list[str]:
    """The blocks of the page that somebody runs, in their order."""
    return [match["lines"] for match in BLOCK.finditer(PAGE) if match["who"] == who]


def as_account(name: str, commands: str, *, succeeds: bool = True) -> str:
    """Run commands as an account; what they print."""
    command = ["su", "--login", name, "--command", "bash -e -s"]  # a login shell, as in a terminal of the hub
    done = subprocess.run(command, input=commands, capture_output=True, text=True)
    assert not succeeds or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def hub_running(folder: Path) -> Iterator[None]:
    """The hub of the page, until it has come up and as long as it is used."""
    (start,) = blocks("root, hub")
    with (folder / "hub.log").open("w") as log:
        process = subprocess.Popen(
            ["bash", "-e", "-c", start], stdout=log, stderr=log, start_new_session=True, env={"PATH": SYSTEM}
        )
        try:
            for _ in range(START_SECONDS):
                with suppress(OSError):
                    urllib.request.urlopen(f"{HUB}/hub/api/").close()
                    break
                assert process.poll() is None, (folder / "hub.log").read_text()
                time.sleep(1)
            yield
        finally:
            subprocess.run(["pkill", "--session", str(process.pid)], check=False)
            process.wait()


def answer(folder: Path, owner: str) -> None:
    """Write the instructor's answers into a student's notebooks."""
    for notebook in notebooks_of(ASSIGNMENT):
        path = folder / ASSIGNMENT / f"{notebook.name}.ipynb"
        answers = {
            cell.id: cell.source
            for cell in notebook.cells
            if cell.metadata.get("nbgrader", {}).get("solution")
        }
        released = nbformat.read(path, as_version=4)
        for cell in released.cells:
            cell.source = answers.get(cell.id, cell.source)
        nbformat.write(released, path)
    subprocess.run(["chown", "--recursive", f"{owner}:", str(folder / ASSIGNMENT)], check=True)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A machine on which an administrator and the teacher have followed the page."""
    for name in ACCOUNTS:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=False)
        as_account(name, HERE)
    folder = tmp_path_factory.mktemp("hub")
    for lines in (HERE, *blocks("root")):
        environment = {"HOME": str(folder), "PATH": SYSTEM}
        subprocess.run(["bash", "-e", "-c", lines], check=True, cwd=folder, env=environment)
    with hub_running(folder):
        yield


def test_from_release_to_fetched_feedback(hub):
    from grader.tests.hub_in_browser import HubInBrowser

    set_up, release, grade, feedback = blocks("teacher")
    work, fetch_feedback = blocks("student")
    homes = {name: Path("/home") / name for name in ACCOUNTS}
    as_account("teacher", set_up)
    assert "is released" in as_account("teacher", release)

    with HubInBrowser.opened(HUB, PASSWORD) as browser:
        # Ada works in JupyterLab, and Bob in a terminal.
        ada = browser.log_in("ada")
        ada.fetch(ASSIGNMENT)
        answer(homes["ada"], "ada")
        result = ada.work_through(ASSIGNMENT, "03_cpu_wall")
        assert "Success! Your notebook passes all the tests." in result
        folder = homes["ada"] / ASSIGNMENT
        (folder / "02_storage_check.ipynb").rename(folder / f"{RENAMED}.ipynb")
        ada.submit(ASSIGNMENT)
        assert "Success!" not in as_account("bob", work), "nothing is answered"
        answer(homes["bob"], "bob")
        assert "Success!" in as_account("bob", work.replace("nbgrader fetch", "true || nbgrader fetch"))

        graded = as_account("teacher", grade)
        assert "2 graded, 0 unchanged" in graded
        assert "0 graded, 2 unchanged" in as_account("teacher", grade)
        teacher = browser.log_in("teacher")
        teacher.mark_in_formgrader(ASSIGNMENT, "03_cpu_wall", points=MARK)
        as_account("teacher", feedback)
        ada.fetch_feedback(ASSIGNMENT)
    as_account("bob", fetch_feedback)
    totals = {}
    for name in ("ada", "bob"):
        pages = {path.stem: path.read_text() for path in (homes[name] / ASSIGNMENT).glob("feedback/*/*.html")}
        assert len(pages) == 8
        totals[name] = {
            re.search(r"The whole assignment: <strong>([\d.]+)", page)[1] for page in pages.values()
        }
        assert RENAMED in pages or name == "bob"
    assert [len(total) for total in totals.values()] == [1, 1]
    (less,), (more,) = sorted(totals.values(), key=lambda total: float(min(total)))
    assert float(more) == float(less) + MARK, "of one of the two an explanation is marked"

    # Who can see which file.
    exchange = "/srv/nbgrader/exchange/ml-systems"
    for path in ("/home/teacher/ml-systems-2026", f"{exchange}/inbound", f"{exchange}/feedback"):
        assert "Permission denied" in as_account("bob", f"ls {path}", succeeds=False), path
    assert ASSIGNMENT in as_account("bob", f"ls {exchange}/outbound")
    assert "Operation not permitted" in as_account("bob", f"mv {exchange} {exchange}-2", succeeds=False)
