"""The machine that a job runs on: its cores and its memory, as the system tells them."""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from pathlib import Path

from starvelab.host import has_processes, usable_cores

# Where Linux says in which groups a process is, such as those of a container or of a scheduler's job, and the
# folder of all groups.
OWN_GROUPS, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def busy_cores() -> float | None:
    """Seconds in which the cores of this process were busy; None where that cannot be told."""
    if not has_processes():
        return None
    import psutil  # loaded here: it needs processes, which a browser's Python lacks

    times = psutil.cpu_times(percpu=True)
    ours = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(times))
    if len(ours) > usable_cores():  # of a container: the others that are seen may use other cores
        return None
    return float(sum(each.user + each.system for number, each in enumerate(times) if number in ours))


def _read_line(path: str) -> bytes:
    # A file object takes five times as long, and this is asked beside waits of some milliseconds.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 200)
    finally:
        os.close(file)


def queued_seconds(*tasks: object) -> float | None:
    """Return the seconds in which this thread, or those tasks, had work and no core; None if unknown.

    A task is named as Linux does below /proc: by a process number, or as "thread-self".
    """
    try:
        return sum(
            int(_read_line(f"/proc/{task}/schedstat").split()[1]) / 1e9 for task in tasks or ("thread-self",)
        )
    except (OSError, IndexError, ValueError):
        return None


def children_seconds() -> float:
    """Return the seconds of the CPU that processes had which this one had started, and which have ended."""
    return sum(os.times()[2:4])


def processes_seconds(*numbers: int) -> float | None:
    """Return the seconds of the CPU of processes, and of those that they had started and that have ended."""
    import psutil

    try:
        return float(sum(sum(psutil.Process(number).cpu_times()[:4]) for number in numbers))
    except psutil.Error:  # they end
        return None


def tree_seconds() -> float:
    """Return the seconds of the CPU of this process and all that it started, those that ended among them."""
    import psutil

    family, seconds = [psutil.Process()], 0.0
    listed = Path(f"/proc/self/task/{os.getpid()}/children").exists()
    for process in family:  # which grows meanwhile
        with suppress(psutil.Error, OSError):  # it ends
            seconds += sum(process.cpu_times()[:4])
            if listed:
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    children = (task / "children").read_text(encoding="ascii").split()
                    family += [psutil.Process(int(child)) for child in children]
            elif len(family) == 1:  # it goes through all processes that there are
                family += process.children(recursive=True)
    return seconds


def own_threads() -> tuple[str, ...]:
    """Return the tasks of this thread and of its libraries, but of no other thread that Python started."""
    try:
        numbers = os.listdir("/proc/self/task")
    except OSError:
        return ()
    others = {thread.native_id for thread in {*threading.enumerate()} - {threading.current_thread()}}
    return tuple(f"self/task/{number}" for number in numbers if int(number) not in others)


def memory_lines(number: int, name: str) -> dict[str, int]:
    """Bytes by their names in a file that Linux has about the memory of a process; none where it has not."""
    try:
        text = Path(f"/proc/{number}/{name}").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {key: 1024 * int(size) for key, size in re.findall(r"(\w+):\s+(\d+) kB", text)}


def free_memory() -> int | None:
    """Bytes that programs may still take here, also in a container; None where the system does not tell."""
    if not has_processes():
        return None
    import psutil

    free = int(psutil.virtual_memory().available)
    try:
        own = OWN_GROUPS.read_text(encoding="utf-8").partition("0::/")[2].partition("\n")[0]
    except OSError:
        return free
    for group in (GROUPS / own, *(GROUPS / own).parents):
        try:
            limit, used = (
                int((group / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current")
            )
            stat = (group / "memory.stat").read_text(encoding="ascii")
        except (OSError, ValueError):  # there is none, or it has no limit
            continue
        # Files that nobody uses make room.
        files = re.search(r"^inactive_file (\d+)", stat, re.MULTILINE)
        free = min(free, limit - used + (int(files[1]) if files else 0))
    return max(free, 0)
