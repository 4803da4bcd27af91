"""`starvelab lab`: copy this version's notebooks into the learner's folder, and open JupyterLab there."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from itertools import count
from pathlib import Path

from .errors import install_hint, requiring
from .host import NOTEBOOKS, has_display

SETTINGS = NOTEBOOKS.parent / "binder" / "jupyter"
FIRST = "starving-the-gpu/01_compute_baseline.ipynb"
WORKSPACE = "starvelab-a8bf.jupyterlab-workspace"  # the file of the one named starvelab
ADDRESS = f"/lab/workspaces/starvelab/tree/{FIRST}"
RECORD = ".starvelab.json"  # in the learner's folder: the digests of what was copied, by folder and file


def copy_notebooks(target: Path, source: Path, of: str) -> list[str]:
    """Copy a folder of assignments, never over work; return in sentences what a learner should know."""
    target.mkdir(parents=True, exist_ok=True)
    copied, said, work = _read_record(target), [], _work_in_checkout(source)
    for assignment in sorted(filter(Path.is_dir, source.iterdir())):
        name, is_new = assignment.name, work.get(assignment.name, {})
        new = {file: digest for file, digest in _digests(assignment).items() if not is_new.get(file)}
        if is_new and not (target / name).exists():
            shutil.copytree(assignment, target / name, ignore=shutil.ignore_patterns(".*", "__pycache__"))
            copied[name] = {}
            _write_record(target, copied)
            said.append(
                f"Your work in {source.name}/{name} was copied to {target.name}/{name}. So that git pull "
                f"can update the checkout, put {source.name} back: git checkout {source.name}"
            )
        if not all(is_new.values()):
            continue
        if copied.get(name) == {}:  # that work was begun on the version that is there without it
            copied[name] = new
        for place in _places(target / name, of):
            there, before = _digests(place), copied.get(place.name)
            if there and there == before != new:
                for file in there:
                    (place / file).unlink()
                said.append(f"{name} has the notebooks of version {of}: you had not begun the earlier ones.")
            elif there and before != new and not new.items() <= there.items():
                continue
            elif not there and place.name != name:
                said.append(
                    f"You have begun {name}, and version {of} has other notebooks: they are in {place.name}, "
                    "beside yours."
                )
            copied[place.name] = new
            _write_record(target, copied)
            place.mkdir(exist_ok=True)
            for file in new:
                if not (place / file).exists():
                    shutil.copyfile(assignment / file, place / file)
            break
    return said


def _work_in_checkout(source: Path) -> dict[str, dict[str, bool]]:
    """Return, by assignment, the files in which somebody has worked, and whether no commit has them."""
    command = ["git", "status", "--porcelain", "--ignored", "--untracked-files=all", "-z", "--", "."]
    work: dict[str, dict[str, bool]] = {}
    try:
        status = subprocess.run(command, cwd=source, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):  # no git, or no checkout
        return work
    for state, path in ((line[:2], Path(line[3:])) for line in status.split("\0") if line):
        if len(path.parts) == 3 and not path.name.startswith("."):
            work.setdefault(path.parts[1], {})[path.name] = state in ("??", "!!")
    return work


def _places(folder: Path, of: str) -> Iterator[Path]:
    """Where an assignment may stand: the first of these that holds no work on another version is taken."""
    yield folder
    yield folder.with_name(f"{folder.name}-{of}")
    yield from (folder.with_name(f"{folder.name}-{of}-{number}") for number in count(2))


def _digests(folder: Path) -> dict[str, str]:
    """The digest of each file that is not hidden; of none where there is no such folder."""
    files = sorted(folder.iterdir()) if folder.exists() else []
    files = [path for path in files if path.is_file() and not path.name.startswith(".")]
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files}


def _read_record(folder: Path) -> dict[str, dict[str, str]]:
    try:
        return dict(json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):  # without it, all that is there counts as work
        return {}


def _write_record(folder: Path, copied: dict[str, dict[str, str]]) -> None:
    (folder / RECORD).write_text(json.dumps(copied, indent=1) + "\n", encoding="utf-8")


def open_lab(arguments: Sequence[str] | None = None) -> None:
    """Run `starvelab lab`."""
    parser = argparse.ArgumentParser(
        prog="starvelab lab",
        description="Copy the lab's notebooks into a folder, and open them in JupyterLab. Nothing that you "
        "have written is overwritten: the notebooks of a newer version go beside those that you have begun.",
        epilog="All other options are JupyterLab's, such as --port=9000 or --no-browser.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--folder", type=Path, default="starvelab-lab", help="for the notebooks (default: starvelab-lab)"
    )
    asked, others = parser.parse_known_args(arguments)
    with requiring("starvelab lab", install_hint("lab")):
        for name in ("jupyterlab", "ipywidgets"):
            import_module(name)
    folder = asked.folder.expanduser().resolve()
    try:
        # Whoever names the folder of the checkout works there.
        said = [] if folder == NOTEBOOKS else copy_notebooks(folder, NOTEBOOKS, version("starvelab"))
    except OSError as error:
        raise SystemExit(
            f"starvelab lab copies notebooks into a folder, and {error.filename or folder} cannot be used: "
            f"{error.strerror}. Name another folder: starvelab lab --folder=FOLDER"
        ) from None
    print(f"The notebooks are in {folder}.", *said, sep="\n", flush=True)
    settings = [str(SETTINGS), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(settings)
    options = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url={ADDRESS}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # JupyterLab refuses to run as root unless it is told to
    if not has_display():
        options.append("--no-browser")  # it prints the address in either case
    # The sidebar starts closed, for which JupyterLab has no setting; a layout that somebody has made is kept.
    config = os.environ.get("JUPYTER_CONFIG_DIR") or Path.home() / ".jupyter"
    kept = Path(os.environ.get("JUPYTERLAB_WORKSPACES_DIR") or Path(config, "lab", "workspaces"), WORKSPACE)
    with suppress(OSError):  # where nothing can be kept, JupyterLab opens all the same
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            shutil.copy(SETTINGS / "workspace.json", kept)
    from jupyterlab.labapp import main as jupyterlab

    jupyterlab([*options, *others])
