"""The machine of whoever grades: its memory, its kernel, its time and its disk are not the students'.

Each attack sets the answer that is asked for only once it has succeeded.
"""

import ctypes
import errno
import json
import operator
import os
import re
import struct
import threading
import time
from contextlib import contextmanager

import pytest

from grader.tests.hostile.tiny import FOUND, MOST, NOTHING, RIGHT, execute, graded, notebook, points, printed
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde.execution import WARNINGS
from starvelab_grader.sandbox import bubblewrap, process
from starvelab_grader.sandbox.channel import ChannelError
from starvelab_grader.sandbox.process import Place, Runner

pytestmark = [pytest.mark.long, pytest.mark.sandbox]

LIMIT = 300_000_000  # bytes; each attack takes 500 MB

MEMORY = {
    "copies of one process, which share what they have": """
import os
hoard = bytearray(b"x") * (5 * 10**8)
for _ in range(3):
    if os.fork() == 0: time.sleep(60)
""",
    "sockets that nobody reads from": """
import os, socket
def fill():
    kept = []
    while True:
        pair = socket.socketpair()
        kept.append(pair)
        for end in pair:
            end.setblocking(False)
            try:
                while True: end.send(bytes(60_000))
            except BlockingIOError: pass
for _ in range(10):
    if os.fork() == 0:
        try: fill()
        except OSError: time.sleep(60)
""",
    "files without content": """
for number in range(6000): open(f"/dev/shm/{number}", "w").close()
""",
    "a process without its parent, beside others that end all the time": """
import os
if os.fork() == 0:
    while True:
        if os.fork() == 0: os.fork() or os._exit(0); os._exit(0)
        os.wait()
if os.fork() == 0:
    if os.fork(): os._exit(0)
    hoard = bytearray(b"x") * (5 * 10**8)
    time.sleep(60)
""",
    "threads that go on when their process seems to have ended": """
import ctypes, os, platform, threading
if os.fork() == 0:
    def hold():
        hoard = bytearray(b"x") * (5 * 10**8)
        time.sleep(60)
    threading.Thread(target=hold).start()
    time.sleep(0.2)
    ctypes.CDLL(None).syscall({"x86_64": 60}.get(platform.machine(), 93), 0)
""",
}


@pytest.mark.parametrize("source", MEMORY.values(), ids=MEMORY)
def test_more_memory_than_is_allowed_is_never_held(tmp_path, monkeypatch, request, source):
    monkeypatch.setattr(process, "MAX_MEMORY", LIMIT)
    monkeypatch.setattr(process, "INODE_SIZE", 100_000)  # it would take a minute to make files enough
    # Its sandbox is ended long before: on a busy machine it takes a few seconds to hold that much.
    held = f"import time\n{source}\ntime.sleep(15)\nanswer = 42"
    # A control group has its limit from the beginning.
    student = request.node.name
    nb = execute(notebook(held, value=(1, "check(answer, 42)")), tmp_path, student=student, timeout=30.0)
    assert points(nb) == {"value": 0}, printed(nb, "answer")


def test_memory_below_the_limit_may_be_shared_by_many(tmp_path, monkeypatch):
    """What ten processes share is counted once: together they seem to have 2 GB."""
    monkeypatch.setattr(process, "MAX_MEMORY", 600_000_000)
    shared = """
import os, time
kept = bytearray(b"x") * (2 * 10**8)
children = [os.fork() or (time.sleep(2), os._exit(0)) for _ in range(10)]
for child in children: os.waitpid(child, 0)
answer = 42
"""
    nb = execute(notebook(shared, value=(1, "check(answer, 42)")), tmp_path, student="sharer", timeout=30.0)
    assert points(nb) == {"value": 1}, printed(nb, "answer")


# Without an end the limit of processes may end the sandbox, or not: that depends on the machine.
@pytest.mark.parametrize("forks", ["os.fork()", "for _ in range(4): os.fork()"])
def test_a_copy_of_the_process_answers_no_question(tmp_path, forks):
    """It would take every second question of the grader, and other answers would lose their points."""
    nb = execute(notebook(f"{RIGHT}\nimport os\n{forks}"), tmp_path, student="forker")
    assert points(nb) == MOST, printed(nb, "answer")


KERNEL = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
numbers = NUMBERS

def refused(name, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(numbers[name], *arguments)
    return result == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)

NEW_USER = 0x10000000
flags = {"clone": NEW_USER, "unshare": NEW_USER}
allowed = [name for name in numbers if not refused(name, flags.get(name, 0))]
answer = 42 if not allowed else allowed
print(allowed)
"""


# Written here once more: what is left out of the filter by mistake must be missed by somebody.
REFUSED = re.findall(
    r"\w+",
    """memfd_secret shmget shmat msgget semget keyctl add_key request_key ptrace process_vm_readv
    process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp setsid bpf perf_event_open
    userfaultfd fanotify_init lookup_dcookie quotactl quotactl_fd acct syslog vhangup uselib personality
    modify_ldt ioperm iopl kexec_load kexec_file_load reboot init_module finit_module delete_module
    swapon swapoff settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
    name_to_handle_at open_by_handle_at move_pages migrate_pages vmsplice setns mount umount umount2
    pivot_root chroot mount_setattr move_mount open_tree fsopen fsconfig fsmount fspick clone unshare""",
)
UNKNOWN = ["clone3", "memfd_create", "io_uring_setup", "io_uring_enter", "io_uring_register"]


def test_the_filter_answers_each_call_that_no_exercise_needs():
    """Asked of the filter itself: without privileges the kernel refuses some of them by itself."""
    lib = pytest.importorskip("pyseccomp")
    there = [name for name in (*REFUSED, *UNKNOWN) if lib.resolve_syscall(lib.Arch.NATIVE, name) >= 0]
    new_user = 0x10000000  # of clone and unshare
    answers = {name: filtered(name, new_user) for name in there}
    assert answers == {name: errno.ENOSYS if name in UNKNOWN else errno.EPERM for name in there}
    assert [filtered(name, 0) for name in ("clone", "unshare", "read", "futex")] == [0] * 4


def test_the_kernel_refuses_what_no_exercise_needs(tmp_path):
    lib = pytest.importorskip("pyseccomp")
    numbers = {name: lib.resolve_syscall(lib.Arch.NATIVE, name) for name in (*REFUSED, *UNKNOWN)}
    source = KERNEL.replace("NUMBERS", str({name: each for name, each in numbers.items() if each >= 0}))
    nb = execute(notebook(source, value=(1, "check(answer, 42)")), tmp_path)
    assert points(nb) == {"value": 1}, printed(nb, "answer")


INSIDE = """
import json, os, resource, starvelab, sys
found = {
    "writable": [
        place
        for place in ("/", "/dev", "/usr", sys.prefix, sys.base_prefix, starvelab.__path__[0])
        if not os.statvfs(place).f_flag & os.ST_RDONLY
    ],
    "namespaces": {n: os.readlink(f"/proc/self/ns/{n}") for n in ("pid", "net", "ipc", "uts", "mnt")},
    "room": {place: os.statvfs(place).f_blocks * os.statvfs(place).f_frsize for place in PLACES},
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS},
}
print(json.dumps(found))
"""


def filtered(call: str, first: int) -> int:
    """What the filter returns for a call with this first argument: 0 where the kernel may answer it."""
    lib = pytest.importorskip("pyseccomp")
    data = struct.pack(
        "<IIQ6Q", lib.resolve_syscall(lib.Arch.NATIVE, call), lib.system_arch(), 0, first, *[0] * 5
    )
    steps = list(struct.iter_unpack("<HBBI", bubblewrap.program()))
    compare = {0x15: operator.eq, 0x25: operator.gt, 0x35: operator.ge, 0x45: operator.and_}
    at = value = 0
    while True:
        code, then, otherwise, number = steps[at]
        at += 1
        if code == 0x20:  # load
            (value,) = struct.unpack_from("<I", data, number)
        elif code == 0x54:
            value &= number
        elif code == 0x06:  # return
            return number & 0xFFFF if number != lib.ALLOW else 0
        else:
            at += then if compare[code](value, number) else otherwise


def test_only_ordinary_sockets_may_be_opened():
    """Asked of the filter itself: a kernel that knows no such sockets answers as the filter does."""
    answers = {kind: filtered("socket", kind) for kind in range(1, 60)}
    assert {kind for kind, answer in answers.items() if not answer} == {1, 2, 10, 16}
    assert set(answers.values()) == {0, errno.EAFNOSUPPORT}


def test_a_sandbox_has_namespaces_room_and_limits_of_its_own(tmp_path):
    source = INSIDE.replace("PLACES", str(bubblewrap.WRITABLE)).replace("LIMITS", str(list(process.LIMITS)))
    found = json.loads(printed(execute(notebook(source), tmp_path), "answer"))
    for name, here in found["namespaces"].items():
        assert here != os.readlink(f"/proc/self/ns/{name}"), name
    assert found["writable"] == []
    assert all(0 < room <= 64_000_000 for room in found["room"].values()), found["room"]
    assert found["limits"] == {name: [most, most] for name, most in process.LIMITS.items()}


BOMB = """
import os, time
for _ in range(15):
    if os.fork() == 0:
        try: os.setsid()
        except OSError: pass
        if os.fork(): os._exit(0)
        while True:
            if os.fork() == 0: os._exit(0)
            os.wait()
time.sleep(5)
answer = 42
"""


def test_too_many_processes_end_the_sandbox_also_where_each_has_lost_its_parent(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MAX_PROCESSES", 20)
    nb = execute(notebook(BOMB, value=(1, "check(answer, 42)")), tmp_path, student="bomber", timeout=20.0)
    assert points(nb) == {"value": 0}, printed(nb, "answer")
    assert "had to be ended: it needed more memory or more processes than it may" in printed(nb, "answer")


def test_without_a_sandbox_too_many_processes_end_as_well(monkeypatch, tmp_path):
    monkeypatch.setattr(process, "MAX_PROCESSES", 5)
    monkeypatch.setattr(process, "WATCH_INTERVAL", 0.05)
    slowed = []
    monkeypatch.setattr(process, "slow_down", lambda processes, busy: slowed.extend(processes))
    runner = Runner(sandboxed=False, imports=[])
    source = "import os, time\nfor _ in range(8):\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(60)"
    runner.open(Place(str(tmp_path)))
    with pytest.raises(ChannelError, match=r"The other end is gone\."):
        runner.ask({"do": "run", "source": source, "seconds": 30}, 40)
    assert runner.clock.looked > runner.clock.started, "until then its time was counted by what it used"
    assert runner.process.pid in slowed, "and it was slowed down by how much it worked"


def test_a_sandbox_keeps_the_limits_that_it_began_with(monkeypatch):
    """Else a test that changes them would end the sandbox that another test has left."""
    monkeypatch.setattr(process, "WATCH_INTERVAL", 0.01)
    runner = Runner(sandboxed=False, imports=[])
    monkeypatch.setattr(process, "MAX_PROCESSES", 0)
    monkeypatch.setattr(process, "MAX_MEMORY", 0)
    for _ in range(3):
        looked = runner.clock.looked
        while runner.alive and runner.clock.looked == looked:
            time.sleep(0.005)
    assert runner.alive
    runner.end()


def test_predictions_that_a_students_side_forges_are_no_larger_than_a_file_may_be(tmp_path):
    forged = f"{FOUND}def read(self, message): return {{'content': 'QUJD' * 10**6}}\ntype(book).read = read"
    test = "import os\nassert not os.path.exists('predictions.json')"
    assert points(execute(notebook(forged, none=(1, test)), tmp_path)) == {"none": 1}


def test_where_the_library_is_missing_there_is_no_filter_and_a_reason(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyseccomp", None)
    assert bubblewrap.weakness.__wrapped__() == bubblewrap.WEAKNESS
    monkeypatch.setattr(bubblewrap, "weakness", lambda: bubblewrap.WEAKNESS)
    assert bubblewrap.program.__wrapped__() == b""
    assert bubblewrap.leave_keys() is None
    monkeypatch.setattr(bubblewrap, "program", lambda: b"")
    with bubblewrap.command(["-c", ""], user=5) as (argv, inherited):
        assert "--seccomp" not in argv
        assert inherited == []


def test_a_key_of_whoever_grades_is_not_found_in_a_sandbox(monkeypatch):
    """Here without the filter, which would forbid to look for it."""
    lib = pytest.importorskip("pyseccomp")
    add, search = (lib.resolve_syscall(lib.Arch.NATIVE, name) for name in ("add_key", "keyctl"))
    session, number = -3, []

    monkeypatch.setattr(bubblewrap, "program", lambda: b"")
    source = f"""
import ctypes
found = ctypes.CDLL(None).syscall({search}, 10, {session}, b"user", b"starvelab-test", 0)
print("found" if found > 0 else "not found")
"""

    def plant_and_look() -> None:
        bubblewrap.leave_keys()  # the key must not stay in the keyring of whoever runs the tests
        number.append(ctypes.CDLL(None).syscall(add, b"user", b"starvelab-test", b"secret", 6, session))
        runner = Runner(sandboxed=True, imports=[])
        runner.open(Place("/starvelab-scratch"))
        number.append(runner.ask({"do": "run", "source": source, "seconds": 20}, 30)["outputs"][0]["text"])
        runner.end()

    # A keyring belongs to a thread.
    thread = threading.Thread(target=plant_and_look)
    thread.start()
    thread.join()
    key, said = number
    if key < 0:
        pytest.skip("this kernel keeps no keys")
    assert said == "not found\n"


# --- time -------------------------------------------------------------------------------------------------


def test_a_notebook_that_does_not_end_takes_of_its_own_time(tmp_path, monkeypatch):
    given = []
    ask = Runner.ask

    def spy(runner, message, seconds):
        given.append((message.get("do"), seconds))
        return ask(runner, message, seconds)

    monkeypatch.setattr(Runner, "ask", spy)
    holds = "\nimport os, time\nos._exit = lambda status: time.sleep(1000)"
    assert graded(RIGHT + holds, tmp_path, timeout=2.0, deadline=6.0) == MOST
    assert max(seconds for do, seconds in given if do == "close") <= process.CLOSE_TIMEOUT
    # That of the checks comes first, and is nobody's.
    assert min(seconds for do, seconds in given if do == "close") <= 6.0
    assert RUNNERS.seconds_used > 5.0, "the time until it was ended counts"
    assert not RUNNERS.student.alive


def test_a_sandbox_in_which_no_notebook_can_begin_is_the_students_own_doing(tmp_path, monkeypatch):
    def hold(runner, *where):
        if runner.sandboxed:
            runner.end()
            raise process.ChannelError("Nothing came in time.")
        return opened(runner, *where)

    opened = Runner.open
    monkeypatch.setattr(Runner, "open", hold)
    nb = execute(notebook(RIGHT), tmp_path)
    assert points(nb) == NOTHING
    assert "had to be ended: it took too long, and could not be interrupted." in printed(nb, "answer")


def test_functions_of_the_checks_that_student_code_calls_take_of_its_time(tmp_path):
    calls = """
def each(function):
    while True:
        try: function()
        except BaseException: pass
"""
    test = "import time\ndef slow(): time.sleep(0.5)\neach(slow)"
    nb = execute(notebook(calls, endless=(1, test)), tmp_path, timeout=2.0, deadline=3.0)
    assert points(nb) == {"endless": 0}
    assert "The submitted code took longer in all than the 3 s that it may." in printed(nb, "endless")


def test_a_function_of_the_checks_that_never_ends_is_interrupted(tmp_path):
    calls = "def each(function):\n    try: function(10**9)\n    except Exception as error: return str(error)"
    test = "import time\ncheck(each(time.sleep), 'This took longer than 1 s.')"
    assert points(execute(notebook(calls, one=(1, test)), tmp_path, timeout=1.0, deadline=9.0)) == {"one": 1}


def test_an_answer_that_comes_too_late_is_no_order_to_the_checks(tmp_path):
    """A check hands one function of the student to another, stops waiting, and then gets the answer."""
    source = f"""{FOUND}
import time
order = {{"do": "run", "source": "open({str(tmp_path / "outside")!r}, 'w')", "value": 6}}
answer = 42
def double(x): pass
def each(function, x): pass
def call(self, message):
    if message["name"] != "each": return {{"value": 0}}
    no_names = {{"!": "dict", "parts": []}}
    self.channel.send({{"callback": 0, "args": {{"!": "tuple", "parts": [3]}}, "more": no_names}})
    self.channel.receive()
    time.sleep(0.9)
    self.channel.send(order)
    self.channel.receive()
    return order
type(book).call = call
"""
    (tmp_path / "place").mkdir()
    tests = {"late": (2, "check(each(double, 3), 7)"), "next": (1, "check(answer, 42)")}
    nb = execute(notebook(source, **tests), tmp_path / "place", timeout=0.5, deadline=9.0)
    assert points(nb) == {"late": 0, "next": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


# --- room -------------------------------------------------------------------------------------------------


def test_outputs_have_a_limit_in_all_and_that_is_said(tmp_path):
    nb = notebook(RIGHT + "\nprint('x' * 200_000)")
    nb.cells[2:2] = [nb.cells[1].copy() for _ in range(9)]
    for number, cell in enumerate(nb.cells[1:11]):
        cell["id"] = f"cell-{number}"
    nb = execute(nb, tmp_path, max_output=1_000_000)
    assert points(nb) == MOST
    assert len(json.dumps(nb.cells)) < 1_100_000
    said = "Outputs are left out: a notebook may put out 1 MB in all."
    assert said in printed(nb, "cell-9")
    assert nb.metadata[WARNINGS] == [[said, False]]
    assert not nb.metadata["starvelab_graded"]["is_limited"], "that costs no other notebook anything"


def test_a_submission_has_a_limit_for_all_its_notebooks(tmp_path):
    loud = "def double(x):\n    print('x' * 90_000)\n    return 2 * x\nanswer = 42"
    nb = execute(notebook(loud), tmp_path, max_output_in_all=100_000)
    assert points(nb) == MOST, "what a function prints is cut as well, and costs nothing"
    assert "a submission may put out 0.1 MB in all." in printed(nb, "whole")
    assert nb.metadata["starvelab_graded"]["is_limited"]
    wrong = execute(notebook(loud.replace("2 * x", "x")), tmp_path, max_output_in_all=10_000)
    assert points(wrong) == {"whole": 0, "in-parts": 0, "value": 1}


def test_a_sandbox_that_takes_long_to_set_up_is_not_ended(monkeypatch):
    monkeypatch.setattr(process, "WATCH_INTERVAL", 0.01)
    command = bubblewrap.command

    @contextmanager
    def slow(*arguments, **more):
        with command(*arguments, **more) as (argv, inherited):
            yield ["/bin/sh", "-c", 'sleep 0.1; exec "$0" "$@"', *argv], inherited

    monkeypatch.setattr(bubblewrap, "command", slow)
    runner = Runner(sandboxed=True, imports=[])
    assert runner.alive
    runner.end()


def test_a_process_that_does_not_start_says_why(monkeypatch):
    monkeypatch.setattr(process, "PYTHON", ["-c", "raise SystemExit('There is no room.')"])
    rule = r"did not start \(status 1\): The other end is gone\. There is no room\."
    with pytest.raises(ChannelError, match=rule):
        Runner(sandboxed=True, imports=[])


def test_what_is_ended_twice_closes_no_pipe_of_others():
    runner = Runner(sandboxed=False, trusted=True, imports=[])
    runner.end()
    pipes = [end for _ in range(20) for end in os.pipe()]  # some have the numbers of the first one's pipes
    runner.end()
    for end in pipes:
        os.close(end)  # which raises where it is closed
