"""Which tests run, in what order, and which of them share a process.

`make check` leaves out what starts another program than Python or is marked as long, and
`make test WITHOUT="browser sandbox"` what this system can never run. Both say so in the variable
STARVELAB_TESTS_WITHOUT, and the last line of the run says how many tests were left out, and why.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

REPOSITORY = Path(__file__).resolve().parents[1]

# Tests that run student code in bubblewrap: these files, and whoever asks for a course, whose reference
# solution is graded when it is released.
SANDBOXED = (
    "grader/tests/hostile",
    *(
        f"grader/tests/{name}.py"
        for name in (
            "autograde/test_execution",
            "autograde/test_task",
            "commands/test_grade",
            "commands/test_more_machines",
            "test_alone",
            "test_answers_in_the_sandbox",
            "test_faults",
            "test_instructors_page",
            "test_round",
        )
    ),
)
COURSE = "released_course"
# Tests that start a kernel, a server, a worker, or another command: seconds each. PyTorch takes two to load.
PROGRAMS = (
    "tests/browser",
    *SANDBOXED,
    "grader/tests/test_private.py",
    "grader/tests/batch/test_worker_pool.py",
    "grader/tests/lms/test_collecting.py",
    "grader/tests/sandbox/test_cgroup.py",
    "grader/tests/sandbox/test_clock.py",
    "grader/tests/submissions/test_repairing.py",
    *(
        f"tests/measure/test_{name}.py"
        for name in (
            "cuda",
            "dataset_times",
            "datasets",
            "diagnosis",
            "notebook",
            "one_buffer",
            "samples",
            "session",
        )
    ),
    "tests/measure/loaders",
    *(
        f"tests/test_{name}.py"
        for name in (
            "benchmarks",
            "build",
            "documents",
            "host",
            "import_weight",
            "launch",
            "layers",
            "leaks",
            "magics",
            "nbval",
            "notebooks",
            "packaging",
            "recipes",
            "system",
            "validating",
            "workflows",
        )
    ),
    "tests/jobs/test_doctor.py",
    "tests/jobs/test_memory.py",
    "tests/jobs/test_probe.py",
    "tests/jobs/test_ranks.py",
    "tests/jobs/test_start_up.py",
    "tests/jobs/test_torch_traces.py",
    "tests/simulate/test_against_pytorch.py",
    "tests/lesson/widgets/test_store.py",
    "tests/lite/test_byte_code.py",
    "tests/trials/test_command.py",
    "tests/trials/test_run.py",
)
# What the tests of a file or a folder need, of what can be left out.
NEEDS = {
    "browser": ("tests/browser",),
    "index": ("tests/test_packaging.py",),
    "sandbox": SANDBOXED,
    "programs": PROGRAMS,
}
REASONS = {
    "browser": "need a browser",
    "index": "ask the package index",
    "sandbox": "need bubblewrap",
    "programs": "start other programs or take long",
}
# These take longest, so they begin first: otherwise one process would wait at the end for the other.
LONGEST_FIRST: tuple[str, ...] = (
    # While it drives widgets, the notebooks that it shows then are run for tests/test_notebooks.py.
    "tests/browser/test_widgets_in_browser.py",
    "tests/browser",
    "grader/tests/test_round.py",
    "tests/test_notebooks.py",
    "grader/tests/commands/test_grade.py",
    "grader/tests/hostile/test_attacks.py",
    "grader/tests/hostile/test_structures.py",
    "grader/tests/test_faults.py",
    "grader/tests/test_instructors_page.py",
    "grader/tests/autograde/test_execution.py",
    "tests/test_recipes.py",
    "tests/test_benchmarks.py",
    "grader/tests/hostile/test_machine.py",
    "grader/tests/test_answers_in_the_sandbox.py",
    "grader/tests/test_honest.py",
    "tests/measure/loaders/test_loaders.py",
    "tests/test_packaging.py",
    "tests/test_build.py",
    "tests/test_nbval.py",
    "grader/tests/test_alone.py",
    "grader/tests/report/test_feedback_pages.py",
    # Of `make check` these take longest.
    "tests/test_wrong_answers.py",
    "tests/test_published.py",
)
# Files that share what is dear to start: a server and a browser, a class that was graded.
TOGETHER = ("tests/browser",)

_left_out = pytest.StashKey[Counter]()
_files_left_out = pytest.StashKey[set]()


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(REPOSITORY).as_posix()


def _is_below(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")


def left_out_by(file: str, fixtures: Collection[str], without: set[str], *, long: bool = False) -> str:
    """What of `without` a test needs, by its file and the fixtures that it asks for; empty if nothing."""
    of_itself = {"sandbox", "programs"} if COURSE in fixtures else {"programs"} if long else set()
    return next(
        (
            word
            for word in sorted(without)
            if word in of_itself or any(_is_below(file, path) for path in NEEDS[word])
        ),
        "",
    )


def _rank(file: str) -> int:
    """The place of a file in the order of the run."""
    found = (number for number, path in enumerate(LONGEST_FIRST) if _is_below(file, path))
    return next(found, len(LONGEST_FIRST))


def _words() -> set[str]:
    return set(os.environ.get("STARVELAB_TESTS_WITHOUT", "").replace(",", " ").split())


def without() -> set[str]:
    """What is left out, where the variable names nothing else."""
    words = _words()
    if unknown := words - REASONS.keys():
        raise pytest.UsageError(
            f"STARVELAB_TESTS_WITHOUT takes {', '.join(REASONS)}, got {', '.join(sorted(unknown))}."
        )
    return words


def is_imported(path: Path) -> bool:
    """Whether a file of tests is so much as imported: for `make check` that would take seconds."""
    if "programs" not in _words() or not path.is_relative_to(REPOSITORY):
        return True
    return not any(_is_below(path.relative_to(REPOSITORY).as_posix(), program) for program in PROGRAMS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is not imported."""
    if is_imported(collection_path):
        return None
    file = collection_path.relative_to(REPOSITORY).as_posix()
    config.stash.setdefault(_files_left_out, set()).add(file)
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is to be left out, and put the longest files first."""
    leave_out, counts = without(), Counter()
    kept = []
    for item in items:
        long = item.get_closest_marker("long") is not None
        if word := left_out_by(_file(item), getattr(item, "fixturenames", ()), leave_out, long=long):
            counts[word] += 1
        else:
            kept.append(item)
    items[:] = sorted(kept, key=lambda item: _rank(_file(item)))
    config.stash[_left_out] = counts
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = dict(counts)
        config.workeroutput["files_left_out"] = sorted(config.stash.get(_files_left_out, set()))


class _ByFile(LoadScopeScheduling):
    """The tests of a file run in one process, and so do those of files that share what is dear to start."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return next((path for path in TOGETHER if _is_below(file, path)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    """Deal the tests out by file."""
    return _ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Every process has counted the same tests: take over what one of them says."""
    output = getattr(node, "workeroutput", {})
    if counts := output.get("left_out"):
        node.config.stash[_left_out] = Counter(counts)
    if files := output.get("files_left_out"):
        node.config.stash[_files_left_out] = set(files)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say at the very end what was left out."""
    if hasattr(config, "workerinput"):
        return
    files = len(config.stash.get(_files_left_out, set()))
    for word, count in sorted(config.stash.get(_left_out, Counter()).items()):
        also = f" and {files} whole files of them" if word == "programs" and files else ""
        because = f"since STARVELAB_TESTS_WITHOUT names {word}"
        print(f"Left out: {count} tests{also} that {REASONS[word]}, {because}.")
