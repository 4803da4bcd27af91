"""Which file of a submission is which notebook, whatever its name, and which files stand beside them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from starvelab.prediction_file import FILE_NAME as PREDICTIONS

from ..text import enumerated, printable, shown
from .archives import FoundFile
from .warnings import SubmissionWarning

MAX_NOTEBOOK = 20_000_000  # bytes
MAX_NAME = 200  # bytes of one part of a path; file systems take 255
MAX_PATH = 1000  # bytes of a path in the folder of a submission
MIN_SHARE = 0.5  # of its cells, that a file must name to be a notebook by its content
MAX_LISTED = 10  # warnings about several files in one place
TIMESTAMP = "timestamp.txt"


def files_by_notebook(
    files: Sequence[FoundFile], asked: Mapping[str, set[str]]
) -> dict[str, list[FoundFile]]:
    """For each notebook that is asked for, the files that may be it, the likeliest first.

    Parameters
    ----------
    files : sequence of FoundFile
    asked : mapping of str to set of str
        By notebook, the names of its cells.
    """
    claims: dict[str, list[tuple[tuple[bool, int, int, int, str], FoundFile]]] = {name: [] for name in asked}
    for file in files:
        lower = file.path.name.lower()
        is_json = lower.endswith(".json") and "predictions" not in lower
        if not (".ipynb" in lower or is_json):
            continue
        stem = re.split(r"\.ipynb", file.path.name, flags=re.IGNORECASE)[0]
        if name := _by_name(stem, asked) or _by_content(file.content, asked):
            is_exact = file.path.name == f"{name}.ipynb"
            # Of several copies browsers and learning platforms give the newest the highest number.
            number = int((re.findall(r"\d+", stem.replace(name, "")) or ["0"])[-1][:9])
            rank = (not is_exact, file.depth, len(file.path.parts), -number, str(file.path))
            claims[name].append((rank, file))
    return {
        name: [file for _, file in sorted(each, key=lambda pair: pair[0])] for name, each in claims.items()
    }


def _by_name(stem: str, asked: Mapping[str, set[str]]) -> str | None:
    """The notebook whose name is part of a file's name: `x (1)`, `x-Copy1`, `ada_123_x`, `X`."""
    names = [name for name in asked if normalized(name) in normalized(stem)]
    return max(names, key=len, default=None)


def normalized(text: str) -> str:
    """A name in which only letters and digits count."""
    return re.sub(r"[\W_]+", "_", unicodedata.normalize("NFKC", text).casefold())


def cells_named_in(content: bytes) -> set[str]:
    """The names of nbgrader's cells that a file holds."""
    encoding = json.detect_encoding(content[:4])
    if not encoding.startswith("utf-8"):
        content = content[:MAX_NOTEBOOK].decode(encoding, "replace").encode("utf-8", "replace")
    if b"nbgrader" not in content:
        return set()
    named = re.findall(rb'"grade_id"\s*:\s*"([^"\\]{1,200})"', content)
    return {name.decode("utf-8", "replace") for name in named}


def is_of_another_assignment(content: bytes, cells: set[str]) -> bool:
    """Whether a notebook names cells, and none of these."""
    named = cells_named_in(content[:MAX_NOTEBOOK])
    return bool(named) and not named & cells


def _by_content(content: bytes, asked: Mapping[str, set[str]]) -> str | None:
    """The notebook most of whose cells a file names."""
    if len(content) > MAX_NOTEBOOK:
        return None
    named = cells_named_in(content)
    shares = {name: len(named & cells) / len(cells) for name, cells in asked.items() if cells}
    best = max(shares, key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] > MIN_SHARE else None


def files_beside(
    files: Sequence[FoundFile], notebooks: Iterable[Sequence[FoundFile]]
) -> tuple[dict[str, bytes], list[SubmissionWarning]]:
    """The files that are no notebooks, by their paths from the folder of the notebooks.

    Of two that belong in one place, the one in the folder of the notebooks counts, since the notebooks were
    run beside it. A file in a folder below keeps its place there.

    Parameters
    ----------
    files : sequence of FoundFile
    notebooks : iterable of sequence of FoundFile
        The files that may be each notebook; the first one of them counts.
    """
    notebooks = [each for each in notebooks if each]
    parents = [first.path.parent for first, *_ in notebooks]
    claimed = [file for each in notebooks for file in each]
    base = max(parents, key=parents.count, default=PurePosixPath())
    places: dict[str, list[FoundFile]] = {}
    not_asked, stamps = list[str](), list[str]()
    for file in sorted(
        files, key=lambda file: (not file.path.is_relative_to(base), file.depth, str(file.path))
    ):
        if file in claimed:
            continue
        if ".ipynb" in file.path.name.lower():
            not_asked.append(str(file.path))
            continue
        path = file.path.relative_to(base) if file.path.is_relative_to(base) else file.path
        if file.path.name == TIMESTAMP and (file.depth or len(file.path.parts) > 1):
            stamps.append(str(file.path))
            continue
        places.setdefault(_storable_path(path), []).append(file)
    beside, several = {}, []
    for name, (first, *others) in places.items():
        beside[name] = first.content
        if others := [other for other in others if other.content != first.content]:
            several.append(several_files(f"`{shown(name)}`", first, others))
    warnings = several[:MAX_LISTED]
    if several[MAX_LISTED:]:
        text = f"There are several files in {len(several) - MAX_LISTED} more places."
        warnings.append(SubmissionWarning(text, person=True))
    if not_asked:
        text = f"Notebooks that are not asked for were left out: {enumerated(not_asked)}."
        warnings.append(SubmissionWarning(text))
    if stamps:
        text = f"Only the platform says when something was submitted: {enumerated(stamps)} was left out."
        warnings.append(SubmissionWarning(text))
    return beside, [*_choose_predictions(beside), *warnings]


def _choose_predictions(beside: dict[str, bytes]) -> list[SubmissionWarning]:
    """Give the likeliest file the name of the predictions, in place, and warn of others."""
    alike = sorted((name for name in beside if re.search(r"predictions\b.*\.json", name)), key=len)
    chosen = PREDICTIONS if PREDICTIONS in beside else next(iter(alike), "")
    others = [name for name in alike if beside[name] != beside[chosen]]
    if chosen and chosen != PREDICTIONS:
        beside[PREDICTIONS] = beside.pop(chosen)
    if not others:
        return []
    counts = "counts" if chosen == PREDICTIONS else f"counts as `{PREDICTIONS}`"
    text = f"`{shown(chosen)}` {counts}, and {enumerated(others)} does not."
    return [SubmissionWarning(text, person=True)]


def several_files(what: str, chosen: FoundFile, others: Sequence[FoundFile]) -> SubmissionWarning:
    """A warning that several files belong in one place, of which one counts."""
    left_out = enumerated([str(other.path) for other in others])
    counts = f"`{shown(str(chosen.path))}` counts, and {left_out} does not"
    return SubmissionWarning(f"There are several files of {what}: {counts}.", person=True)


def _storable_path(path: PurePosixPath) -> str:
    """A path that can be written on any file system, in UTF-8."""
    parts = [_shortened(printable(part).replace("?", "_")) for part in path.parts]
    parts = [part for part in parts if part not in ("..", "/")]
    while len(parts) > 1 and len("/".join(parts).encode()) > MAX_PATH:
        del parts[-2]  # the name of the file stays
    return str(PurePosixPath(*parts))


def _shortened(name: str) -> str:
    """A name of at most `MAX_NAME` bytes, with the same ending."""
    if len(name.encode()) <= MAX_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    tail = (dot + ending).encode()[:20] if stem else b""
    return name.encode()[: MAX_NAME - len(tail)].decode("utf-8", "ignore") + tail.decode("utf-8", "ignore")
