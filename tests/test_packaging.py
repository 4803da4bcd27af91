"""What people install is complete, and each line that installs it works, with the exact versions."""

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement

from starvelab.errors import install_hint
from tests.documents import anchors, published
from tests.hidden_answers import leaks

pytestmark = [pytest.mark.index, pytest.mark.long]

REPOSITORY = Path(__file__).resolve().parents[1]
PINS = REPOSITORY / "binder" / "constraints.txt"
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
INTEL_MAC = "x86_64-apple-darwin"
OF_TORCH = re.compile("cuda-|nvidia-|triton")
PLATFORMS = ("x86_64-unknown-linux-gnu", "windows", "aarch64-apple-darwin", INTEL_MAC)


@pytest.fixture(scope="module")
def uv() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run uv as binder/uv.sh does, which asks pip each time what it has been told of indexes: here, once."""
    told = {}
    if os.name != "nt":
        printed = subprocess.run(
            [REPOSITORY / "binder" / "uv.sh", sys.prefix, "run", "--no-project", "env"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        told = dict(re.findall(r"^(UV_\w*INDEX\w*|UV_FIND_LINKS)=(.*)$", printed, re.MULTILINE))

    def run(*arguments: str | Path, text: str | None = None, **variables: str):
        return subprocess.run(
            [sys.executable, "-m", "uv", "pip", *arguments],
            env=os.environ | told | variables, input=text, capture_output=True, text=True,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def project(repository: Path) -> dict:
    return tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make dist` has built, or one built with the build backend that is installed."""
    out = Path(os.environ.get("STARVELAB_DIST") or tmp_path_factory.mktemp("wheel"))
    for folder in () if "STARVELAB_DIST" in os.environ else published():
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, folder],
            cwd=repository, check=True, capture_output=True,
        )  # fmt: skip
    (built,) = out.glob("starvelab-*.whl")
    return built


def wheel_of(house: str, wheel: Path) -> Path:
    """The wheel of a house, which is built with the lab's."""
    (built,) = wheel.parent.glob(f"starvelab_{house}-*.whl")
    return built


@pytest.fixture(scope="module")
def install(uv, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Let uv install the wheel and what it needs, from an index; the Python of that environment."""

    def make(extra: str, *others: str) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        exactly = ("--constraint", PINS, "--find-links", wheel.parent)
        lab = f"starvelab{extra}=={wheel.name.split('-')[1]}"
        done = uv("install", "--python", python, *exactly, lab, *others)
        assert done.returncode == 0, done.stderr
        return python

    return make


@pytest.fixture(scope="module")
def small(install) -> Path:
    """Of an environment without any extra."""
    return install("")


@pytest.fixture(scope="module")
def installed(install) -> Path:
    """Of an environment for notebooks."""
    return install("[notebooks]")


# What may be missing: the code that imports it is for those who have it, or says what to install.
OPTIONAL = {"jupyterlab", "lightning", "pytorch_lightning", "torch", "transformers"}
BROUGHT_BY_IPYWIDGETS = {"IPython", "traitlets"}


def imported(path: Path) -> set[str]:
    """The packages that a module imports, by the names of the index."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.add(node.module.partition(".")[0])
    wanted = modules - sys.stdlib_module_names - OPTIONAL - {"starvelab"}
    return {"pillow" if name == "PIL" else name for name in wanted}


def test_what_a_learner_imports_is_a_dependency_or_of_the_extra_for_notebooks(repository, project):
    """JupyterLab brings much of it along; Python in a browser has nothing that nobody asks for."""
    own, notebooks = (
        {Requirement(text).name for text in texts}
        for texts in (project["dependencies"], project["optional-dependencies"]["notebooks"])
    )
    by_path = {path: imported(path) for path in (repository / "starvelab").rglob("*.py")}
    # Only to_pandas() imports it, and its error says what to install.
    assert [path.name for path, names in by_path.items() if "pandas" in names] == ["tables.py"]
    assert set().union(*by_path.values()) - BROUGHT_BY_IPYWIDGETS - {"pandas"} == own | notebooks
    assert not own & notebooks
    # What measures has photos of its own, and says what to install where it makes one.
    by_room: dict[str, set[str]] = {}
    for path, names in by_path.items():
        room = path.relative_to(repository / "starvelab").parts[0]
        by_room[room] = by_room.get(room, set()) | names & (notebooks | BROUGHT_BY_IPYWIDGETS)
    # So has the lesson, and what a grader loads before the notebooks that it runs.
    assert {room for room, names in by_room.items() if names} == {"lesson", "measure", "grader_plugin.py"}
    assert by_room["measure"] == {"pillow"}


ASKED = {"cloudpickle", "loky", "numpy", "pint", "platformdirs", "psutil", "tabulate", "tqdm"}
BROUGHT_BY_PINT = {"flexcache", "flexparser", "typing_extensions"}
LIST = """
from importlib.metadata import distributions
print(*sorted(found.metadata["Name"].lower() for found in distributions()))
"""


def test_without_an_extra_few_packages_are_installed(small, tmp_path):
    code = f"import starvelab, starvelab.show, starvelab.checks, starvelab.measure{LIST}"
    assert {*run(small, code, tmp_path).split()} == {"starvelab"} | ASKED | BROUGHT_BY_PINT


def test_the_doctor_brings_the_lab_alone_and_watches_a_job_without_pytorch(install, tmp_path):
    with_doctor = install("", "starvelab-doctor")
    code = f"""
from starvelab_doctor import watch, advise
watched = watch([1] * 100, batch_size=2, workers=1, progress=False)
list(watched)
print(advise(watched.result).now.workers){LIST}"""
    workers, *names = run(with_doctor, code, tmp_path).split()
    assert (workers, {*names}) == ("1", {"starvelab", "starvelab-doctor"} | ASKED | BROUGHT_BY_PINT)
    for command in (["-m", "starvelab", "help", "doctor"], ["-m", "starvelab_doctor", "--help"]):
        done = subprocess.run([with_doctor, *command], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout.split()[1]) == (0, "starvelab-doctor"), done.stderr


@pytest.mark.parametrize(("line", "said"), [
    ("from starvelab import widgets", "starvelab.widgets needs {}, which is not installed. {}"),
    ("from starvelab.measure.transforms import decode; decode(b'')",
     "To decode an image needs {}, which is not installed. {}"),
    ("from starvelab.lab_command import open_lab; open_lab([])",
     "starvelab lab needs {}, which is not installed. {}"),
])  # fmt: skip
def test_without_an_extra_one_sentence_says_what_to_install(small, tmp_path, line, said):
    done = subprocess.run([small, "-I", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1].removeprefix("starvelab.errors.MissingPackageError: ")
    lab = "open_lab" in line
    package = "JupyterLab" if lab else "Pillow" if "decode" in line else "ipywidgets"
    assert (done.returncode, last) == (1, said.format(package, install_hint("lab" if lab else "notebooks")))


def run(python: Path, code: str, folder: Path) -> str:
    """What `code` prints, run away from the checkout and without the environment's say on paths."""
    done = subprocess.run([str(python), "-I", "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_wheel_carries_each_file_of_its_package_its_licence_and_nothing_else(wheel, repository, project):
    def files(root: Path, folders: dict[str, str]) -> set[str]:
        return {
            f"{target}{path.relative_to(root).as_posix()}"
            for folder, target in folders.items()
            for path in (root / folder).rglob("*.ipynb" if folder == "labs" else "*")
            if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"}.intersection(path.parts)
        }

    def carried(path: Path, package: str) -> set[str]:
        information = f"{package}-{project['version']}.dist-info"
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            assert {name.partition("/")[0] for name in names} == {package, information}
            licence = archive.read(f"{information}/licenses/LICENSE").decode()
        assert licence == (repository / "LICENSE").read_text(encoding="utf-8")
        return {name for name in names if name.startswith(f"{package}/")}

    folders = {"starvelab": "", "labs": "starvelab/lab_files/", "binder/jupyter": "starvelab/lab_files/"}
    of_lab = carried(wheel, "starvelab")
    assert of_lab == files(repository, folders)
    assert {Path(name).suffix for name in of_lab} >= {".py", ".toml", ".txt", ".js"}
    for house in ("doctor", "grader"):
        package = f"starvelab_{house}"
        assert carried(wheel_of(house, wheel), package) == files(repository / house, {package: ""})


def test_no_wheel_carries_the_answer_of_a_puzzle(wheel):
    assert leaks([wheel, *(wheel_of(house, wheel) for house in ("doctor", "grader"))]) == []


def test_an_environment_for_notebooks_has_the_model_its_facts_the_widgets_and_a_lab_of_its_own(
    installed, tmp_path
):
    code = """
import os, sys, types, starvelab as sl, starvelab.lab_command as lab_command
pipe = sl.Pipeline(model=sl.Models.ResNet50, hardware=sl.Hardware.Cloud.A100, batch_size=256, workers=8)
print(f"{pipe.solve().step_time.to('ms').magnitude:.0f}", sl.show.__name__, sl.widgets.__name__)
os.environ["JUPYTERLAB_WORKSPACES_DIR"] = "workspaces"
sys.modules["jupyterlab"] = types.ModuleType("jupyterlab")
sys.modules["jupyterlab"].__spec__ = types.SimpleNamespace()
sys.modules["jupyterlab.labapp"] = types.SimpleNamespace(main=lambda options: print(lab_command.SETTINGS))
lab_command.open_lab([])
"""
    solved, said, settings = run(installed, code, tmp_path).splitlines()
    assert solved == "64 starvelab.show starvelab.widgets"
    assert said == f"The notebooks are in {tmp_path / 'starvelab-lab'}."
    assert (tmp_path / "starvelab-lab" / "starving-the-gpu" / "01_compute_baseline.ipynb").is_file()
    assert Path(settings).is_relative_to(installed.parents[1])
    assert (Path(settings) / "labconfig" / "page_config.json").is_file()
    assert len(list((tmp_path / "workspaces").iterdir())) == 1, "the sidebar starts closed"


def test_version_date_and_licence_are_the_same_wherever_they_are_written(
    project, repository, installed, tmp_path
):
    cited = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    code = "import starvelab, importlib.metadata as m; print(starvelab.__version__, m.version('starvelab'))"
    command = [installed, "-m", "starvelab", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    name, version = done.stdout.split()
    assert name == "starvelab"
    files = [(repository / house / "pyproject.toml").read_text(encoding="utf-8") for house in published()]
    houses = {tomllib.loads(file)["project"]["version"] for file in files}
    versions = {cited["version"], version, *houses, *run(installed, code, tmp_path).split()}
    assert versions == {project["version"]}
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\S+) \((\S+)\)$", changelog, flags=re.MULTILINE)
    assert releases[0] == (project["version"], str(cited["date-released"])), (
        "CHANGELOG.md needs a heading '## VERSION (DATE)' with the version and the date of CITATION.cff"
    )
    assert cited["license"] == project["license"] == "Apache-2.0"
    assert re.search(r"Apache License\s+Version 2\.0", (repository / "LICENSE").read_text(encoding="utf-8"))


def test_uvx_builds_a_checkout_anew_after_a_git_pull(repository):
    for house in published():
        file = tomllib.loads((repository / house / "pyproject.toml").read_text(encoding="utf-8"))
        assert {"git": {"commit": True}} in file["tool"]["uv"]["cache-keys"]


# --- the exact versions ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def resolved(uv, repository: Path) -> dict[tuple[str, str], subprocess.CompletedProcess]:
    """What uv would install on each system with all extras: a wheel of everything, and nothing is built.

    Only the index that everybody has is asked: another one of this machine may have wheels for itself only.
    What there is for the first and the last Python there is for those between.
    """
    cases = list(product(PLATFORMS, (PYTHONS[0], PYTHONS[-1])))

    def resolve(case: tuple[str, str]) -> subprocess.CompletedProcess:
        return uv(
            "compile", repository / "pyproject.toml", "--all-extras", "--constraint", PINS,
            "--no-header", "--no-annotate", "--only-binary", ":all:", "--python-platform", case[0],
            "--no-python-downloads", "--python", sys.executable, "--python-version", case[1],
            UV_INDEX="", UV_FIND_LINKS="", MACOSX_DEPLOYMENT_TARGET="14.0",
        )  # fmt: skip

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(cases, pool.map(resolve, cases), strict=True))


def test_all_that_make_installs_exists_for_each_python_and_system_in_an_exact_version(resolved, pinned):
    failed = [f"{case}: {done.stderr}" for case, done in resolved.items() if done.returncode]
    assert not failed, "\n".join(failed)
    for case, done in resolved.items():
        assert names(done.stdout) <= pinned, case
    # PyTorch is left out where it does not exist.
    without = {platform for (platform, _), done in resolved.items() if "\ntorch==" not in done.stdout}
    assert without == {INTEL_MAC}


def names(text: str) -> set[str]:
    """The packages that have an exact version, but for those of CUDA, whose versions PyTorch names."""
    return {name for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE) if not OF_TORCH.match(name)}


@pytest.fixture(scope="module")
def pinned(repository: Path) -> set[str]:
    return names("".join(path.read_text(encoding="utf-8") for path in (repository / "binder").glob("*s.txt")))


def test_the_recipe_for_new_versions_asks_for_all_that_have_one(repository, pinned, tmp_path):
    recipes = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    command = re.search(r"(binder/uv\.sh \.venv pip compile .*?)```", recipes, re.DOTALL)[1].strip()
    for written, path in ((".venv", sys.prefix), ("/tmp/pins.txt", tmp_path / "pins.txt")):
        command = command.replace(written, shlex.quote(str(path)))
    done = subprocess.run(
        ["bash", "-c", f"{command} --constraint {PINS}"], cwd=repository, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert names((tmp_path / "pins.txt").read_text(encoding="utf-8")) == pinned


def test_make_takes_each_python_that_it_has_versions_for_and_no_other(repository):
    conditions = re.findall(r"sys\.exit\((.+?)\)\"", (repository / "Makefile").read_text(encoding="utf-8"))
    assert conditions
    for version in ("3.10.13", *PYTHONS, "3.14.9", "3.15.0"):
        of_python = {"sys": SimpleNamespace(version_info=tuple(map(int, version.split("."))))}
        refuses = {eval(condition, of_python) for condition in conditions}
        assert refuses == {version[:4] not in {python[:4] for python in PYTHONS}}, version


# --- the page of the index ---------------------------------------------------------------------------


def test_the_page_of_the_index_has_links_and_a_picture_that_lead_somewhere(wheel, project, repository):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        page = message_from_bytes(archive.read(name))
    assert page["Description-Content-Type"] == "text/markdown"
    urls = dict(one.split(", ") for one in page.get_all("Project-URL"))
    assert urls == project["urls"]
    text = page.get_payload(decode=True).decode()
    links = re.findall(r"(!?)\[[^][]*\]\(([^)\s]+)\)", text)
    hosts = {"!": "https://raw.githubusercontent.com", "": "https://github.com"}
    here = 0
    for picture, link in links:
        assert link.startswith("https://"), f"{link} leads nowhere on the page of the index"
        root = rf"{hosts[picture]}/[^/]+/[^/]+(?:/blob)?/v{project['version']}"
        if inside := re.fullmatch(rf"{root}/([^#]+)#?(.*)", link):
            assert (repository / inside[1]).is_file(), link
            assert not inside[2] or inside[2] in anchors(repository / inside[1]), link
            here += 1
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert here == len(re.findall(r"\]\((?!https:)", readme)) > 10
