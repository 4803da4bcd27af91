"""Small defects, planted one at a time, and whether the tests find them.

`defects.toml` lists them. Each is planted in a copy of the repository, which bubblewrap mounts in the
repository's place for pytest and for all that pytest starts, so that subprocesses and sandboxes run the
defect too. The repository itself is never changed. A defect is found if one of its tests fails with it; at
the end all tests that found one run once more, without any defect, and have to pass.

Results are saved after each defect, and a run that was stopped goes on where it was. They hold as long as
neither the entry in the list nor any file outside `benchmarks/` changes.

    python -m benchmarks.defects                   plant all; the exit status is 1 if one is not found
    python -m benchmarks.defects --only codec      plant those whose id begins with this
    python -m benchmarks.defects --list            only say whether each can still be planted
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from .report import REPOSITORY, options

LIST = Path(__file__).with_name("defects.toml")
RESULTS = REPOSITORY / ".defects.json"
FOUND, NOT_FOUND, STALE, UNDECIDED = "found", "NOT FOUND", "STALE", "UNDECIDED"
TESTS_FAILED, INTERRUPTED = 1, 2  # pytest's exit status; the second where a test file could not be imported
PYTEST = """
import sys, pytest

class Plugin:
    # An example that fails need not be made small. The profile of tests/harness.py inherits this one.
    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self):
        from hypothesis import Phase, settings
        settings.register_profile("any example", phases=[Phase.explicit, Phase.generate])
        settings.load_profile("any example")

    def pytest_terminal_summary(self, terminalreporter):
        for report in (*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())):
            terminalreporter.write_line(f"FIRST FAILURE {report.nodeid}")

sys.exit(pytest.main(plugins=[Plugin()]))
"""
# The plugins that are left out take seconds to load, and no test here needs them.
WITHOUT = ("cacheprovider", "nbval", "anyio")
OPTIONS = ("-x", "-q", "--tb=no", "--hypothesis-seed=0", *(f"-pno:{name}" for name in WITHOUT))


@dataclass(frozen=True)
class Defect:
    """One defect: its name in the list, and what it puts into the place of which text of which file.

    `tests` are files or folders that should find it, or one test as pytest calls it; the nearest first.
    """

    id: str
    file: str
    text: str
    replacement: str
    breaks: str  # what goes wrong then, in a sentence
    tests: tuple[str, ...]

    def stale(self, root: Path) -> str:
        """Why the defect cannot be planted or looked for any more; empty if it can."""
        path = root / self.file
        if not path.is_file():
            return f"{self.file} is not there. Correct `file` in {LIST.name}."
        if (count := path.read_text(encoding="utf-8").count(self.text)) != 1:
            return (
                f"its text must stand once in {self.file}, and stands there {count} times. "
                f"Correct `text` and `replacement` in {LIST.name}."
            )
        if missing := [each for each in self.tests if not _is_there(root, each)]:
            return f"{', '.join(missing)} is not there. Correct `tests` in {LIST.name}."
        return ""

    def plant(self, root: Path) -> None:
        """Put the defect into a copy of the repository."""
        path = root / self.file
        path.write_text(
            path.read_text(encoding="utf-8").replace(self.text, self.replacement), encoding="utf-8"
        )


def _is_there(root: Path, test: str) -> bool:
    """Whether a file or folder of tests is there, and in a file the test that is named."""
    file, _, name = test.partition("::")
    if not name:
        return (root / file).exists()
    name = name.partition("[")[0]
    return (root / file).is_file() and f"def {name}(" in (root / file).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Result:
    """Whether a defect was found, by which test (or why it could not be planted), and in how many seconds."""

    verdict: str
    by: str
    seconds: float


def load(path: Path = LIST) -> list[Defect]:
    """The defects of a list, in which no id comes twice."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["defect"]
    defects = [Defect(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]
    ids = [one.id for one in defects]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ValueError(f"An id names one defect, and {', '.join(twice)} came twice. Rename one of them.")
    return defects


# --- a copy in the repository's place ---------------------------------------------------------------------


def files() -> list[str]:
    """The files of the repository as they are now, committed or not."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file())


def state(names: Iterable[str]) -> str:
    """A digest of all files that a result depends on."""
    digest = hashlib.sha256()
    for name in names:
        if not name.startswith("benchmarks/"):
            digest.update(f"{name}\0".encode() + hashlib.sha256((REPOSITORY / name).read_bytes()).digest())
    return digest.hexdigest()


def copy(names: Iterable[str], to: Path) -> None:
    """Copy these files of the repository."""
    for name in names:
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, path)


def inside(root: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run Python with a copy mounted over the repository, for this process and all that it starts."""
    mounts = ["--dev-bind", "/", "/", "--bind", str(root), str(REPOSITORY)]
    # The environment and git's own folder are the repository's.
    for path in (Path(sys.prefix), REPOSITORY / ".git"):
        if path.is_relative_to(REPOSITORY):
            mounts += ["--bind", str(path), str(path)]
    environment = dict(os.environ)
    # Without it every run would compile anew what it imports, which takes longer than most tests.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        ["bwrap", *mounts, "--die-with-parent", "--chdir", str(REPOSITORY), "--", sys.executable, *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


# --- looking for defects ----------------------------------------------------------------------------------


def first_failure(root: Path, tests: Iterable[str]) -> str:
    """The first test that fails in a copy; empty if all pass, and an error if pytest could not run them."""
    done = inside(root, ["-c", PYTEST, *OPTIONS, *tests])
    if done.returncode == 0:
        return ""
    failed = re.search(r"^FIRST FAILURE (.+)$", done.stdout, re.MULTILINE)
    if done.returncode not in (TESTS_FAILED, INTERRUPTED) or failed is None:
        raise RuntimeError(f"pytest could not run {' '.join(tests)}:\n{done.stdout[-2000:]}")
    return failed[1]


def look_for(defect: Defect, root: Path) -> Result:
    """Plant a defect in a copy, and run its tests until one fails."""
    begun = time.monotonic()
    defect.plant(root)
    if defect.file.startswith("solutions/"):
        # A defect is looked for in what learners get, and not in notebooks that are out of date.
        built = inside(root, ["solutions/build.py"])
        if built.returncode:
            raise RuntimeError(f"The notebooks could not be made with {defect.id}:\n{built.stdout}")
    by = next(filter(None, (first_failure(root, [each]) for each in defect.tests)), "")
    return Result(FOUND if by else NOT_FOUND, by, round(time.monotonic() - begun, 1))


def saved(path: Path, of: str) -> dict[str, Result]:
    """Results of this state of the files, by what they are results of."""
    if not path.is_file():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    if content["state"] != of:
        return {}
    return {key: Result(**each) for key, each in content["results"].items()}


def save(path: Path, of: str, results: dict[str, Result]) -> None:
    """Write the results, whole or not at all."""
    content = {"state": of, "results": {key: asdict(each) for key, each in results.items()}}
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def main(argv: Sequence[str] | None = None) -> int:
    parser = options(__doc__, only=("", "solver-headroom"))
    parser.add_argument("--only", metavar="ID", help="only defects whose id begins with this")
    parser.add_argument("--list", action="store_true", help="plant nothing; say what can be planted")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"default {RESULTS.name}")
    asked = parser.parse_args(argv)
    defects = [one for one in load() if one.id.startswith(asked.only or "")]
    if not defects:
        parser.error(f"no defect of {LIST.name} has an id that begins with {asked.only!r}. --list names all")
    if not asked.list and shutil.which("bwrap") is None:
        parser.error(
            "defects are planted in bubblewrap, and there is no bwrap on the PATH. Install bubblewrap"
        )
    names = files()
    now = state(names)
    results = saved(asked.results, now)
    lost, finders = 0, set()
    with tempfile.TemporaryDirectory(prefix="starvelab-defects-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        for defect in tqdm(defects, unit="defect", disable=asked.list):
            key = json.dumps(asdict(defect))
            if why := defect.stale(REPOSITORY):
                result = Result(STALE, why, 0.0)
            elif asked.list:
                result = Result("", f"{defect.file}: {defect.breaks}", 0.0)
            elif key in results:
                result = results[key]
            else:
                copy(names, root)  # which takes the defect before it away
                try:
                    result = results[key] = look_for(defect, root)
                    save(asked.results, now, results)
                except RuntimeError as error:
                    result = Result(UNDECIDED, str(error), 0.0)
            if result.verdict == FOUND:
                finders.add(result.by)
            lost += result.verdict in (NOT_FOUND, STALE, UNDECIDED)
            tqdm.write(f"{result.verdict:<9} {result.seconds:>6.1f} s  {defect.id:<34} {result.by}")
        copy(names, root)
        if finders and (fails := first_failure(root, sorted(finders))):
            print(f"{fails} fails without any defect, so that it finds none. Correct it and run this again.")
            return 1
    what = "can be planted" if asked.list else "are found"
    print(f"{len(defects) - lost} of {len(defects)} defects {what}.")
    return int(lost > 0)


if __name__ == "__main__":
    raise SystemExit(main())
