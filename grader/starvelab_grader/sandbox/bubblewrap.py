"""Python in bubblewrap: its command line, its filter of system calls, and whether that works on this machine.

A sandbox has no network, and of the host it can read only the interpreter and its packages. What the kernel
refuses to whatever runs there, whoever it is, says a filter: libseccomp writes it, and bubblewrap installs it
before the first instruction of Python.
"""

import ctypes
import errno
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path

from ..plugins import packages

SCRATCH = "/starvelab-scratch"  # the folder to work in
WRITABLE = (SCRATCH, "/tmp", "/dev/shm")  # file systems in memory
SIZE = 64_000_000  # bytes that each of them can hold
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
WEAKNESS = (
    "libseccomp is not installed, so student code can reach more of the kernel, and can take memory that is "
    "not counted (memfd, System V shared memory). Install it: sudo apt-get install libseccomp2"
)


@contextmanager
def command(
    python: Iterable[str], *, user: int,
    environment: Mapping[str, str] | None = None, readable: Iterable[str] = (),
) -> Iterator[tuple[list[str], list[int]]]:  # fmt: skip
    """Give the command line that runs Python in a sandbox, and the files that it has to be started with.

    Where the caller is root, all inside belongs to `user`. Of an environment Python gets only what is given
    here, and its path and home. Beside Python's own folders the readable ones can be read.
    """
    args = [shutil.which("bwrap") or "bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    args += ["--unshare-uts", "--die-with-parent", "--new-session", "--hostname", "sandbox"]
    if os.geteuid() != 0:
        args += ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    args += ["--proc", "/proc", "--dev", "/dev"]
    for folder in WRITABLE:
        args += ["--perms", "1777", "--size", str(SIZE), "--tmpfs", folder]
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
    own = {"PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
    if elsewhere := [str(each.parent) for each in PACKAGES if not _is_packages(each.parent)]:
        own["PYTHONPATH"] = os.pathsep.join(elsewhere)
    for name, value in (own | dict(environment or {})).items():
        args += ["--setenv", name, value]
    source, sink = os.pipe()
    try:
        os.write(sink, program())  # it is smaller than a pipe
        os.close(sink)
        if program():
            args += ["--seccomp", str(source)]
        args.append("--")
        if os.geteuid() == 0:
            args += ["/usr/bin/setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]
            args += ["--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all"]
        yield [*args, sys.executable, *python], [source] if program() else []
    finally:
        os.close(source)


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
    check = ["-c", "import starvelab_grader.sandbox.runner"]
    with command(check, user=os.getuid() or 65_000) as (argv, inherited):
        result = subprocess.run(argv, env={}, pass_fds=inherited, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
        if lines[0].startswith("Traceback"):  # bubblewrap works
            return f"In the sandbox Python cannot load the grader: {lines[-1]}. {PACKAGES_MISSING}"
        return f"Student code is run in bubblewrap, and here it does not start: {lines[-1]}. {REMEDY}"
    return ""


# --- the filter of system calls, and keys -----------------------------------------------------------------
REFUSED = Path(__file__).parent / "refused.toml"  # system calls, by the name of the error, and why
CLONE_NEWUSER = 0x10000000
# Sockets of other kinds, such as AF_VSOCK and AF_ALG, know no network namespace or are seldom looked at.
SOCKETS = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, getattr(socket, "AF_NETLINK", 16))


@cache
def weakness() -> str:
    """Return why there is no filter here; empty if there is."""
    try:
        import pyseccomp  # noqa: F401
    # It raises RuntimeError where it does not find the library, and OSError where that cannot be loaded.
    except (ImportError, RuntimeError, OSError):
        return WEAKNESS
    return ""


@cache
def program() -> bytes:
    """Return the filter as the kernel takes it; nothing where there is no library to write it."""
    if weakness():
        return b""
    import pyseccomp as lib

    rules = lib.SyscallFilter(lib.ALLOW)

    def refuse(number: int, name: str, *arguments: lib.Arg) -> None:
        call = lib.resolve_syscall(lib.Arch.NATIVE, name)
        if call != -1:  # an older library than the call, or a machine that never had it
            rules.add_rule(lib.ERRNO(number), call, *arguments)

    for error, calls in tomllib.loads(REFUSED.read_text(encoding="utf-8")).items():
        for name in chain(*calls.values()):
            refuse(getattr(errno, error), name)
    for name in ("clone", "unshare"):
        refuse(errno.EPERM, name, lib.Arg(0, lib.MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER))
    for kind in range(1, max(SOCKETS)):
        if kind not in SOCKETS:
            refuse(errno.EAFNOSUPPORT, "socket", lib.Arg(0, lib.EQ, kind))
    refuse(errno.EAFNOSUPPORT, "socket", lib.Arg(0, lib.GT, max(SOCKETS)))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def leave_keys() -> None:
    """Give this thread, and what it starts, a new keyring: keys of whoever grades cannot be found in it."""
    if weakness():
        return
    import pyseccomp as lib

    join_session_keyring, no_name = 1, None
    # The C library has no function for it. Where the kernel keeps no keys, there is none to leave.
    ctypes.CDLL(None).syscall(lib.resolve_syscall(lib.Arch.NATIVE, "keyctl"), join_session_keyring, no_name)
