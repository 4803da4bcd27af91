"""Packing what is submitted: the notebooks of a folder and all that stands beside them, in one .zip file."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ... import runtime
from ...errors import InputError
from . import words

GRADED = "A submission is packed by whoever works on the notebooks. This one is being graded."
SAVED = "A notebook is packed as it was last saved. If it has changed since then, save it and pack again."


@dataclass(frozen=True)
class PackedSubmission:
    """A submission in one file; shows a link that downloads it.

    Attributes
    ----------
    path : Path
        The .zip file.
    files : tuple of str
        What is in it; nothing while grading.
    """

    path: Path
    files: tuple[str, ...]

    def __repr__(self) -> str:
        if not self.files:
            return GRADED
        return f"{self.path.name} is written, with {', '.join(self.files)}. {SAVED}"

    def _repr_html_(self) -> str:
        if not self.files:
            return words.paragraphs(GRADED)
        name = words.escape(self.path.name)
        return (
            f'<p><a href="{quote(self.path.name)}" download="{name}">Download {name}</a> (or in the list of '
            f"files: right-click it, then Download), and submit it.</p><p>It holds "
            f"{words.escape(', '.join(self.files))}. {SAVED}</p>"
        )


def pack(folder: str | os.PathLike[str] | None = None) -> PackedSubmission:
    """Pack the notebooks of a folder, the predictions and all other files beside them into one .zip file.

    Parameters
    ----------
    folder : path, optional
        Where they stand; the folder that the notebook runs in unless given.

    Returns
    -------
    PackedSubmission
        Shows itself when it ends a cell.

    Raises
    ------
    InputError
        If there is no notebook in the folder.
    """
    where = (Path.cwd() if folder is None else Path(folder)).resolve()
    target = where / f"{where.name}.zip"
    if runtime.current().is_grading:
        return PackedSubmission(target, ())
    files = sorted(path for path in where.iterdir() if _belongs(path))
    if not any(path.suffix == ".ipynb" for path in files):
        raise InputError(
            f"A submission holds at least one notebook, and {where} has none. "
            "Pass the folder of an assignment."
        )
    # Under another name until it is whole: nobody shall submit half of it.
    half = target.with_suffix(".part")
    with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.name)
    half.replace(target)
    return PackedSubmission(target, tuple(path.name for path in files))


def _belongs(path: Path) -> bool:
    """Whether a file is the learner's: no hidden one, none that is only half written, and no earlier .zip."""
    return path.is_file() and not path.name.startswith(".") and path.suffix not in (".zip", ".part", ".lock")
