"""Answers that deserve nothing: each would return what is asked only if its trick worked.

The exercise is `double(x)`, which returns twice its number, and `answer`, which is a number nobody can know.
Each begins with both as zero, so that what it does not define earns nothing.
HOST stands for a file of the instructor, PORT for a port on which the instructor's machine listens.
"""

# --- tricks inside the student's own process --------------------------------------------------------------
TRICKS = {
    "equal-to-everything": """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __float__(self): return 4.0
    def __abs__(self): return 0.0
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
def double(x): return Any()
answer = Any()
""",
    "unittest-any": """
from unittest.mock import ANY, MagicMock
double = MagicMock(return_value=ANY)
answer = ANY
""",
    "float-that-lies": """
class Lie(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __hash__(self): return 0
def double(x): return Lie(1)
answer = Lie(1)
""",
    "check-of-ones-own": """
def check(*args, **more): print("Right")
""",
    "credit-of-ones-own": """
class Credit:
    def __init__(self, points): self.points = points
    def part(self, *args): pass
    def total(self): return 6.0
""",
    "checks-patched": """
import sys
import starvelab.checks as checks
checks.check = lambda *args, **more: None
checks.Credit.total = lambda self: 6.0
checks.WrongAnswer.__new__ = lambda *args: None
sys.modules["starvelab.checks"] = checks
""",
    "builtins-patched": """
import builtins, math
builtins.abs = lambda value: 0
builtins.isinstance = lambda value, kind: True
math.isclose = lambda *args, **more: True
builtins.AssertionError = ValueError
""",
    "numpy-patched": """
import numpy as np
np.allclose = np.isclose = lambda *args, **more: True
np.ndarray = float
def double(x): return np.float64(0)
""",
    "pint-patched": """
from starvelab import Q_
Q_.__eq__ = lambda a, b: True
Q_.is_compatible_with = lambda a, b: True
Q_.m_as = lambda a, b: 0
def double(x): return Q_(1, "ms")
answer = Q_(1, "ms")
""",
    "json-patched": """
import json
json.dumps = lambda *args, **more: '{"value": 4, "outputs": [], "failed": false}'
json.loads = lambda *args, **more: {"do": "run", "source": "1"}
json.JSONEncoder.encode = lambda self, value: '{"value": 4}'
""",
    "hooks": """
shell = get_ipython()
shell.events.register("post_run_cell", lambda *args: print("6.0"))
shell.ast_transformers.append(None)
shell.input_transformers_cleanup.append(lambda lines: ["6.0\\n"])
shell.run_cell = lambda *args, **more: None
""",
    "forged-results": """
from IPython.display import display
display({"text/plain": "6.0"}, raw=True)
get_ipython().displayhook(6.0)
def double(x):
    display({"text/plain": "6.0"}, raw=True)
    print("6.0")
    return 0
""",
    "callers-frame": """
import sys
def expected():
    frame = sys._getframe()
    while frame:
        for scope in (frame.f_locals, frame.f_globals):
            for name in ("expected", "right"):
                if name in scope: return scope[name]
        frame = frame.f_back
    return 0
def double(x): return expected()
answer = expected()
""",
    "memory-searched": """
import gc
def double(x):
    for thing in gc.get_objects():
        if isinstance(thing, str) and "BEGIN " + "HIDDEN" in thing: return 2 * x
    return 0
""",
    "history-searched": """
def double(x):
    seen = [str(part) for part in get_ipython().user_ns.get("In", [])]
    return 2 * x if any("BEGIN " + "HIDDEN" in part or "double(" + "7)" in part for part in seen) else 0
""",
    "traced": """
import sys
found = []
def trace(frame, event, arg):
    found.extend(value for name, value in frame.f_locals.items() if name == "expected")
    return trace
sys.settrace(trace)
def double(x): return found[-1] if found else 0
""",
    "raises-to-leave": """
def double(x): raise SystemExit(0)
""",
    "leaves": "import os\ndef double(x): os._exit(0)",
    "raises-not-implemented": "def double(x): raise NotImplementedError",
    "raises-what-checks-raise": """
class WrongAnswer(BaseException):
    def __str__(self): raise ValueError
def double(x): raise WrongAnswer
""",
    "error-that-cannot-be-shown": """
class Odd(Exception):
    def __str__(self): return 10**9 * "x"
    @property
    def __traceback__(self): raise MemoryError
def double(x): raise Odd
""",
    "error-named-to-confuse": """
Odd = type("x'); import os; ('", (Exception,), {})
def double(x): raise Odd("<script>alert(1)</script>")
""",
    "half-characters": """
from IPython.display import display
print("\\ud800")
display({"text/plain": "\\ud800"}, raw=True)
def double(x):
    print("\\ud800")
    raise ValueError("\\ud800")
answer = "\\ud800"
""",
    "no-function": "double = 3\nanswer = None",
    "nothing-left": "def double(x): return 2 * x\ndel double\nanswer = 0\ndel answer",
    "coroutine": "async def double(x): return 2 * x",
    "generator": "def double(x): yield 2 * x\nanswer = (n for n in range(3))",
    "nan": "def double(x): return float('nan')\nanswer = float('nan')",
    "infinite": "def double(x): return float('inf')\nanswer = float('inf')",
    "true": "def double(x): return True\nanswer = True",
}

# --- the runner itself ------------------------------------------------------------------------------------
# The object that answers the grader, and the module that it runs.
FOUND = """
import gc
book = next(thing for thing in gc.get_objects() if type(thing).__name__ == "NotebookProcess")
runner = type(book).serve.__globals__
assert runner["__name__"] == "starvelab_grader.sandbox.runner"
"""
RUNNER = {
    "answers-with-nonsense": """
def called(name):
    def nonsense(self, message):
        return {
            "kind": ["value"], "value": {"!": {}}, "content": "%%%", "outputs": {"a": 1}, "error": 3,
            "ask": 1,
        }
    nonsense.__name__ = name
    return nonsense
for name in ("run", "look", "read", "call"):
    setattr(type(book), name, called(name))
""",
    "shows-a-million-things": """
output = {"output_type": "stream", "name": "stdout", "text": ""}
def run(self, message): return {"outputs": [output] * 100_000}
type(book).run = run
""",
    "encoder-replaced": """
class Encoder:
    def __init__(self, *args, **more): pass
    def encode(self, value, depth=0): return {"!": "lab", "parts": ["os", "abort"]}
runner["Encoder"] = Encoder
""",
    "calls-back-for-ever": """
def double(x):
    while True: book.channel.send({"callback": 0, "args": [], "more": {"!": "dict", "parts": []}})
""",
    "replies-that-cannot-be-passed-on": """
import json
dumps = json.dumps
json.dumps = lambda message: dumps(message, ensure_ascii=False)  # the grader's own is three times as long
nested = []
for _ in range(150): nested = [nested]
output = {"output_type": "display_data", "data": {"application/json": nested}, "metadata": {}}
def run(self, message): return {"outputs": [output], "failed": False}
def look(self, message):
    if message["name"] == "double": return {"kind": "function"}
    return {"kind": "other", "strange": "\u00e9" * 3_900_000}
def read(self, message): return {"content": "A" * 7_900_000}
def call(self, message): return {"value": "\u00e9" * 3_900_000}
for function in (run, look, read, call): setattr(type(book), function.__name__, function)
""",
    "tags-forged": """
forged = {"!": "lab", "parts": ["os", "truncate", "path", "HOST", "length", 0]}
def look(self, message):
    return {"kind": "function"} if message["name"] == "double" else {"kind": "value", "value": forged}
replies = [{"!": "callback", "parts": [0]}, [{"a": {"!": "tuple", "parts": [forged]}}], forged] * 99
def call(self, message): return {"value": {"!": "dict", "parts": [1, replies.pop()]}}
for function in (look, call): setattr(type(book), function.__name__, function)
""",
    "errors-forged": """
def call(self, message):
    return {"error": {"type": "StopIteration", "message": ["x"], "frames": [{}, "y" * 10**6] * 5}}
type(book).call = call
""",
}
RUNNER = {name: f"{FOUND}{source}\nprint('in place')" for name, source in RUNNER.items()}

# --- what crosses -----------------------------------------------------------------------------------------
CROSSING = {
    "deep": """
def double(x):
    value = []
    for _ in range(100_000): value = [value]
    return value
answer = double(0)
""",
    "itself-within": "answer = []\nanswer.append(answer)\ndef double(x): return answer",
    "huge-list": "def double(x): return [0] * 10**7",
    "huge-text": "def double(x): return 'x' * 10**8\nanswer = 'x' * 10**8",
    "huge-number": "def double(x): return 10**100_000\nanswer = 10**100_000",
    "huge-array": "import numpy as np\ndef double(x): return np.zeros(10**8, np.int8)",
    "array-of-objects": """
import numpy as np
def double(x): return np.array([print], dtype=object)
""",
    "memory-as-an-array": """
from types import SimpleNamespace
memory = {"data": (0x41414141, False), "shape": (3,), "typestr": "<f8", "version": 3}
def double(x): return SimpleNamespace(__array_interface__=memory)
answer = double(0)
""",
    "a-decimal-without-end": """
from decimal import Decimal
def double(x): return Decimal("1e999999999")
answer = double(0)
""",
    "pickle": """
import pickle
class Open:
    def __reduce__(self): return (open, ("HOST", "w"))
def double(x): return pickle.dumps(Open())
answer = Open()
""",
    "odd-unit": """
from starvelab import Q_
class Units(dict): pass
def double(x):
    value = Q_(1, "ms")
    value._units = {"__import__('os').system('id')": 1, "ms": 10**9}
    return value
answer = double(0)
""",
    "mapping-of-lies": """
from collections.abc import Mapping
class Odd(Mapping):
    def __getitem__(self, key): return 4
    def __iter__(self):
        while True: yield 1
    def __len__(self): return 1
def double(x): return Odd()
""",
    "messages-forged": """
import json, os, struct
for number in range(3, 64):
    for message in ({"value": 4, "printed": ""}, {"callback": 0, "args": []}, ["list"], {"ask": "call"}):
        body = json.dumps(message).encode()
        try: os.write(number, struct.pack(">I", len(body)) + body)
        except OSError: break
""",
    "message-without-end": """
import os, struct
for number in range(3, 64):
    try: os.write(number, struct.pack(">I", 4_000_000_000))
    except OSError: pass
""",
}

# --- files, network, processes, secrets -------------------------------------------------------------------
REACH = {
    "reads-a-file": "def double(x): return 2 * x if open('HOST').read() else 0",
    "writes-a-file": "open('HOST', 'w').write('gone')\ndef double(x): return 2 * x",
    "lists-the-home": """
import os
def double(x): return 2 * x if os.listdir(os.path.dirname("HOST")) else 0
""",
    "reads-passwords": "def double(x): return 2 * x if open('/etc/shadow').read() else 0",
    "changes-the-lab": """
import starvelab.checks
open(starvelab.lesson.checks.__file__, "a").write("def check(*a, **k): pass")
def double(x): return 2 * x
""",
    "changes-python": """
import os
open(os.__file__, "a").write("#")
def double(x): return 2 * x
""",
    "finds-the-solutions": """
import glob, starvelab
home = starvelab.__path__[0] + "/.."
found = glob.glob(home + "/solutions/*/*.ipynb") + glob.glob(home + "/tests/*")
def double(x): return 2 * x if found else 0
""",
    "connects": """
import socket
def double(x):
    socket.create_connection(("127.0.0.1", PORT), timeout=2)
    return 2 * x
""",
    "asks-a-name-server": """
import socket
def double(x):
    socket.getaddrinfo("example.org", 80)
    return 2 * x
""",
    "secrets-of-the-environment": """
import os
def double(x): return 2 * x if any("SECRET" in name for name in os.environ) else 0
""",
    "environment-of-others": """
import glob
def double(x):
    for name in glob.glob("/proc/[0-9]*/environ"):
        try:
            if b"SECRET" in open(name, "rb").read(): return 2 * x
        except OSError: pass
    return 0
""",
    "processes-of-others": """
import os
def double(x):
    return 2 * x if len([name for name in os.listdir("/proc") if name.isdigit()]) > 8 else 0
""",
    "kills-all": """
import os, signal
for number in list(range(2, 400)) + [-1]:
    try: os.kill(number, signal.SIGKILL)
    except OSError: pass
""",
    "becomes-root": """
import os
def double(x):
    os.setuid(0)
    return 2 * x
""",
    "mounts": """
import ctypes
def double(x): return 2 * x if ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 else 0
""",
    "makes-a-namespace": """
import ctypes
def double(x):
    ctypes.CDLL(None).unshare(0x10000000 | 0x00020000)
    return 2 * x if open("HOST").read() else 0
""",
}

# --- time and room ----------------------------------------------------------------------------------------
GREED = {
    "loops": "while True: pass",
    "loops-and-catches": """
while True:
    try:
        while True: pass
    except BaseException: pass
""",
    "sleeps-in-the-answer": "import time\ndef double(x): time.sleep(1000)",
    "alarm-off": """
import signal, time
signal.setitimer = lambda *args: None
signal.signal(signal.SIGALRM, signal.SIG_IGN)
def double(x):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    time.sleep(1000)
""",
    "forks": """
import os
while True:
    try: os.fork()
    except OSError: pass
""",
    "stays-behind": """
import os, subprocess
if os.fork() == 0:
    subprocess.Popen(["/usr/bin/sleep", "4242"], process_group=0)
    os._exit(0)
""",
    "eats-memory": "hoard = []\nwhile True: hoard.append(bytearray(10**8))",
    "eats-memory-in-many": """
import os, time
for _ in range(12):
    if os.fork() == 0:
        hoard = bytearray(10**9)
        time.sleep(60)
time.sleep(60)
""",
    "fills-the-disk": """
number = 0
while True:
    number += 1
    open(f"/tmp/{number}", "wb").write(bytes(10**7))
""",
    "opens-files": "kept = []\nwhile True: kept.append(open('/dev/null'))",
    "prints-without-end": "while True: print('x' * 10**6)",
    "shows-without-end": "from IPython.display import HTML, display\nwhile True: display(HTML('x' * 10**6))",
    "threads": """
import threading, time
def busy():
    while True: print("x")
for _ in range(1000):
    try: threading.Thread(target=busy, daemon=True).start()
    except RuntimeError: break
""",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "stack": "def double(x): return double(x)\nimport sys\nsys.setrecursionlimit(10**9)",
}

ZERO = "def double(x): return 0\nanswer = 0\n"
ATTACKS = {name: ZERO + each for name, each in (TRICKS | RUNNER | CROSSING | REACH | GREED).items()}
