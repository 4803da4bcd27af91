"""What the kernel refuses to whatever runs in a sandbox, whoever it is there: a filter of system calls.

libseccomp writes the filter, and bubblewrap installs it before the first instruction of Python.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

MISSING = (
    "libseccomp is not installed, so student code can reach more of the kernel, and can take memory that is "
    "not counted (memfd, System V shared memory). Install it: sudo apt-get install libseccomp2"
)
# Memory that no process of the sandbox seems to have, and keys of whoever grades.
UNCOUNTED = ("memfd_secret", "shmget", "shmat", "msgget", "semget")
KEYS = ("keyctl", "add_key", "request_key")
# A process that is traced can be kept from ending.
OTHER_PROCESSES = (
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd",
    "kcmp",
)  # fmt: skip
# Many kernels share the cores between sessions (autogroup), and heed a niceness only within each. With
# sessions of its own, each process of a sandbox would get as much as a whole sandbox.
SHARES = ("setsid",)
# Parts of the kernel that no exercise needs, where most ways out of a sandbox have been found.
KERNEL = (
    "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "lookup_dcookie", "quotactl", "quotactl_fd",
    "acct", "syslog", "vhangup", "uselib", "personality", "modify_ldt", "ioperm", "iopl", "kexec_load",
    "kexec_file_load", "reboot", "init_module", "finit_module", "delete_module", "swapon", "swapoff",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    "name_to_handle_at", "open_by_handle_at", "move_pages", "migrate_pages", "vmsplice",
)  # fmt: skip
# setns, and below unshare and clone, lead to a namespace in which a student would be root.
NAMESPACES = (
    "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount", "open_tree",
    "fsopen", "fsconfig", "fsmount", "fspick",
)  # fmt: skip
# Programs that find these missing use an older call. What clone3 is asked for no filter can read.
NEWER = ("clone3", "memfd_create", "io_uring_setup", "io_uring_enter", "io_uring_register")
CLONE_NEWUSER = 0x10000000
# Sockets of other kinds, such as AF_VSOCK and AF_ALG, know no network namespace or are seldom looked at.
SOCKETS = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, getattr(socket, "AF_NETLINK", 16))


@cache
def why_not() -> str:
    """Return why there is no filter here; empty if there is."""
    try:
        import pyseccomp  # noqa: F401
    # It raises RuntimeError where it does not find the library, and OSError where that cannot be loaded.
    except (ImportError, RuntimeError, OSError):
        return MISSING
    return ""


@cache
def program() -> bytes:
    """Return the filter as the kernel takes it; nothing where there is no library to write it."""
    if why_not():
        return b""
    import pyseccomp as lib

    rules = lib.SyscallFilter(lib.ALLOW)

    def refuse(number: int, name: str, *arguments: lib.Arg) -> None:
        call = lib.resolve_syscall(lib.Arch.NATIVE, name)
        if call != -1:  # an older library than the call, or a machine that never had it
            rules.add_rule(lib.ERRNO(number), call, *arguments)

    for name in (*UNCOUNTED, *KEYS, *OTHER_PROCESSES, *SHARES, *KERNEL, *NAMESPACES):
        refuse(errno.EPERM, name)
    for name in NEWER:
        refuse(errno.ENOSYS, name)
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
    if why_not():
        return
    import pyseccomp as lib

    join_session_keyring, no_name = 1, None
    # The C library has no function for it. Where the kernel keeps no keys, there is none to leave.
    ctypes.CDLL(None).syscall(lib.resolve_syscall(lib.Arch.NATIVE, "keyctl"), join_session_keyring, no_name)


@contextmanager
def opened() -> Iterator[int | None]:
    """A file descriptor from which the filter can be read once; None where there is none."""
    if not program():
        yield None
        return
    source, sink = os.pipe()
    try:
        os.write(sink, program())  # it is smaller than a pipe
        os.close(sink)
        yield source
    finally:
        os.close(source)
