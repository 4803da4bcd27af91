"""Predictions, kept in ``predictions.json`` beside the notebook: each key locked once, nothing lost.

It does not know widgets, or how a prediction is asked for and judged; it reads, merges and writes records.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE_NAME = "predictions.json"

# The file is locked for milliseconds. A lock this old was left behind by a kernel that died while writing.
STALE_SECONDS = 5.0
PATIENCE_SECONDS = 8.0


@dataclass(frozen=True, kw_only=True)
class Record:
    """One locked prediction, and the truth once it has been revealed.

    Attributes
    ----------
    key : str
        Name of the prediction in the notebook, such as "cpu-wall".
    answer : str or float
        The choice, or the number in `unit`.
    unit : str or None
        Unit of a number.
    confidence : float or None
        How sure the learner was, 0 to 1.
    choices : tuple of str or None
        What could be chosen.
    question : str or None
        What was asked.
    locked_at, revealed_at : str
        Times as ISO 8601 in UTC.
    truth : str, float or None
        The answer as revealed, in `unit`.
    hit : bool or None
        Whether the prediction came true; None until it is revealed.
    """

    key: str
    answer: str | float
    locked_at: str
    unit: str | None = None
    confidence: float | None = None
    choices: tuple[str, ...] | None = None
    question: str | None = None
    truth: str | float | None = None
    hit: bool | None = None
    revealed_at: str | None = None

    def __post_init__(self) -> None:
        # A file can hold anything. What a record promises is checked here, once, for every reader.
        wrong = [name for name, allowed in _ALLOWED.items() if not _is_one_of(getattr(self, name), allowed)]
        if wrong:
            raise ValueError(f"{', '.join(wrong)} is not what a prediction holds")
        if self.choices is not None:
            object.__setattr__(self, "choices", tuple(str(choice) for choice in self.choices))

    @property
    def revealed(self) -> bool:
        """Whether the truth has been shown."""
        return self.revealed_at is not None

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        data = asdict(self)
        data["choices"] = None if self.choices is None else list(self.choices)
        return data

    @classmethod
    def from_json(cls, key: str, data: Any) -> Record:
        """Read one record back; a ValueError says what is wrong with it."""
        if not isinstance(data, dict):
            raise ValueError("it is no table of fields")
        known = {field.name for field in fields(cls)}
        missing = {"answer", "locked_at"} - data.keys()
        if missing:
            raise ValueError(f"{', '.join(sorted(missing))} is missing")
        return cls(**{name: value for name, value in data.items() if name in known} | {"key": key})


_TEXT, _NUMBER, _NOTHING = (str,), (int, float), (type(None),)

_ALLOWED: dict[str, tuple[type, ...]] = {
    "key": _TEXT,
    "answer": _TEXT + _NUMBER,
    "locked_at": _TEXT,
    "unit": _TEXT + _NOTHING,
    "confidence": _NUMBER + _NOTHING,
    "choices": (tuple, list, *_NOTHING),
    "question": _TEXT + _NOTHING,
    "truth": _TEXT + _NUMBER + _NOTHING,
    "hit": (bool, *_NOTHING),
    "revealed_at": _TEXT + _NOTHING,
}


def _is_one_of(value: Any, allowed: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in allowed  # Python counts True as an int; a prediction does not
    return isinstance(value, allowed) and not (isinstance(value, float) and not math.isfinite(value))


@dataclass(frozen=True)
class Contents:
    """What could be read, and in words what could not."""

    records: dict[str, Record]
    problem: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The record that now counts, whether this call made it, and in words what went wrong with the file."""

    record: Record
    is_new: bool
    problem: str | None = None


# Predictions that could not be written (read-only folder, full disk). They count as long as the kernel lives.
_unsaved: dict[Path, dict[str, Record]] = {}

_waiting: dict[tuple[Path, str], list[Callable[[], None]]] = {}


def now() -> str:
    """The time as it stands in a record: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class PredictionStore:
    """The predictions of one folder.

    Parameters
    ----------
    folder : path or None
        Where ``predictions.json`` stands; None for the folder the notebook runs in.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = Path.cwd() if folder is None else Path(folder).absolute()
        self.path = self.folder / FILE_NAME

    def read(self) -> Contents:
        """Every prediction that can be read. Reading changes nothing on disk and never raises."""
        contents = self._load()
        problem = contents.problem
        if problem is not None:
            problem += " It is left as it is. The next prediction you lock sets it aside under another name."
        return Contents(_unsaved.get(self.path, {}) | contents.records, problem)

    def get(self, key: str) -> Record | None:
        """The prediction locked under `key`, or None."""
        return self.read().records.get(key)

    def lock(self, record: Record) -> Outcome:
        """Keep `record`, unless its key is locked already: then the record that was first."""

        def add(records: dict[str, Record]) -> Record:
            return records.setdefault(record.key, record)

        kept, problem = self._update(add)
        for callback in _waiting.pop((self.path, record.key), []):
            callback()
        return Outcome(kept, kept is record, problem)

    def reveal(self, key: str, *, truth: str | float, hit: bool) -> Outcome:
        """Write truth and hit beside the prediction `key`, once: the first reveal stays.

        Raises
        ------
        KeyError
            If nothing is locked under `key`.
        """
        stamp = now()
        made: list[Record] = []

        def add(records: dict[str, Record]) -> Record:
            if not records[key].revealed:
                records[key] = replace(records[key], truth=truth, hit=hit, revealed_at=stamp)
                made.append(records[key])
            return records[key]

        kept, problem = self._update(add)
        return Outcome(kept, bool(made), problem)

    def when_locked(self, key: str, callback: Callable[[], None]) -> None:
        """Call `callback` once, when this kernel locks a prediction under `key`."""
        _waiting.setdefault((self.path, key), []).append(callback)

    def _update(self, change: Callable[[dict[str, Record]], Record]) -> tuple[Record, str | None]:
        """Apply `change` to the newest records on disk; keep it in memory if it cannot be written."""
        try:
            return self._update_file(change)
        except OSError as error:
            records = self.read().records
            kept = change(records)
            _unsaved.setdefault(self.path, {})[kept.key] = kept
            reason = error.strerror or str(error)
            return kept, (
                f"A prediction is kept in {self.path}, and that could not be written ({reason}). "
                "It counts until the kernel stops. Make the folder writable, then run this cell again."
            )

    def _update_file(self, change: Callable[[dict[str, Record]], Record]) -> tuple[Record, str | None]:
        # The lock file doubles as the new version: writing it, then renaming it onto the old one, publishes
        # the change and frees the lock in one step. A reader sees the old file or the new, never a half.
        lock = self._acquire()
        try:
            with lock.open("w", encoding="utf-8") as file:
                contents = self._load()
                before = _unsaved.get(self.path, {}) | contents.records
                after = dict(before)
                kept = change(after)
                json.dump(
                    {key: record.to_json() for key, record in after.items()},
                    file,
                    indent=2,
                    ensure_ascii=False,
                )
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            if after == contents.records and contents.problem is None:
                lock.unlink()
                return kept, None
            problem = None
            if contents.problem is not None:
                problem = (
                    f"{contents.problem} It was moved to {self._set_aside().name}; nothing in it was changed."
                )
            os.replace(lock, self.path)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise
        _unsaved.pop(self.path, None)
        return kept, problem

    def _acquire(self) -> Path:
        lock = self.path.with_name(FILE_NAME + ".lock")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                return lock
            except FileExistsError:
                if _age(lock) > STALE_SECONDS:
                    lock.unlink(missing_ok=True)
                elif time.monotonic() > deadline:
                    raise TimeoutError(f"{lock.name} is held by another notebook") from None
                else:
                    time.sleep(0.02)

    def _load(self) -> Contents:
        try:
            text = self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return Contents({})
        except OSError as error:
            return Contents({}, f"{FILE_NAME} must be readable, and it is not ({error.strerror or error}).")
        except UnicodeDecodeError:
            return Contents({}, f"{FILE_NAME} must be text in UTF-8, and it is not.")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            return Contents({}, f"{FILE_NAME} must be JSON, and it is not ({error}).")
        if not isinstance(data, dict):
            return Contents(
                {}, f"{FILE_NAME} must hold one table of predictions, and it holds a {type(data).__name__}."
            )
        records, faults = {}, []
        for key, entry in data.items():
            try:
                records[key] = Record.from_json(key, entry)
            except ValueError as error:
                faults.append(f"{key!r}: {error}")
        problem = (
            f"{FILE_NAME} must hold whole predictions, and not all are ({'; '.join(faults)})."
            if faults
            else None
        )
        return Contents(records, problem)

    def _set_aside(self) -> Path:
        number = 1
        while (aside := self.path.with_name(f"{FILE_NAME}.bad-{number}")).exists():
            number += 1
        os.replace(self.path, aside)
        return aside


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def predictions(folder: str | os.PathLike[str] | None = None) -> dict[str, dict[str, Any]]:
    """Every prediction locked in `folder`, as plain data under its key.

    What cannot be read is left out; `scorecard` says what that was.

    Parameters
    ----------
    folder : path or None
        Where ``predictions.json`` stands; None for the folder the notebook runs in.

    Returns
    -------
    dict of dict
        For each key: answer, unit, confidence, choices, question, locked_at, truth, hit, revealed_at.
    """
    return {key: record.to_json() for key, record in PredictionStore(folder).read().records.items()}
