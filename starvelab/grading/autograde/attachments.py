"""The files that were submitted beside the notebooks, as student code finds them in its folder."""

from __future__ import annotations

import base64
from pathlib import Path

from ...prediction_file import FILE_NAME as PREDICTIONS
from ..submissions.warnings import SubmissionWarning
from ..text import enumerated, shown

MAX_PREDICTIONS = 1_000_000  # bytes


def read_attachments(
    folder: Path, submitted: Path, max_bytes: int
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
    """
    sizes, warnings = {}, []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if _is_linked(folder, inner) or _is_linked(submitted, inner):
            text = f"`{shown(str(inner))}` is a link, and was left out."
            warnings.append(SubmissionWarning(text, person=True))
        elif path.is_file() and path.suffix not in (".ipynb", ".py") and inner.parts[0][0] != ".":
            sizes[inner.as_posix()] = path.stat().st_size
    files: dict[str, str] = {}
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


def _is_linked(folder: Path, inner: Path) -> bool:
    """Whether a file is a symbolic link, or stands in a folder that is one."""
    return any((folder / part).is_symlink() for part in (inner, *inner.parents[:-1]))
