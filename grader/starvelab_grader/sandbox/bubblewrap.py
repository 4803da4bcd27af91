"""The command line that runs Python in bubblewrap, and whether that works on this machine.

A sandbox has no network, and of the host it can read only the interpreter and its packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ..plugins import packages
from . import seccomp

SCRATCH = "/starvelab-scratch"  # the folder to work in
WRITABLE = (SCRATCH, "/tmp", "/dev/shm")  # file systems in memory
MEGABYTE = 1_000_000
# The packages as they run here, which need not be those that are installed.
PACKAGES = (Path(__file__).parents[1], *(folder for folder, _ in packages().values()))
REMEDY = (
    "Install it (Debian and Ubuntu: sudo apt-get install bubblewrap) on a Linux machine that allows it, or "
    "grade without protection, where nothing can be lost: --IsolatedExecute.unsafe=True."
)
PACKAGES_MISSING = (
    "It finds only what is installed into the environment of the Python that grades: install there what is "
    f"missing ({sys.executable} -m pip install ...), and not into another folder of packages."
)
# Of the whole system only what programs are made of.
SYSTEM = ("/usr", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/fonts")
MERGED = ("/bin", "/lib", "/lib64", "/sbin")


def command(
    python: Iterable[str],
    *,
    user: int,
    environment: Mapping[str, str] | None = None,
    readable: Iterable[str] = (),
    scratch: int = 64 * MEGABYTE,
    filter_from: int | None = None,
) -> list[str]:
    """Return the command line that runs Python with these arguments in a sandbox.

    Where the caller is root, all inside belongs to `user`. Of an environment Python gets only what is given
    here, and its path and home. Beside Python's own folders the readable ones can be read. In the scratch
    folder, in /tmp and in /dev/shm that many bytes can be written each. From `filter_from`, a file
    descriptor, bubblewrap reads the filter of system calls.
    """
    args = [shutil.which("bwrap") or "bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    args += ["--unshare-uts", "--die-with-parent", "--new-session", "--hostname", "sandbox"]
    if os.geteuid() != 0:
        args += ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    args += ["--proc", "/proc", "--dev", "/dev"]
    for folder in WRITABLE:
        args += ["--perms", "1777", "--size", str(scratch), "--tmpfs", folder]
    parents: set[Path] = set()
    for path in _needed_inside(readable):
        # Folders on the way to a file would be closed to other users, unless they are made like this.
        for parent in reversed(path.parents[:-1]):
            if parent not in parents:
                args += ["--perms", "0755", "--dir", str(parent)]
                parents.add(parent)
        args += ["--ro-bind", str(path), str(path)]
    for link in MERGED:
        if os.path.islink(link):
            args += ["--symlink", os.readlink(link), link]
        elif os.path.isdir(link):
            args += ["--ro-bind", link, link]
    # An ordinary user owns /dev inside too, and could fill it: its file system has no size.
    args += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", SCRATCH]
    if filter_from is not None:
        args += ["--seccomp", str(filter_from)]
    own = {"PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
    if elsewhere := [str(each.parent) for each in PACKAGES if not _is_packages(each.parent)]:
        own["PYTHONPATH"] = os.pathsep.join(elsewhere)
    environment = own | dict(environment or {})
    for name, value in environment.items():
        args += ["--setenv", name, value]
    args.append("--")
    if os.geteuid() == 0:
        args += ["/usr/bin/setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]
        args += ["--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all"]
    return [*args, sys.executable, *python]


def _needed_inside(readable: Iterable[str]) -> list[Path]:
    """Files and folders that have to be seen inside, outer ones first."""
    packages = [each for each in sys.path if _is_packages(Path(each))]
    folders: list[str | Path] = [*SYSTEM, sys.prefix, sys.base_prefix, *packages, *PACKAGES]
    folders += readable
    paths = sorted({Path(each).absolute() for each in folders if os.path.exists(each)})
    return [path for path in paths if not any(other in path.parents for other in paths)]


def _is_packages(folder: Path) -> bool:
    """True if Python finds what is installed there, inside the sandbox as outside."""
    return folder.name in ("site-packages", "dist-packages")


@cache
def why_not() -> str:
    """Return why bubblewrap cannot be used here; empty if it can."""
    if not sys.platform.startswith("linux"):
        return f"Student code is run in bubblewrap, which needs Linux, and this is {sys.platform}. {REMEDY}"
    if shutil.which("bwrap") is None:
        return f"Student code is run in bubblewrap, and there is no bwrap on the PATH. {REMEDY}"
    with seccomp.opened() as filter_from:
        result = subprocess.run(
            command(
                ["-c", "import starvelab_grader.sandbox.runner"],
                user=os.getuid() or 65_000,
                filter_from=filter_from,
            ),
            env={},
            pass_fds=[] if filter_from is None else [filter_from],
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
        if lines[0].startswith("Traceback"):  # bubblewrap works
            return f"In the sandbox Python cannot load the grader: {lines[-1]}. {PACKAGES_MISSING}"
        return f"Student code is run in bubblewrap, and here it does not start: {lines[-1]}. {REMEDY}"
    return ""
