"""The files beside the notebooks, as cells find them in their folder.

Data of both cross into the sandbox. Modules are the instructor's only: one of a student, whatever its name,
could stand in the place of another.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path, PurePosixPath

from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import find_all_files

from ..plugins import student_files
from ..submissions import SubmissionWarning
from ..submissions.reference import released_source
from ..text import enumerated, shown


@dataclass(frozen=True)
class Attachments:
    """The files that each side finds, in base64 by their paths, and warnings about others."""

    student: dict[str, str]
    checks: dict[str, str]
    modules: dict[str, str]  # the instructor's, among the files of both
    warnings: list[SubmissionWarning]


def modules_in(paths: Iterable[str]) -> dict[str, str]:
    """Return the files of the modules that can be imported, by their names.

    Examples
    --------
    >>> modules_in(["utils.py", "plots/__init__.py", "plots/bars.py", "data/rates.csv"])
    {'utils': 'utils.py', 'plots': 'plots/__init__.py'}
    """
    modules = [PurePosixPath(path) for path in paths if path.endswith(".py")]
    return {path.stem: str(path) for path in modules if len(path.parts) == 1} | {
        path.parts[0]: str(path) for path in modules if path.parts[1:] == ("__init__.py",)
    }


def read_attachments(
    course: CourseDirectory, assignment: str, student: str, folder: Path, max_bytes: int
) -> Attachments:
    """Read the files beside the notebooks of a submission, which nbgrader has copied into a folder.

    Where the student has submitted a link, it has copied what that points to, be it a secret of the
    instructor.
    """
    beside = _files_of_the_instructor(course, assignment)
    submitted = Path(course.format_path(course.submitted_directory, student, assignment))
    sizes, warnings = {}, []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if _is_linked(folder, inner) or _is_linked(submitted, inner):
            text = f"`{shown(str(inner))}` is a link, and was left out."
            warnings.append(SubmissionWarning(text, person=True))
        elif path.is_file() and path.suffix in all_suffixes():
            warnings += _left_out(inner.as_posix(), submitted, beside)
        elif path.is_file() and path.suffix != ".ipynb" and inner.parts[0][0] != ".":
            sizes[inner.as_posix()] = path.stat().st_size
    modules = {name: content for name, content in beside.items() if name.endswith(".py")}
    files = _encoded(modules)
    left, left_out = max_bytes, []
    own_limits = {name: most for name, (most, _) in student_files().items()}
    # What the lab wrote comes first, and no other file takes its place; then small files, so that most fit.
    for name, size in sorted(sizes.items(), key=lambda item: (item[0] not in own_limits, item[1], item[0])):
        if size > own_limits.get(name, left):
            left_out.append(name)
            continue
        left -= size
        files |= _encoded({name: (folder / name).read_bytes()})
    if left_out:
        others = "".join(f", and `{name}` {most / 1e6:g} MB" for name, most in own_limits.items())
        rule = f"The files beside the notebooks may have {max_bytes / 1e6:g} MB in all{others}."
        text = f"{rule} These were left out: {enumerated(left_out)}."
        warnings.append(SubmissionWarning(text, person=True))
    checks = _encoded(beside if sum(map(len, beside.values())) <= max_bytes else modules)
    checks |= {name: content for name, content in files.items() if name in own_limits}
    return Attachments(files, checks, modules_in(modules), warnings)


def _files_of_the_instructor(course: CourseDirectory, assignment: str) -> dict[str, bytes]:
    """The instructor's files beside the notebooks, by their paths: modules and data."""
    folder = released_source(course, assignment)
    if not folder.is_dir():
        folder = Path(course.format_path(course.source_directory, ".", assignment))
    paths = sorted(map(Path, find_all_files(str(folder), course.ignore)))
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.suffix != ".ipynb"
    }


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def _left_out(name: str, submitted: Path, beside: Mapping[str, bytes]) -> list[SubmissionWarning]:
    """A warning about code that was submitted beside the notebooks; none where it is as it was given out."""
    path = submitted / name
    # nbgrader has put the instructor's file in the place of a student's.
    if name in beside and (not path.is_file() or path.read_bytes() == beside[name]):
        return []
    text = f"`{shown(name)}` was left out, since code beside the notebooks is not run."
    if name in beside:
        text = f"`{shown(name)}` was changed, and the one that was given out counts."
    return [SubmissionWarning(text, person=name in beside)]


def _is_linked(folder: Path, inner: Path) -> bool:
    """True if a file is a symbolic link, or stands in a folder that is one."""
    return any((folder / part).is_symlink() for part in (inner, *inner.parents[:-1]))
