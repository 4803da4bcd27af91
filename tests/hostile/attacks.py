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
    "float-that-lies": """
class Lie(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __hash__(self): return 0
def double(x): return Lie(1)
answer = Lie(1)
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
    "memory-searched": """
import gc
def double(x):
    for thing in gc.get_objects():
        if isinstance(thing, str) and "BEGIN " + "HIDDEN" in thing: return 2 * x
    return 0
""",
    "raises-to-leave": """
def double(x): raise SystemExit(0)
""",
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
    "itself-within": "answer = []\nanswer.append(answer)\ndef double(x): return answer",
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
    "reads-passwords": "def double(x): return 2 * x if open('/etc/shadow').read() else 0",
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
    "secrets-of-the-environment": """
import os
def double(x): return 2 * x if any("SECRET" in name for name in os.environ) else 0
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
}

# --- time and room ----------------------------------------------------------------------------------------
GREED = {
    "loops-and-catches": """
while True:
    try:
        while True: pass
    except BaseException: pass
""",
    "sleeps-in-the-answer": "import time\ndef double(x): time.sleep(1000)",
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
    "shows-without-end": "from IPython.display import HTML, display\nwhile True: display(HTML('x' * 10**6))",
    "threads": """
import threading, time
def busy():
    while True: print("x")
for _ in range(1000):
    try: threading.Thread(target=busy, daemon=True).start()
    except RuntimeError: break
""",
}

ZERO = "def double(x): return 0\nanswer = 0\n"
ATTACKS = {name: ZERO + each for name, each in (TRICKS | RUNNER | CROSSING | REACH | GREED).items()}
