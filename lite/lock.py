"""Pyodide's lock file, which says where each package is: wheels beside it, or on Pyodide's own server."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from email import message_from_bytes
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "pyodide-lock.json"
PURE = "-none-any.whl"
# Pyodide's list says that matplotlib needs these. It no longer imports pytz, and 3.10 imports fontTools only
# for PDF and PostScript, which no page draws.
NOT_NEEDED = {"matplotlib": {"": "pytz", "3.10.": "fonttools"}}


class Lock:
    """The packages of one `pyodide-lock.json`.

    Parameters
    ----------
    folder : Path
        Where the file stands, and the wheels that belong to it.
    server : str
        The address of everything else, with a slash at its end.
    extras : mapping, optional
        The extra of a package that comes along with it.
    """

    def __init__(self, folder: Path, server: str, extras: Mapping[str, str] | None = None) -> None:
        self.path, self.server, self.extras = folder / NAME, server, extras or {}
        self.content = json.loads(self.path.read_text(encoding="utf-8"))
        self.packages = self.content["packages"]
        self.local: set[str] = set()

    def add_wheels(self) -> None:
        """Let packages be what stands in the wheels of the folder."""
        for wheel in sorted(self.path.parent.glob("*.whl")):
            self._add(wheel)
        for name, others in NOT_NEEDED.items():
            package = self.packages.get(name, {"depends": [], "version": ""})
            for version, other in others.items():
                if other in package["depends"] and package["version"].startswith(version):
                    package["depends"].remove(other)

    def _add(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            # Deeper ones belong to packages that this one has swallowed.
            (metadata,) = [one for one in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", one)]
            said = message_from_bytes(archive.read(metadata))
        name = canonicalize_name(said["Name"])
        known = self.packages.get(name, {})
        self.packages[name] = {
            "name": name,
            "version": said["Version"],
            "file_name": wheel.name,
            "install_dir": "site",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "package_type": "package",
            "unvendored_tests": False,
            "imports": known.get("imports") or modules_in(names),
            "depends": depends_on(
                said.get_all("Requires-Dist", []), self.content["info"]["python"], self.extras.get(name, "")
            ),
        }
        self.local.add(name)

    def missing(self, roots: Iterable[str], *, pins: Mapping[str, str]) -> dict[str, str]:
        """What has to be downloaded, and in which version: what the roots need that is pure and not here yet.

        The version is the one that is pinned, or else the lock's own; empty where neither knows.
        """
        return {
            name: pins.get(name) or known.get("version", "")
            for name, known in self._not_here(roots)
            if not known or known["file_name"].endswith(PURE)
        }

    def compiled(self, roots: Iterable[str]) -> list[dict[str, Any]]:
        """What the roots need that is compiled and not here yet."""
        return [one for _, one in self._not_here(roots) if one and not one["file_name"].endswith(PURE)]

    def _not_here(self, roots: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the roots need and the folder lacks, with its entry, which is empty where it has none."""
        waiting, seen = list(roots), set()
        while waiting:
            name = canonicalize_name(waiting.pop())
            if name in seen:
                continue
            seen.add(name)
            known = self.packages.get(name, {})
            if name not in self.local:
                yield name, known
            waiting += known.get("depends", [])

    def write(self) -> None:
        """Write the file: wheels of the folder by their name, all else by its address.

        What is in no list is left out of what a package depends on: a browser shall not stop there.
        """
        for name, package in self.packages.items():
            there = [one for one in package["depends"] if canonicalize_name(one) in self.packages]
            package["depends"] = there
            if name not in self.local and "://" not in package["file_name"]:
                package["file_name"] = self.server + package["file_name"]
        self.path.write_text(json.dumps(self.content, sort_keys=True), encoding="utf-8")


def modules_in(names: Iterable[str]) -> list[str]:
    """The modules and packages that stand at the top of a wheel."""
    tops = {name.split("/")[0] for name in names if name.endswith(".py")}
    return sorted(top.removesuffix(".py") for top in tops if not top.endswith((".dist-info", ".data")))


def depends_on(requirements: Iterable[str], python: str, extra: str = "") -> list[str]:
    """The names of what a package requires in a browser, with one of its extras."""
    environment = default_environment() | {
        "sys_platform": "emscripten",
        "platform_system": "Emscripten",
        "os_name": "posix",
        "platform_machine": "wasm32",
        "python_version": ".".join(python.split(".")[:2]),
        "python_full_version": python,
        "extra": extra,
    }
    asked = [Requirement(text) for text in requirements]
    return sorted(
        canonicalize_name(one.name) for one in asked if one.marker is None or one.marker.evaluate(environment)
    )
