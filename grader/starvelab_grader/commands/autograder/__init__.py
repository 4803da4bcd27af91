"""The archive with which Gradescope grades: its scripts, the assignment, and the packages that it needs."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, distributions, entry_points
from json import loads
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import cloudpickle

from ...autograde.definition import Definition
from ...errors import UnavailableError
from ...files import scratch_folder
from ...plugins import GROUP

HERE = Path(__file__).parent
SCRIPTS = ("setup.sh", "run_autograder", "gradescope.py")
EXECUTABLE = 0o755 << 16


def write_autograder(
    place: Path, definition: Definition, options: Sequence[str], more: Sequence[str] = ()
) -> list[str]:
    """Write the archive; `options` are those of `run`. Return what it installs, with `more` packages."""
    plugins = (point.dist.name for point in entry_points(group=GROUP) if point.dist is not None)
    names = sorted({"starvelab-grader", *plugins})
    requirements = [*names, *more]
    with scratch_folder() as folder:
        wheels = _build_wheels(names, folder)
        texts = {name: (HERE / name).read_text(encoding="utf-8") for name in SCRIPTS}
        texts["options"] = "".join(f"{option}\n" for option in options)
        texts["requirements.txt"] = "".join(f"{line}\n" for line in requirements)
        texts["constraints.txt"] = "".join(_constraints())
        with ZipFile(place, "w", ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                entry = ZipInfo(name)
                entry.external_attr, entry.compress_type = EXECUTABLE, ZIP_DEFLATED
                archive.writestr(entry, text)
            archive.writestr("assignment.bin", cloudpickle.dumps(definition))
            for wheel in wheels.values():
                archive.write(wheel, f"wheels/{wheel.name}")
    return requirements


def _build_wheels(names: Sequence[str], folder: Path) -> dict[str, Path]:
    """Build a wheel of each package that is installed from a folder: no index has it as it is here."""
    wheels = {}
    for name in names:
        source = loads(Distribution.from_name(name).read_text("direct_url.json") or "{}").get("url", "")
        if not source.startswith("file://"):
            continue
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        command = [*build, str(folder / name), source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["pip said nothing"]
            raise UnavailableError(f"No wheel of {name} could be built from {source}: {lines[-1]}")
        (wheels[name],) = (folder / name).glob("*.whl")
    return wheels


def _constraints() -> list[str]:
    """Return the version of each package that is installed here: a grade may depend on it."""
    versions = {one.metadata["Name"]: one.version for one in distributions()}
    return sorted(f"{name}=={version}\n" for name, version in versions.items())
