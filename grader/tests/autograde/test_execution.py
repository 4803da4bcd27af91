"""A notebook taken apart for grading: honest answers get their points, no check enters the sandbox."""

import json
import logging
import re
from unittest import mock

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from grader.tests.hostile.tiny import (
    FOUND,
    MOST,
    NOTHING,
    RIGHT,
    cell,
    execute,
    graded,
    notebook,
    points,
    printed,
)
from grader.tests.shared_runners import RUNNERS
from starvelab_grader import IsolatedExecute, NoSandboxError
from starvelab_grader.autograde import notebook_run
from starvelab_grader.autograde.execution import WARNINGS
from starvelab_grader.autograde.losses import cost_of_running
from starvelab_grader.autograde.notebook_run import ENDED_PYTHON
from starvelab_grader.sandbox import bubblewrap
from starvelab_grader.sandbox.process import IMPORTS, Runner

pytestmark = [pytest.mark.long, pytest.mark.sandbox]

CALLS = {f"call-{number}": (1, "double(1)") for number in range(14)}
VALUES = {f"value-{number}": (1, "check(answer, 42)\nif not answer: double(1)") for number in range(14)}
ODD = "class Odd(dict):\n    def items(self): import os; os._exit(3)\ndouble, answer = Odd(), 42"
LOOKS = {
    "named": (1, "assert answer == [3, 2, 1], answer"),
    "again": (1, "assert list(answer) == [3, 2, 1], answer"),
    "returned": (1, "assert double([1, 2]) == [2, 4] and len(double([5])) == 1"),
    "view": (1, "assert sorted(keys()) == ['a', 'b'] and keys() == {'a', 'b'}"),
    "lazy": (1, "try: fails()\nexcept ValueError as error: assert 'too late' in str(error)"),
    "endless": (1, "assert 'too many values' in repr(endless)"),
}
# An answer, tests, what they earn, and what stands below a cell.
SAID = {
    "what is missing is a name that is not defined": (
        "pass", {}, NOTHING, {"whole": "NameError: name 'double' is not defined"},
    ),
    "a check hands over functions and objects of the lab": (
        "def apply(function, values): return sum(function(value) for value in values)\n"
        "def workers_of(pipeline): return pipeline.workers.count",
        {"both": (5, "calls = []\ndef twice(x): calls.append(x); return 2 * x\n"
                  "from starvelab import Pipeline\ncheck(apply(twice, [1, 2, 3]), 12)\n"
                  "assert calls == [1, 2, 3]\ncheck(workers_of(Pipeline(hardware='20 ms', workers=3)), 3)")},
        {"both": 5}, {},
    ),
    "an iterator is a list for each check that looks at it": (
        "import itertools\nanswer = reversed([1, 2, 3])\ndef double(x): return map(lambda n: 2 * n, x)\n"
        "def keys(): return {'b': 1, 'a': 2}.keys()\nendless = itertools.count()\n"
        "def fails():\n    yield 1\n    raise ValueError('too late')",
        LOOKS, dict.fromkeys(LOOKS, 1), {},
    ),
    "checks have no more memory than the code that they check": (
        RIGHT,
        {"memory": (1, "import resource\nassert resource.getrlimit(resource.RLIMIT_AS)[0] == 4_000_000_000")},
        {"memory": 1}, {},
    ),
    "code that ends Python without end is given up": (
        "def double(x): import os; os._exit(3)", CALLS, dict.fromkeys(CALLS, 0),
        {"call-13": "The submitted code ended Python more than 10 times."},
    ),
    "a value that ends Python when it is looked at is looked at once": (
        ODD, VALUES | {"twice": (1, "double(1)")}, dict.fromkeys(VALUES, 1) | {"twice": 0}, {},
    ),
    "a cell that takes too long is interrupted and the rest still counts": (
        f"{RIGHT}\nwhile True: pass", {}, MOST, {"answer": "This took longer than 1 s."},
    ),
    "a submission has a deadline": (
        f"{RIGHT}\nimport time, signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ntime.sleep(99)",
        {}, NOTHING, {"answer": "had to be ended: it took too long, and could not be interrupted."},
    ),
    "nobody types while a notebook is graded": (
        "name = input('Your name? ')", {}, NOTHING,
        {"answer": "EOFError: Nobody can type while a notebook is graded: take input() out"},
    ),
    "nor while a check calls a function": (
        "def double(x): return 2 * int(input())\nanswer = 42", {}, NOTHING | {"value": 1},
        {"whole": "EOFError: Nobody can type while a notebook is graded"},
    ),
    "an error that ends a loop ends no loop of a check": (
        "def double(x): raise StopIteration",
        {"each": (1, "assert all(map(lambda n: double(n) == 2 * n, range(3)))")},
        {"each": 0},
        {"each": "StopIteration"},
    ),
    "an error of a type of one's own keeps its name": (
        "class Strange(Exception): pass\ndef double(x): raise Strange('on purpose')\nanswer = 42",
        {}, NOTHING | {"value": 1}, {"in-parts": "Strange: on purpose"},
    ),
    "what a function prints stands with the check that called it": (
        "def double(x):\n    print('called with', x)\n    return 2 * x\nanswer = 42",
        {}, MOST, {"whole": "called with 2"},
    ),
    "a value that cannot cross is named": (
        "def double(x): return print\nanswer = open",
        {}, NOTHING, {"whole": "it is of the type builtin_function_or_method"},
    ),
    "an error in a function of the check reaches the student and comes back": (
        "def safe(function):\n    try: return function(1)\n    except ValueError as error: return str(error)",
        {"one": (1, "def picky(x): raise ValueError('not that')\ncheck(safe(picky), 'not that')")},
        {"one": 1}, {},
    ),
    "what the set-up defines is not the student's to change": (
        "def check(*args, **more): pass\ndouble = check\nanswer = 0", {}, NOTHING, {},
    ),
    "a check may use names of an earlier check": (
        f"{RIGHT}\nkept = 5",
        {"first": (1, "kept = 3\ncheck(double(1), 2)"), "second": (1, "check(double(kept), 6)")},
        {"first": 1, "second": 1}, {},
    ),
    # With its error more is put out than a cell keeps, and nbgrader gives all points where it sees none.
    "a check that fails after much was printed says so and costs its points": (
        "def double(x):\n    print('x' * 999_960)\n    return 0\nanswer = 0",
        {}, NOTHING, {"whole": "WrongAnswer: twice 2 is 0, and that is not right: it is too small."},
    ),
    "units of two kinds": (
        "def double(x): return Q_('2 ms') + Q_('2 img')\nanswer = 0", {}, NOTHING,
        {
            "whole": "compared or converted need units of one kind, got ms and img.",
            "in-parts": "compared or converted need units of one kind, got ms and img. "
            "Follow the units through your formula.\n0 of 2: a time. As above.",
        },
    ),
}  # fmt: skip

STORE = "from starvelab.lesson.widgets.store import PredictionStore\n"
READ = f"{STORE}locked = PredictionStore().read().predictions\n"


@pytest.mark.parametrize(("answer", "tests", "earned", "said"), SAID.values(), ids=SAID)
def test_what_an_answer_earns_and_what_its_student_reads(tmp_path, answer, tests, earned, said):
    limits = {"timeout": 1.0, "deadline": 3.0} if "while True" in answer or "sleep(99)" in answer else {}
    nb = execute(notebook(answer, **tests), tmp_path, **limits)
    assert points(nb) == earned
    for name, text in said.items():
        assert text in re.sub(r"\x1b\[\d+m", "", printed(nb, name))


def test_an_error_is_made_into_text_once_and_without_frames_of_the_grader(tmp_path):
    watch = """from IPython.core.ultratb import VerboseTB
made, old = [], VerboseTB.format_record
VerboseTB.format_record = lambda self, frame, *more: made.append(frame.filename) or old(self, frame, *more)
def double(x): raise ValueError(x)"""
    nb = notebook(watch)
    nb.cells += [new_code_cell("double(1)", id="fails"), new_code_cell("print(*made)", id="made")]
    frames = printed(execute(nb, tmp_path), "made").split()
    assert len(frames) == 5, (
        "of three calls by checks one each, of the cell that fails its own and the function's"
    )
    assert not any("starvelab_grader" in one for one in frames)
    shown = printed(nb, "fails")
    assert "ValueError" in shown
    assert "In[2]" in shown, "the student's cell, not the runner"


def test_what_most_notebooks_need_is_there_before_the_first_cell_and_leaves_no_trace_in_it(tmp_path):
    look = """import os, sys
from starvelab.model import groups
names = ("Datasets", "Hardware", "Links", "Models", "Storage")
print("tabulate" in sys.modules, *(vars(getattr(groups, name))["_members"] is not None for name in names))
shell = get_ipython()
print(shell.execution_count, [name for name in ("_", "__") if shell.user_ns.get(name)], len(In), Out)
print(os.path.samefile(_dh[0], os.getcwd()))"""
    nb = execute(notebook(look), tmp_path)
    assert printed(nb, "answer") == "True True True True True True\n3 [] 3 {}\nTrue\n"


def test_of_what_most_notebooks_import_only_what_the_assignment_names_is_there(tmp_path, monkeypatch):
    folder = tmp_path / "source" / "tiny"
    folder.mkdir(parents=True)
    (folder / "utils.py").write_text("from matplotlib import pyplot")
    (folder / "packages.txt").write_text("Graded code may import Python's own modules, numpy and ipywidgets.")
    begin = mock.Mock(side_effect=ZeroDivisionError)
    monkeypatch.setattr(RUNNERS, "begin", begin)
    with pytest.raises(ZeroDivisionError):
        execute(notebook("pass"), tmp_path, course=tmp_path, imports=[*IMPORTS, "pandas"])
    needed = [*IMPORTS[-2:], "pandas"]
    assert begin.call_args.kwargs["imports"] == needed, "what the course asks for is there"


@pytest.mark.parametrize("checks", ["outside", "inside"])
@pytest.mark.parametrize("hide", [False, True])
def test_what_a_function_prints_while_checks_call_it_is_left_out_if_the_course_says_so(
    tmp_path, hide, checks
):
    loud = "def double(x):\n    print('called with', x)\n    return 0 * x\nprint('mine')\nanswer = 42"
    nb = execute(notebook(loud), tmp_path, hide_prints=hide, checks=checks)
    assert points(nb) == NOTHING | {"value": 1}
    assert ("called with" not in printed(nb, "whole")) == hide
    assert "and that is not right" in printed(nb, "whole")
    told = "0 of 1: a number. The answer is 0"
    assert (told in printed(nb, "in-parts")) == (not hide or checks == "outside"), "which the check prints"
    assert printed(nb, "answer") == "mine\n"
    assert nb.metadata["starvelab_graded"]["hide_prints"] == hide


def test_no_check_and_no_expected_value_enters_the_sandbox(tmp_path, monkeypatch):
    sent = []
    ask = Runner.ask

    def spy(runner, message, seconds):
        sent.append((runner.sandboxed, json.dumps(dict(message))))
        return ask(runner, message, seconds)

    monkeypatch.setattr(Runner, "ask", spy)
    tests = {"hidden": (1, "### BEGIN HIDDEN TESTS\ncheck(double(1234567), 2469134)\n### END HIDDEN TESTS")}
    assert points(execute(notebook(RIGHT, **tests), tmp_path)) == {"hidden": 1}
    inside = " ".join(message for sandboxed, message in sent if sandboxed)
    assert "1234567" in inside  # the argument has to
    assert "2469134" not in inside
    assert "HIDDEN" not in inside
    assert any("2469134" in message for sandboxed, message in sent if not sandboxed)


def test_files_that_were_handed_in_are_there_and_links_are_not(tmp_path):
    (tmp_path / "secret.txt").write_text("of the instructor")
    folder = tmp_path / "submitted"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "rates.csv").write_text("42")
    (folder / "helper.py").write_text("raise SystemExit")
    (folder / "one.ipynb").write_text("{}")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "folder").symlink_to(tmp_path)
    source = "from pathlib import Path\nanswer = int(open('data/rates.csv').read())\ndouble = None\n"
    source += (
        "there = sorted(str(path) for path in Path('.').rglob('*') if path.is_file() and path.name[0] != '.')"
    )
    tests = {"value": (1, "check(answer, 42)"), "there": (1, "assert there == ['data/rates.csv'], there")}
    assert points(execute(notebook(source, **tests), folder)) == {"value": 1, "there": 1}


def test_what_a_link_points_to_does_not_come_in_as_a_copy(tmp_path):
    """Stock nbgrader follows links when it copies a submission."""
    (tmp_path / "submitted" / "anybody" / "tiny").mkdir(parents=True)
    (tmp_path / "submitted" / "anybody" / "tiny" / "key.txt").symlink_to("/etc/hostname")
    copied = tmp_path / "autograded"
    copied.mkdir()
    (copied / "key.txt").write_text("of the instructor")
    nb = notebook("from pathlib import Path\nanswer = 42 if Path('key.txt').exists() else 0")
    assert points(execute(nb, copied, course=tmp_path))["value"] == 0


def test_more_files_than_there_is_room_for_are_left_out_and_said_once(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(200))
    (tmp_path / "b.txt").write_text("42")
    (tmp_path / "link").symlink_to("b.txt")
    locked = {"answer": 3.0, "locked_at": "2026-01-01T00:00:00Z", "key": "home"}
    (tmp_path / "predictions.json").write_text(json.dumps({"home": locked}))
    source = "import os\nanswer = int(open('b.txt').read()) if not os.path.exists('a.bin') else 0"
    test = f"{READ}check(answer, 42)\nassert {{*locked}} == {{'home'}}"
    runs = [
        execute(notebook(source, value=(1, test)), tmp_path, student="sam", max_bytes=150) for _ in range(2)
    ]
    assert [points(nb)["value"] for nb in runs] == [1, 1]
    assert runs[0].metadata[WARNINGS] == [
        ["`link` is a link, and was left out.", True],
        [
            "The files beside the notebooks may have 0.00015 MB in all, and `predictions.json` 1 MB. "
            "These were left out: `a.bin`.",
            True,
        ],
    ]
    assert "- `link` is a link" in runs[0].cells[0].source
    assert runs[1].metadata[WARNINGS] == []


def test_predictions_larger_than_any_are_left_out_and_said(tmp_path):
    (tmp_path / "predictions.json").write_bytes(b" " * 1_000_001)
    nb = execute(notebook(RIGHT), tmp_path)
    assert "These were left out: `predictions.json`." in nb.metadata[WARNINGS][0][0]
    assert points(nb) == MOST


@pytest.mark.parametrize(("answer", "check"), [
    ("answer = 10**6", "import time\ntime.sleep(answer)"),
    ("def answer(read): return read(10**18)", "assert answer(lambda n: sum(range(n))) == 4"),
    ("answer = 3", "import os\nos._exit(answer)"),
], ids=["endless", "endless-in-a-function-that-it-hands-over", "ended"])  # fmt: skip
def test_a_check_that_does_not_end_with_an_answer_costs_its_points_and_no_others(
    tmp_path, monkeypatch, answer, check
):
    monkeypatch.setattr(notebook_run, "EXTRA_TIMEOUT", 0.5)
    tests = {"before": (1, "assert double(2) == 4"), "odd": (1, check), "after": (1, "assert double(3) == 6")}
    nb = execute(notebook(f"{RIGHT}\n{answer}", **tests), tmp_path, timeout=1.0, deadline=60.0)
    assert points(nb) == {"before": 1, "odd": 0, "after": 1}
    assert "This check did not end: it took too long" in printed(nb, "odd")
    said = "Checks did not end with these answers: odd."
    assert [(one.text, one.person) for one in cost_of_running(nb)] == [(said, True)]


PLAIN = "from math import isclose\nimport math as m, utils\nfrom utils import told, tell"
BY_IMPORTS = {
    "module": "assert m.isclose(double(2), 4)",
    "function": "assert isclose(double(2), 4)",
    "of-the-course": "tell(double(1))\nassert told() == [7, 2] and utils.told() == []",
}


@pytest.mark.parametrize(("plain", "answer", "earned"), [
    (PLAIN, "def double(x): return 2 * x\ntell(7)", (1, 1, 1)),
    ("isclose = lambda *args: True\nclass m: isclose = isclose", "def double(x): return 0", (0, 0, 0)),
    ("", "def double(x): return 2 * x", (0, 0, 0)),
], ids=["as-given-out", "forged", "deleted"])  # fmt: skip
def test_checks_import_themselves_what_a_plain_cell_of_the_instructors_imports(
    tmp_path, plain, answer, earned
):
    def written(plain, answer):
        nb = notebook(answer, **{name: (1, test) for name, test in BY_IMPORTS.items()})
        nb.cells.insert(1, nbformat.v4.new_code_cell(plain))
        return nb

    source, submitted = tmp_path / "source" / "tiny", tmp_path / "submitted"
    source.mkdir(parents=True)
    submitted.mkdir()
    (source / "utils.py").write_text("said = []\ntell = said.append\ndef told(): return said")
    nbformat.write(written(PLAIN, "def double(x): return 2 * x\ntell(7)"), source / "one.ipynb")
    nb = execute(written(plain, answer), submitted, course=tmp_path, student=f"plain-{earned}")
    assert tuple(points(nb).values()) == earned


def test_a_prediction_that_the_students_code_locks_is_seen_by_the_checks_to_the_end(tmp_path):
    answer = "from starvelab.widgets import predict\npredict('wall', 'CPU', confidence=0.7)"
    test = f"{READ}assert {{*locked}} == {{'wall', 'home'}}"
    locked = {"answer": 3.0, "locked_at": "2026-01-01T00:00:00Z", "key": "home"}
    (tmp_path / "predictions.json").write_text(json.dumps({"home": locked}))
    nb = notebook(answer, locked=(1, test), deleted=(1, test))
    nb.cells.insert(3, nbformat.v4.new_code_cell("import os\nos.remove('predictions.json')"))
    assert points(execute(nb, tmp_path)) == {"locked": 1, "deleted": 1}


def test_outputs_that_no_file_can_hold_are_left_out(tmp_path):
    forged = """
nested = []
for _ in range(150): nested = [nested]
data = {
    "deep": {"application/json": nested},
    "half": {"text/plain": "\\ud800"},
    "kept": {"text/plain": "as it was"},
}
def run(self, message):
    output = {"output_type": "display_data", "data": data[message["source"]], "metadata": {}}
    return {"outputs": [output], "failed": False}
type(book).run = run
"""
    nb = notebook(FOUND + forged)
    nb.cells[2:] = [nbformat.v4.new_code_cell(name, id=name) for name in ("deep", "half", "kept")]
    execute(nb, tmp_path)
    assert printed(nb, "deep") == printed(nb, "half") == "The outputs of this cell cannot be shown.\n"
    assert "as it was" in printed(nb, "kept")


def test_checks_inside_keep_to_the_deadline_and_to_the_limit_of_outputs(tmp_path):
    answer = "print('x' * 5000)\nanswer = 42"
    tests = {
        "right": (2, "assert answer == 42"),
        "wrong": (1, "assert answer == 43, 'y' * 5000"),
        "long": (1, "import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ntime.sleep(99)"),
        "after": (1, "assert True"),
    }
    limits = {"timeout": 1.0, "deadline": 2.0, "max_output": 2000}
    nb = execute(notebook(answer, **tests), tmp_path, checks="inside", **limits)
    assert points(nb) == {"right": 2, "wrong": 0, "long": 0, "after": 0}
    assert printed(nb, "answer") == "Outputs are left out: a notebook may put out 0.002 MB in all.\n"
    assert "The submitted code took longer in all than the 2 s that it may." in printed(nb, "after")
    assert nb.metadata.starvelab_graded["mode"] == "sandboxed, checks inside"


@pytest.mark.parametrize("where", ["in the cell", "in the function"])
def test_checks_that_fail_since_python_was_ended_say_so(tmp_path, where):
    ending = "import os\nos._exit(3)"
    in_function = "def double(x):\n    import os; os._exit(3)\nanswer = 42"
    source = f"{RIGHT}\n{ending}" if where == "in the cell" else in_function
    nb = execute(notebook(source), tmp_path)
    lost = MOST if where == "in the cell" else {"whole": 2, "in-parts": 3}
    assert points(nb) == MOST | dict.fromkeys(lost, 0)
    assert printed(nb, "answer") == (f"{ENDED_PYTHON}\n" if where == "in the cell" else "")
    for test in lost:
        said = printed(nb, test)
        assert "The submitted code ended Python." in said, test
        assert "TypeError" not in said, test


ENDINGS = {
    "ends": "import os\nos._exit(3)",
    "takes all its time": "import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)"
    "\ntime.sleep(99)",
    "ends everything": "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(5)",
    "ends when it is looked at": "class Odd(dict):\n    def items(self): ends()\nbroken = Odd()",
    "stops": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_cell_that_ends_python_costs_no_other_answer_its_points(tmp_path, ending):
    """What stands above and below counts, and runs with the file that an earlier cell has written."""
    nb = notebook("open('rate.txt', 'w').write('42')\ndef double(x): return 2 * x")
    nb.cells[2:2] = [
        cell("ends", f"import os\ndef ends(): os._exit(3)\nbroken = 1\n{ending}", solution=True),
        cell("below", "answer = int(open('rate.txt').read())", solution=True),
        cell("broken-test", "check(broken, 1)", grade=True, locked=True, points=4),
    ]
    execute(nb, tmp_path, timeout=1.0)
    assert points(nb) == MOST | {"broken-test": 0}
    assert "The submitted code " in printed(nb, "broken-test")


def test_an_answer_of_a_kind_that_no_check_can_read_is_shown_to_a_person(tmp_path):
    nb = execute(notebook("class Odd: pass\ndef double(x): return Odd()\nanswer = Odd()"), tmp_path)
    assert points(nb) == NOTHING
    assert {(one.text, one.person) for one in cost_of_running(nb)} == {
        (f"No check could read `{name}`, since it is of the type Odd. Was the answer right?", True)
        for name in ("double", "answer")
    }
    assert cost_of_running(execute(notebook(RIGHT + "\nunused = print"), tmp_path)) == []


def test_without_a_sandbox_grading_is_explicit_loud_and_recorded(tmp_path, monkeypatch, logged):
    monkeypatch.setattr(bubblewrap, "why_not", lambda: "There is none here.")
    monkeypatch.setattr(IsolatedExecute, "log", logging.getLogger("grading"))
    with pytest.raises(NoSandboxError, match=r"There is none here\."):
        graded(RIGHT, tmp_path)
    run = execute(notebook(RIGHT), tmp_path, unsafe=True)
    assert points(run) == MOST
    assert run.metadata.starvelab_graded["mode"] == "unsafe"
    assert "UNSAFE: student code runs with all your rights. There is none here." in logged.text


@pytest.mark.parametrize(("platform", "found", "said"), [
    ("darwin", "/usr/bin/bwrap", "needs Linux, and this is darwin. Install it"),
    ("linux", None, "there is no bwrap on the PATH. Install it"),
    ("linux", "/usr/bin/false", "here it does not start: exit status 1. Install it"),
])  # fmt: skip
def test_why_there_is_no_sandbox_is_said_with_the_remedy(monkeypatch, platform, found, said):
    monkeypatch.setattr(bubblewrap.sys, "platform", platform)
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: found)
    reason = bubblewrap.why_not.__wrapped__()
    assert said in reason
    assert reason.endswith(
        "or grade without protection, where nothing can be lost: --IsolatedExecute.unsafe=True."
    )


def test_a_sandbox_runs_the_package_that_grades_and_says_what_it_does_not_find(tmp_path, monkeypatch):
    """Such as another clone than the one that is installed; here one that needs a package nobody has."""
    runner = tmp_path / "starvelab_grader" / "sandbox" / "runner.py"
    runner.parent.mkdir(parents=True)
    runner.write_text("import nowhere_to_be_found")
    monkeypatch.setattr(bubblewrap, "PACKAGES", [tmp_path / "starvelab_grader"])
    assert bubblewrap.why_not.__wrapped__() == (
        "In the sandbox Python cannot load the grader: ModuleNotFoundError: No module named "
        f"'nowhere_to_be_found'. {bubblewrap.PACKAGES_MISSING}"
    )


def test_an_ordinary_user_gets_a_namespace_of_its_own(monkeypatch):
    monkeypatch.setattr(bubblewrap.os, "geteuid", lambda: 1000)
    with bubblewrap.command(["-c", ""], user=5) as (argv, _):
        line = " ".join(argv)
    assert "--unshare-user --disable-userns --cap-drop ALL" in line
    assert "setpriv" not in line


def test_notebooks_of_one_student_share_a_sandbox_and_no_others_do(tmp_path):
    def run(student):
        execute(notebook("answer = 42", value=(1, "check(answer, 42)")), tmp_path, student=student)
        return RUNNERS.student

    ada = run("ada")
    assert run("ada") is ada
    assert run("bob") is not ada
    assert not ada.alive
