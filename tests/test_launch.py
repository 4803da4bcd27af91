"""`make lab` brings a learner to the first notebook, on any machine and again; Binder installs the same."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from starvelab.measure import samples
from tests.file_server import free_port

pytestmark = pytest.mark.programs

FIRST = "starving-the-gpu/01_compute_baseline.ipynb"
START_SECONDS = 90


def script(path: Path, line: str) -> Path:
    """A program that runs one line of shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def for_make(folder: Path) -> str:
    """The variable that makes make take a folder for .venv: it reads two words where a name has a space."""
    return "VENV=" + str(folder).replace(" ", r"\ ")


def fill_in_for_venv(folder: Path) -> Path:
    """What stands for .venv: the Python that runs the tests, with the marks of an install that is done."""
    script(folder / "bin" / "python", f'exec "{sys.executable}" "$@"')
    for extra in ("lab", "grade", "test"):
        (folder / f"{extra}.installed").touch()
    return folder


def shell_without_display() -> dict[str, str]:
    """The variables of a terminal on a server, without what a make that runs these tests hands on."""
    dropped = ("DISPLAY", "WAYLAND_DISPLAY", "MAKE", "MFLAGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    return fill_in_for_venv(tmp_path / "environment")


@pytest.fixture
def make(repository: Path, environment: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run make on the repository, with `environment` in the place of .venv."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["make", for_make(environment), *arguments],
            cwd=repository, env={**shell_without_display(), **variables}, capture_output=True, text=True,
        )  # fmt: skip

    return run


def pins(path: Path) -> dict[str, str]:
    """The exact version that this system takes of each package that a requirements file names."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    found = [Requirement(line) for line in lines if line and line[0] not in "#-"]
    exact = [re.fullmatch(r"==[\w.]+", str(one.specifier)) for one in found]
    assert all(exact), f"{path.name} takes exact versions only"
    here = [one for one in found if one.marker is None or one.marker.evaluate()]
    return {canonicalize_name(one.name): str(one.specifier)[2:] for one in here}


@pytest.fixture(scope="module")
def on_binder(repository: Path) -> dict[str, str]:
    return pins(repository / "binder" / "requirements.txt")


@pytest.fixture(scope="module")
def on_make(repository: Path, on_binder: dict[str, str]) -> dict[str, str]:
    return on_binder | pins(repository / "binder" / "constraints.txt")


@pytest.fixture(scope="module")
def project(repository: Path) -> dict:
    return tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# --- make lab ----------------------------------------------------------------------------------------


def test_make_lab_opens_a_folder_of_the_learner_and_installs_only_what_is_not_there(
    make, environment, repository
):
    (environment / "checkout").write_text(f"{repository}\n")
    said = make("--dry-run", "lab", "LAB_ARGS=--port 9000").stdout
    assert f'-m starvelab lab --folder "{repository}/starvelab-lab" --port 9000' in said
    assert "binder/install.sh" not in said
    (environment / "lab.installed").unlink()
    assert f'binder/install.sh {for_make(environment)[5:]} "lab"' in make("--dry-run", "lab").stdout
    # In a checkout that has moved, or without the Python that it was made with, its environment is made anew.
    (environment / "checkout").write_text("/somewhere/else\n")
    assert '[ -z "moved" ]' in make("--dry-run", "lab").stdout
    (environment / "checkout").write_text(f"{repository}\n")
    (environment / "bin" / "python").unlink()
    assert '[ -z "moved" ]' in make("--dry-run", "lab").stdout


HOUSES = "--editable .[torch] --editable ./doctor"
UV = f"-m uv pip install --quiet --python {{python}} --constraint binder/constraints.txt {HOUSES}"
SETTINGS = r"""printf '%s\n' "global.extra-index-url='file:///a\nfile:///b'" ":env:.find-links='/c /d'" \
    "global.cert='/e.pem'" """


@pytest.fixture
def install(repository, tmp_path):
    """Run binder/install.sh with a Python that only writes down what it is asked to do."""

    def run(uv: str) -> list[str]:
        python = tmp_path / "bin" / "python"
        python.parent.mkdir()
        python.write_text(
            f"""#!/bin/sh
echo "$*" >> "{tmp_path}/asked"
case "$*" in
*"config list") {SETTINGS};;
"-m uv"*) echo "$UV_INDEX $UV_FIND_LINKS $UV_INDEX_STRATEGY $SSL_CERT_FILE" >> "{tmp_path}/asked"; {uv};;
esac
""",
            encoding="utf-8",
        )
        python.chmod(0o755)
        script = repository / "binder" / "install.sh"
        subprocess.run([script, tmp_path, "torch"], cwd=repository, check=True)
        asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
        return [line.replace(str(python), "{python}") for line in asked]

    return run


def test_pip_installs_the_same_where_uv_cannot(install, capfd):
    asked = install(uv="exit 1")
    assert asked[-4] == (
        "-m pip install --quiet --disable-pip-version-check --constraint binder/constraints.txt "
        f"--no-compile {HOUSES}"
    )
    assert capfd.readouterr().out == "uv could not install it; pip does, which takes longer.\n"


def test_the_exact_versions_are_installed_by_uv_from_where_pip_would_take_them(install, monkeypatch, capsys):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    asked = install(uv="exit 0")
    assert asked[2:4] == [UV, "file:///a file:///b /c,/d unsafe-best-match /e.pem"]
    assert "-m compileall" in asked[6]
    # A Mac that has no PyTorch says so after the install.
    program = "\n".join(asked[4:6]).removeprefix("-c ")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: "found")
    exec(program, {})
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    exec(program, {})
    assert capsys.readouterr().out.startswith("For a Mac with an Intel processor there is no PyTorch")


@pytest.mark.parametrize(("refuses", "messages"), [
    (None, "make installs starvelab for Python 3.11 to 3.14, and there is no {python} here.\n"
     "Install it, or name another: make PYTHON=/path/to/python3.13 lab\n"),
    ("version_info", "make installs starvelab for Python 3.11 to 3.14, and {python} is Python 3.10.13.\n"
     "Name another: make PYTHON=/path/to/python3.13 lab\n"),
    ("ensurepip", "starvelab installs into a virtual environment, and {python} cannot make one.\n"
     "On Debian and Ubuntu: sudo apt-get install python3-venv\n"),
], ids=["missing", "of another version", "without venv"])  # fmt: skip
def test_a_python_that_will_not_do_is_named_with_the_remedy(make, tmp_path, refuses, messages):
    python = tmp_path / "python"
    if refuses:
        script(python, f'case "$*" in *{refuses}*) exit 1;; --version) echo Python 3.10.13;; esac')
    done = make("lab", f"PYTHON={python}", for_make(tmp_path / "none"))
    assert done.returncode != 0
    assert done.stdout == messages.format(python=python)


def test_make_alone_says_what_it_can_do_and_what_it_does_is_that(make, repository):
    said = make().stdout
    for target in ("lab", "test", "check", "fuzz", "build", "formgrader", "bench", "docs", "clean"):
        assert f"make {target} " in said
    assert re.search(r"^.+ -m mypy$", make("--dry-run", "test").stdout, flags=re.MULTILINE)
    read = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]["files"]
    packages = {"starvelab", "doctor/starvelab_doctor", "grader/starvelab_grader"}
    assert packages | {"tests/typed_sweeps.py", "tests/typed_usage.py"} == {*read}
    # Notebooks and predictions stay.
    assert not re.search(r"(?<!\S)labs|ipynb|predictions", make("--dry-run", "clean").stdout)


def test_make_grader_draws_the_images_that_a_sandbox_can_only_read_and_formgrader_needs_no_display(
    make, monkeypatch
):
    said = make("--dry-run", "formgrader").stdout
    assert "--no-browser" in said
    assert ("--allow-root" in said) == (os.getuid() == 0)
    drawn = []
    monkeypatch.setattr(samples, "photos", drawn.append)
    exec(re.search(r"-c '(.*)'", make("--dry-run", "grader").stdout)[1], {})
    assert drawn == list(samples.KINDS)


# --- the lab that it starts --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """The JupyterLab of `make lab`, by a function that fetches an address of it."""
    folder = fill_in_for_venv(tmp_path_factory.mktemp("lab"))
    port = free_port()
    variables = {name: str(folder / name) for name in (
        "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR",
        "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR",
    )}  # fmt: skip
    options = f"--no-browser --port={port} --ServerApp.port_retries=0 --IdentityProvider.token=opensesame"
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            ["make", for_make(folder), "lab", f"LAB_ARGS={options}"],
            cwd=repository, env={**shell_without_display(), **variables},
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip

    def fetch(address: str) -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{address}", headers={"Authorization": "token opensesame"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                fetch("/api/status")
                break
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield fetch
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


def test_the_lab_is_that_of_a_learner_with_the_assignments_but_not_their_solutions(lab, repository):
    assert "<title>JupyterLab</title>" in lab(f"/lab/tree/{FIRST}")
    notebook = json.loads(lab(f"/api/contents/{FIRST}"))
    assert (notebook["type"], bool(notebook["content"]["cells"])) == ("notebook", True)
    shown = {entry["name"] for entry in json.loads(lab("/api/contents/"))["content"]}
    assert shown == {path.name for path in (repository / "labs").iterdir() if not path.name.startswith(".")}
    # Nor any of the instructor's tools.
    config = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', lab("/lab"), re.DOTALL)[1])
    assert "@jupyter/nbgrader" in config["disabledExtensions"]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        lab("/formgrader/api/assignments")
    for plugin, setting, expected in (
        # It asks nothing about news, and keeps every cell in the page.
        ("@jupyterlab/apputils-extension:notification", "fetchNews", "false"),
        ("@jupyterlab/apputils-extension:notification", "checkForUpdates", False),
        ("@jupyterlab/notebook-extension:tracker", "windowingMode", "none"),
        # It saves notebooks every ten seconds, and their widgets with them.
        ("@jupyterlab/docmanager-extension:plugin", "autosaveInterval", 10),
        ("@jupyter-widgets/jupyterlab-manager:plugin", "saveState", True),
    ):
        schema = json.loads(lab(f"/lab/api/settings/{plugin}"))["schema"]
        assert schema["properties"][setting]["default"] == expected


# --- Binder and the build machine --------------------------------------------------------------------


# Dependencies of ours that JupyterLab, its server or ipykernel bring into the base image: its copies stay.
IN_BASE_IMAGE = {"jinja2", "markupsafe", "platformdirs", "psutil"}


def test_what_binder_and_make_install_has_a_version_that_the_packages_allow(
    project, on_binder, on_make, repository
):
    doctor, grader = (
        tomllib.loads((repository / house / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for house in ("doctor", "grader")
    )
    extras = chain(*(each for one in (project, grader) for each in one["optional-dependencies"].values()))
    on_notebooks = project["optional-dependencies"]["notebooks"]
    of_base = {name: on_make[name] for name in IN_BASE_IMAGE}
    for pinned, texts in (
        (of_base | on_binder, [*project["dependencies"], *doctor["dependencies"], *on_notebooks]),
        (on_make, chain(grader["dependencies"], extras)),
    ):
        for requirement in map(Requirement, texts):
            if requirement.name not in (project["name"], doctor["name"], grader["name"]):
                version = pinned[canonicalize_name(requirement.name)]
                assert requirement.specifier.contains(version), (requirement, version)


def test_binder_keeps_the_jupyterlab_of_its_base_image_and_no_package_has_two_versions(
    repository, on_binder, on_make
):
    kept = {"jupyterlab", "jupyter-server", "notebook", "ipykernel", "ipython", "nbgrader", "playwright"}
    kept |= IN_BASE_IMAGE
    assert not (kept | {"torch"}) & set(on_binder)
    assert "torchvision" not in on_make
    assert Version(on_binder["ipywidgets"]) <= Version("8.1.7")
    assert not on_binder.keys() & pins(repository / "binder" / "constraints.txt").keys()


SETTINGS_READ = """
import json
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.config.manager import ConfigManager
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
server = ServerApp()
server.load_config_file()
kernels = AsyncMappingKernelManager(config=server.config)
of_lab = ConfigManager(config_dir_name="labconfig").get("default_setting_overrides")
print(json.dumps([
    [kernels.cull_idle_timeout, kernels.cull_connected, kernels.cull_busy],
    server.config.ServerApp.jpserver_extensions["nbgrader.server_extensions.formgrader"],
    of_lab["@jupyterlab/notebook-extension:tracker"],
]))
"""


def test_binder_starts_with_the_settings_of_make_lab_and_ends_what_is_idle(repository, tmp_path):
    done = subprocess.run(
        ["binder/start", sys.executable, "-c", SETTINGS_READ],
        cwd=repository, capture_output=True, text=True, check=True,
        env={**os.environ, "REPO_DIR": str(repository), "JUPYTER_CONFIG_DIR": str(tmp_path)},
    )  # fmt: skip
    ended, formgrader, tracker = json.loads(done.stdout)
    # After 15 minutes, also where its tab is open, and never while it runs a cell.
    assert ended == [900, True, False]
    assert formgrader is False
    assert tracker == {
        "codeCellConfig": {"lineWrap": True}, "kernelShutdown": True, "windowingMode": "none"
    }  # fmt: skip


def test_binder_and_the_workflow_take_pythons_that_the_package_allows_and_what_the_readme_tells_to_type(
    repository, project
):
    for name in ("binder/postBuild", "binder/start", ".ci/run"):
        assert os.access(repository / name, os.X_OK)
        assert subprocess.run(["bash", "-n", repository / name]).returncode == 0
    container = json.loads((repository / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert container["postCreateCommand"] == "make .venv/lab.installed"
    assert container["image"].rpartition(":")[2] in ("3.11", "3.12", "3.13", "3.14")
    lines = (repository / ".ci" / "run").read_text().splitlines()
    assert "HOME=$(mktemp -d)" in lines, "a newcomer's home is empty"
    assert lines[-1] == "make test"
    runtime = (repository / "binder" / "runtime.txt").read_text().strip()
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "test.yml").read_text())
    job = workflow["jobs"]["test"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make test"]
    for version in (*job["strategy"]["matrix"]["python"], re.fullmatch(r"python-(\d+\.\d+)", runtime)[1]):
        assert Requirement(f"x{project['requires-python']}").specifier.contains(version)
