"""`starvelab lab`: notebooks come into the learner's folder, and never over work."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import lab_command
from tests.assignments import EXPECTED, REPOSITORY

FIRST, SECOND = "starving-the-gpu", "find-the-bottleneck"


def test_work_in_a_checkout_is_copied_once_and_a_clean_assignment_is_copied_as_ever(tmp_path):
    """An earlier `make lab` opened labs/ itself, and `git pull` aborted on what was written there."""
    labs, mine = tmp_path / "labs", tmp_path / "starvelab-lab"
    for assignment in (FIRST, SECOND):
        (labs / assignment).mkdir(parents=True)
        (labs / assignment / "01.ipynb").write_text("as released")
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a release"]):
        subprocess.run([*git, *command], check=True)
    (labs / FIRST / "01.ipynb").write_text("work")
    (labs / FIRST / "predictions.json").write_text("{}")
    assert lab_command.copy_notebooks(mine, labs, "1") == [
        f"Your work in labs/{FIRST} was copied to starvelab-lab/{FIRST}. So that git pull can update the "
        "checkout, put labs back: git checkout labs"
    ]
    assert contents(mine) == {
        f"{FIRST}/01.ipynb": "work", f"{FIRST}/predictions.json": "{}", f"{SECOND}/01.ipynb": "as released",
    }  # fmt: skip
    (mine / FIRST / "01.ipynb").write_text("more work")
    assert lab_command.copy_notebooks(mine, labs, "1") == []
    # git keeps predictions.json, which no commit has; neither that nor the checkout brings a version.
    subprocess.run([*git, "checkout", "-q", "labs"], check=True)
    assert lab_command.copy_notebooks(mine, labs, "1") == []
    assert {FIRST, SECOND} == {path.name for path in mine.glob("[!.]*")}
    (labs / FIRST / "01.ipynb").write_text("a newer one")
    subprocess.run([*git, "commit", "-qam", "the next release"], check=True)
    assert lab_command.copy_notebooks(mine, labs, "2") == [
        f"You have begun {FIRST}, and version 2 has other notebooks: they are in {FIRST}-2, beside yours."
    ]
    assert contents(mine)[f"{FIRST}/01.ipynb"] == "more work"


@pytest.fixture
def release(tmp_path) -> Callable[..., list[str]]:
    """Open the lab with notebooks that hold the name of a version; what a learner is told."""

    def copy(version: str, **texts: str) -> list[str]:
        source = tmp_path / f"wheel {version}"
        for assignment in (FIRST, SECOND):
            (source / assignment).mkdir(parents=True, exist_ok=True)
            for number in (1, 2):
                (source / assignment / f"0{number}.ipynb").write_text(texts.get(f"n{number}", version))
        return lab_command.copy_notebooks(tmp_path / "mine", source, version)

    return copy


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.glob("*/*"))
        if path.is_file()
    }


def test_the_first_time_every_notebook_is_copied(tmp_path):
    assert lab_command.copy_notebooks(tmp_path, lab_command.NOTEBOOKS, "0.1.0") == []
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.ipynb")} == {
        f"{assignment}/{name}.ipynb" for assignment, names in EXPECTED.items() for name in names
    }


def test_the_next_time_work_stays_and_only_what_is_missing_is_copied(release, tmp_path):
    release("1")
    (tmp_path / "mine" / FIRST / "01.ipynb").write_text("work")
    (tmp_path / "mine" / FIRST / "02.ipynb").unlink()
    (tmp_path / "mine" / FIRST / "predictions.json").write_text("{}")
    assert release("1") == []
    assert contents(tmp_path / "mine") == {
        f"{FIRST}/01.ipynb": "work", f"{FIRST}/02.ipynb": "1", f"{FIRST}/predictions.json": "{}",
        f"{SECOND}/01.ipynb": "1", f"{SECOND}/02.ipynb": "1",
    }  # fmt: skip


@pytest.mark.parametrize("work", ["01.ipynb", "predictions.json"])
def test_a_newer_assignment_goes_beside_one_that_was_begun_and_replaces_one_that_was_not(
    release, tmp_path, work
):
    release("1")
    (tmp_path / "mine" / FIRST / work).write_text("work")
    assert release("2", n2="1") == [
        f"{SECOND} has the notebooks of version 2: you had not begun the earlier ones.",
        f"You have begun {FIRST}, and version 2 has other notebooks: they are in {FIRST}-2, beside yours.",
    ]
    found = contents(tmp_path / "mine")
    assert found[f"{FIRST}/{work}"] == "work"
    assert (found[f"{FIRST}-2/01.ipynb"], found[f"{FIRST}-2/02.ipynb"]) == ("2", "1")
    assert found[f"{SECOND}/01.ipynb"] == "2"
    (tmp_path / "mine" / f"{FIRST}-2" / "01.ipynb").write_text("more work")
    assert release("2", n2="1") == []
    assert contents(tmp_path / "mine") == found | {f"{FIRST}-2/01.ipynb": "more work"}


def test_what_was_copied_by_hand_counts_as_work_unless_it_is_the_same(release, tmp_path):
    folder = tmp_path / "mine" / FIRST
    folder.mkdir(parents=True)
    (folder / "01.ipynb").write_text("older")
    assert release("1") == [
        f"You have begun {FIRST}, and version 1 has other notebooks: they are in {FIRST}-1, beside yours."
    ]
    assert contents(tmp_path / "mine")[f"{FIRST}/01.ipynb"] == "older"
    (tmp_path / "mine" / lab_command.RECORD).write_text("no JSON")
    assert release("1") == []


@given(st.lists(st.tuples(st.sampled_from("123"), st.sampled_from(["01.ipynb", "02.ipynb"]), st.booleans())))
def test_whatever_is_written_and_upgraded_in_whatever_order_no_work_is_lost(steps):
    with TemporaryDirectory() as folder:
        target, work = Path(folder, "mine"), {}
        for number, (version, name, writes) in enumerate(steps):
            source = Path(folder, version)
            for each in ("01.ipynb", "02.ipynb"):
                (source / FIRST).mkdir(parents=True, exist_ok=True)
                (source / FIRST / each).write_text(version)
            lab_command.copy_notebooks(target, source, version)
            if writes:
                path = target / FIRST / name
                path.write_text(f"work {number}")
                work[path] = path.read_text()
            assert {path: path.read_text() for path in work} == work
            newest = {path.parent for path in target.glob("*/*") if path.read_text() == version}
            assert newest or len(work) == 2


@pytest.fixture
def started(monkeypatch, tmp_path_factory) -> list[str]:
    """The arguments with which JupyterLab is started, which it is not."""
    given: list[str] = []
    monkeypatch.setattr("jupyterlab.labapp.main", given.extend)
    monkeypatch.setattr(lab_command, "has_display", lambda: True)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/theirs")
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", str(tmp_path_factory.mktemp("workspaces")))
    return given


def test_jupyterlab_starts_in_the_folder_with_the_lab_s_settings(started, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    lab_command.open_lab(["--port", "9000"])
    folder = tmp_path / "starvelab-lab"
    assert (folder / lab_command.FIRST).exists()
    assert started == [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/workspaces/starvelab/tree/{lab_command.FIRST}",
        "--port", "9000",
    ]  # fmt: skip
    assert os.environ["JUPYTER_CONFIG_PATH"] == os.pathsep.join(
        [str(REPOSITORY / "binder" / "jupyter"), "/theirs"]
    )
    assert capsys.readouterr().out == f"The notebooks are in {folder}.\n"
    # Root and a machine without a screen are told to it; notebooks of a checkout are opened where they are.
    started.clear()
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(lab_command, "has_display", lambda: False)
    lab_command.open_lab([f"--folder={REPOSITORY / 'labs'}"])
    assert (started[0], started[2:]) == (
        f"--ServerApp.root_dir={REPOSITORY / 'labs'}", ["--allow-root", "--no-browser"],
    )  # fmt: skip
    assert not (REPOSITORY / "labs" / lab_command.RECORD).exists()


def test_the_sidebar_starts_closed_and_a_layout_that_somebody_has_made_is_kept(started, tmp_path):
    lab_command.open_lab([f"--folder={tmp_path}"])
    (kept,) = Path(os.environ["JUPYTERLAB_WORKSPACES_DIR"]).iterdir()
    workspace = json.loads(kept.read_text())
    assert workspace["metadata"]["id"] == "starvelab"
    manager = pytest.importorskip("jupyterlab_server.workspaces_handler").WorkspacesManager(str(kept.parent))
    assert manager.load("starvelab")["data"] == workspace["data"], "JupyterLab finds it by this name"
    assert workspace["data"]["layout-restorer:data"]["left"]["collapsed"]
    kept.write_text('{"data": {}, "metadata": {"id": "starvelab"}}')
    lab_command.open_lab([f"--folder={tmp_path}"])
    assert json.loads(kept.read_text())["data"] == {}


def test_a_folder_that_cannot_be_used_is_named_with_the_remedy(started, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        SystemExit, match=r"file/lab cannot be used: Not a directory\. Name another folder: starvelab lab --f"
    ):
        lab_command.open_lab([f"--folder={tmp_path / 'file' / 'lab'}"])
    assert started == []
