"""Every reader of what a student wrote is run, with what is far beyond its limit, and given no more."""

import ast
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbconvert.exporters import TemplateExporter

import starvelab_grader
from grader.tests.a_course import TINY, Course, said
from grader.tests.hostile.test_reading import CODE, FORGED
from grader.tests.hostile.tiny import FOUND
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde.execution import IsolatedExecute, RestoreStructure
from starvelab_grader.autograde.outputs import VALUE_SIZE, size_of
from starvelab_grader.autograde.task import grade
from starvelab_grader.batch.gradebook import Marks
from starvelab_grader.marking import Marking, essays_of
from starvelab_grader.report import class_report
from starvelab_grader.report.pages import PageJob, make_pages
from starvelab_grader.sandbox.channel import MAX_MESSAGE, Channel
from starvelab_grader.submissions import archives, reading
from starvelab_grader.submissions.archives import MAX_ENTRIES
from starvelab_grader.submissions.reading import (
    MAX_CELLS,
    MAX_NOTEBOOK,
    MAX_OLD_VALUES,
    MAX_TEXT,
    MAX_VALUES,
    UnreadableNotebookError,
)
from tests.archives import zipped

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("one_sandbox")]
PACKAGE = Path(starvelab_grader.__file__).parent
# What makes values or a page of a text: the size of the text alone does not tell how long that takes.
CALLS = {
    "loads", "reads", "validate", "from_dict", "literal_eval", "symtable", "transform_cell",
    "compile", "eval", "exec", "ZipFile", "reader", "DictReader", "restore", "from_notebook_node",
    "safe_load", "BeautifulSoup", "read_notebook",
}  # fmt: skip
CALLS_OF_MODULES = {"nbformat.read", "ast.parse"}
OURS = "the instructor's, the platform's, or the grader's own"
SANDBOX = "what a process of the sandbox or of the checks does to itself"
HANDS_ON = "a student's, which `reading.py` reads for it"
# Of one submission, in bytes; a value counts as `VALUE_SIZE` of them, beside its text.
TEXTS = 2 * (MAX_TEXT + 20 * VALUE_SIZE * MAX_CELLS)
OUTPUTS = IsolatedExecute.max_output_in_all.default_value
# By file and function that read a text, whose it is; a student's, how much of a submission each may be given.
READERS = {
    "autograde/outputs.py:as_nodes": OUTPUTS,
    "autograde/outputs.py:checked": OUTPUTS,
    "autograde/task.py:_add": TEXTS + OUTPUTS,
    "marking.py:_written": TEXTS + OUTPUTS,
    "report/class_report.py:sections": TEXTS + OUTPUTS,
    "report/pages.py:_part": TEXTS + OUTPUTS,
    "report/rendering.py:rendered": TEXTS + OUTPUTS,
    "sandbox/channel.py:receive": 100 * MAX_MESSAGE,
    "submissions/archives.py:_entries": VALUE_SIZE * MAX_ENTRIES,
    "submissions/reading.py:read_notebook": MAX_NOTEBOOK + VALUE_SIZE * MAX_OLD_VALUES,
    "submissions/reading.py:_json": 2 * (MAX_NOTEBOOK + VALUE_SIZE * MAX_VALUES),
    "submissions/reading.py:_new_cell": 2 * (MAX_NOTEBOOK + 20 * VALUE_SIZE * MAX_CELLS),
} | dict.fromkeys((
    "autograde/execution.py:preprocess", "autograde/task.py:_read",
), HANDS_ON) | dict.fromkeys((
    "autograde/releasing.py:_losses", "autograde/releasing.py:_require_gradable",
    "batch/records.py:from_json", "commands/mark.py:put",
    "commands/autograder/__init__.py:_build_wheels", "commands/autograder/__init__.py:write_autograder",
    "commands/platforms.py:_write", "commands/run.py:_read_definition",
    "lms/collecting.py:_opened", "lms/collecting.py:load_origins",
    "lms/returning.py:packed", "lms/returning.py:returned", "lms/rosters.py:__init__",
    "submissions/reference.py:_scopes", "submissions/reference.py:_tree",
    "submissions/reference.py:parse_cells",
), OURS) | dict.fromkeys((
    "sandbox/bubblewrap.py:program", "sandbox/runner.py:_bound_value", "sandbox/runner.py:_run_text",
), SANDBOX)  # fmt: skip


def reads(function: ast.AST) -> bool:
    names = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    return not names.isdisjoint(CALLS_OF_MODULES) or any(
        name.rpartition(".")[2] in CALLS and not name.startswith("re.") for name in names
    )


def test_every_place_that_reads_a_text_is_known():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and reads(node):
                found.add(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")
    assert found == READERS.keys()


class Given:
    """What each reader of the grader is given to read [B], from where Python itself would read it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.by_reader = Counter[str]()
        for owner, name in (
            (json, "loads"), (nbformat, "from_dict"), (reading, "from_dict"), (nbformat, "validate"),
            (TemplateExporter, "from_notebook_node"), (archives.zipfile.ZipFile, "__init__"),
        ):  # fmt: skip
            patch.setattr(owner, name, self._counting(getattr(owner, name)))
        patch.setattr(Channel, "_read", self._counting(Channel._read, weigh=lambda _, length, *__: length))

    def _counting(self, call, weigh=lambda *given: weight(given[-1])):
        def counted(*given, **options):
            self.add(weigh(*given))
            return call(*given, **options)

        return counted

    def add(self, size: int) -> None:
        """Count it for the function of the grader that is nearest."""
        frame = sys._getframe(1)
        while frame is not None:
            path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
            if path.is_relative_to(PACKAGE) and not name.startswith("<"):
                self.by_reader[f"{path.relative_to(PACKAGE).as_posix()}:{name}"] += size
                return
            frame = frame.f_back


def weight(given: object) -> int:
    if isinstance(given, io.BytesIO):
        return VALUE_SIZE * given.getvalue().count(archives.CENTRAL_ENTRY)
    if isinstance(given, str):
        return len(given) + VALUE_SIZE * sum(map(given.count, ",[{"))
    return len(given) if isinstance(given, bytes) else size_of(given, 10**12)


def forged(outputs: str) -> str:
    return FORGED.replace("OUTPUTS", outputs)


LACKS = "print(*(f\"No module named 'm{n}'\" for n in range(30_000)))\ndef double(x): return 0\n"


def hostile() -> Iterator[tuple[str, str | bytes, str]]:
    """What is submitted, each far beyond a limit: an answer or a file, and a part of what is said of it."""
    many_values = "holds more than 3000000 values. Clear its outputs"
    yield "one.ipynb", '{"cells": [' + "[]," * 5_000_000 + "0]}", many_values
    yield "one.ipynb", "{" + '"":0,' * 3_500_000 + '"cells":[]}', many_values
    old = {"nbformat": 3, "worksheets": [{"cells": [{}] * 900_000}]}
    yield "one.ipynb", json.dumps(old), "holds more than 50000 values"
    cells = [CODE] * 200_000
    yield "one.ipynb", json.dumps({"cells": cells}), "has 200000 cells, and 2000 are allowed"
    cells = [CODE | {"source": "a" * 2_000_000}] * 9
    yield "one.ipynb", json.dumps({"cells": cells}), "has cells with 18000000 characters"
    cells = [CODE | {"source": "a" * 45_000_000}]
    yield "one.ipynb", json.dumps({"cells": cells}), "is larger than 20 MB."
    yield "one.ipynb", "[" * 2_000_000, "is nested more deeply than any notebook is"
    yield "one.ipynb", '{"cells": ["' + '\\"' * 9_000_000, "is damaged (line 1)"  # a text without an end
    yield "double", forged('[{"output_type": "stream", "name": "stdout", "text": ""}] * 1_000_000'), ""
    yield "double", forged('[{"data": {"a/b": [[]] * 1_500_000}}]'), ""
    yield "double", f"{FOUND}\nimport os\nos.write(book.channel.sink, b'\\xff' * 100)", ""
    yield "double", f"{LACKS}{'# import m1 m2' * 300_000}", "has no package `m1`"
    yield "all.zip", zipped({f"d{n}/": b"" for n in range(60_000)}), "from `all` on, files were left out"
    yield "all.zip", zipped({f"d{n}/": b"" for n in range(19_000)}), ""


def whole_way(course: Course, student: str) -> str:
    """Grade a submission, keep it, make its page, report it and show it to who marks; what is said of it."""
    classroom, definition = course.classroom(), course.definition
    submission = classroom.submission_of(student)
    graded = grade(submission, definition, RUNNERS)
    assert not graded.failed
    classroom.records.save(graded, submission, classroom._inputs(submission))
    folder = classroom.records.notebooks(student)
    make_pages(PageJob(student, student, TINY, folder, definition.notebooks, Marks(), "0"))
    class_report.sections(classroom, {}, {})
    essays = SimpleNamespace(classroom=classroom, _cells={"one": {"why": definition.cells["one"][-1]}})
    Marking._written(essays, next(essays_of(definition)), student)
    return said(graded)


@pytest.mark.long
def test_of_what_is_far_beyond_a_limit_no_reader_is_given_more_than_the_limit(released_course, tmp_path):
    """Each reader is run: by an input beyond its limit, and by all that stays below."""
    limits, run = {name: limit for name, limit in READERS.items() if isinstance(limit, int)}, set()
    for number, (name, content, refusal) in enumerate(hostile()):
        course = released_course.copy(tmp_path / str(number))
        answers = course.solved(why="Because.", **({} if "." in name else {name: content}))
        course.hand_in("mallory", answers | ({name: content} if "." in name else {}))
        if name == "one.ipynb":
            (course.submitted("mallory") / name).write_text(content, encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            given = Given(patch)
            assert refusal in whole_way(course, "mallory"), number
        for reader, size in given.by_reader.items():
            assert size <= limits.get(reader, size), (number, reader)
        run |= given.by_reader.keys()
    assert limits.keys() <= run


def test_what_nbgraders_own_program_has_read_is_limited_as_well():
    """Formgrader's Autograde, which has no gradebook's cells at hand."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("a" * 30_000_000)])
    resources = {"nbgrader": {"notebook": "one", "assignment": TINY}}
    with pytest.raises(UnreadableNotebookError, match=r"is larger than 20 MB\."):
        RestoreStructure().preprocess(nb, resources)
