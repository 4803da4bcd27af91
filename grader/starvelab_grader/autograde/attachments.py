"""The files beside the notebooks, as cells find them in their folder.

Data of both cross into the sandbox. Modules are the instructor's only: one of a student, whatever its name,
could stand in the place of another.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path, PurePosixPath

from starvelab.prediction_file import FILE_NAME as PREDICTIONS

from ..submissions.warnings import SubmissionWarning
from ..text import enumerated, shown

MAX_PREDICTIONS = 1_000_000  # bytes


def modules_in(paths: Iterable[str]) -> dict[str, str]:
    """The files of the modules that can be imported, by their names.

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
    folder: Path, submitted: Path, max_bytes: int, beside: Mapping[str, bytes]
) -> tuple[dict[str, str], list[SubmissionWarning]]:
    """The files in base64 by their paths, and warnings about those that are left out.

    Parameters
    ----------
    folder : Path
        Where nbgrader has copied the submission.
    submitted : Path
        What the student submitted: nbgrader has copied what a link points to, be it a secret of the
        instructor.
    max_bytes : int
        How large all files together may be.
    beside : mapping of str to bytes
        The instructor's files. Their modules are among what is returned.
    """
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
    files = encoded(modules)
    left, left_out = max_bytes, []
    # Predictions come first, so that no other file takes their place; then small files, so that most fit.
    for name, size in sorted(sizes.items(), key=lambda item: (item[0] != PREDICTIONS, item[1], item[0])):
        if size > (MAX_PREDICTIONS if name == PREDICTIONS else left):
            left_out.append(name)
            continue
        left -= size
        files[name] = base64.b64encode((folder / name).read_bytes()).decode()
    if left_out:
        rule = (
            f"The files beside the notebooks may have {max_bytes / 1e6:g} MB in all, "
            f"and `{PREDICTIONS}` {MAX_PREDICTIONS / 1e6:g} MB."
        )
        text = f"{rule} These were left out: {enumerated(left_out)}."
        warnings.append(SubmissionWarning(text, person=True))
    return files, warnings


def encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    """Files in base64."""
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
    """Whether a file is a symbolic link, or stands in a folder that is one."""
    return any((folder / part).is_symlink() for part in (inner, *inner.parents[:-1]))
