"""Predictions, kept in ``predictions.json`` beside the notebook: each key is locked once, nothing is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from ...host import has_processes, whole_file
from ...prediction_file import FILE_NAME, Contents, Prediction, read_file
from ..wording import title
from .question import Question

LOCK_TIMEOUT = 8.0  # seconds; the file is locked for milliseconds


@dataclass
class Memory:
    """The memory of one kernel, until it stops: questions, and what is not in the file of predictions."""

    # By key: the text of each question that was asked, to say which is open, and what may be answered.
    questions: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Question] = field(default_factory=dict)
    # By file: predictions that could not be written (read-only folder, full disk). They count, too.
    unsaved: dict[Path, dict[str, Prediction]] = field(default_factory=dict)
    # By file and key: what to call when that prediction is locked, each in its place.
    waiting: dict[tuple[Path, str], dict[Hashable, Callable[[], None]]] = field(default_factory=dict)
    # By the id of an answer that is final: the points that hidden checks gave, and the most that they give.
    finished: dict[str, tuple[float, float]] = field(default_factory=dict)

    def which(self, key: str) -> str:
        """The question asked under `key`, in a sentence: nobody sees keys. Empty if it was not asked."""
        text = title(self.questions.get(key, ""))
        return f'The question is: "{text}"' if text else ""


# Of the notebook that runs in this process.
KERNEL = Memory()


@dataclass(frozen=True)
class StoreResult:
    """The prediction that now counts, whether this call changed it, and what went wrong with the file."""

    prediction: Prediction
    is_new: bool
    problem: str | None = None


def now() -> str:
    """The time as it stands in a prediction: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class PredictionStore:
    """The predictions of one folder, that in which the notebook runs unless given."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, memory: Memory = KERNEL) -> None:
        self.memory = memory
        self.folder = Path.cwd() if folder is None else Path(folder).absolute()
        self.path = self.folder / FILE_NAME

    def read(self) -> Contents:
        """Every prediction that can be read. Reading changes nothing on disk and never raises."""
        contents = read_file(self.folder)
        problem = contents.problem
        if problem is not None:
            problem += " It is left as it is. The next prediction you lock sets it aside under another name."
        return Contents(self.memory.unsaved.get(self.path, {}) | contents.predictions, problem)

    def get(self, key: str) -> Prediction | None:
        """The prediction locked under `key`, or None."""
        return self.read().predictions.get(key)

    def lock(self, prediction: Prediction) -> StoreResult:
        """Store a prediction, unless its key is locked already: then the first one stays."""
        return self._update(prediction.key, lambda known: known.get(prediction.key, prediction))

    def reveal(self, key: str, *, truth: str | float, hit: bool) -> StoreResult:
        """Write truth and hit beside the prediction `key`, once: the first reveal stays."""
        return self._update(
            key,
            lambda known: (
                known[key]
                if known[key].revealed
                else replace(known[key], truth=truth, hit=hit, revealed_at=now())
            ),
        )

    def credit(self, key: str, *, measured: float) -> StoreResult:
        """Count the prediction `key` as a hit, since it met what was `measured`."""
        return self._update(key, lambda known: replace(known[key], measured=measured, hit=True))

    def when_locked(self, key: str, callback: Callable[[], None], place: Hashable = None) -> None:
        """Call `callback` once `key` is locked in this kernel, instead of what waited in the same `place`."""
        waiting = self.memory.waiting.setdefault((self.path, key), {})
        waiting[object() if place is None else place] = callback
        # JupyterLab calls widgets in a thread of their own: the lock may have come in the meantime.
        if self.get(key) is not None:
            self.wake(key)

    def wake(self, key: str) -> None:
        """Call what waits for the prediction `key`, which is locked."""
        for callback in self.memory.waiting.pop((self.path, key), {}).values():
            callback()

    def _update(self, key: str, change: Callable[[Mapping[str, Prediction]], Prediction]) -> StoreResult:
        """Store what `change` makes of the newest predictions; keep it in memory if it cannot be written."""
        unsaved = self.memory.unsaved.setdefault(self.path, {})
        try:
            with self._exclusive_lock():
                contents = read_file(self.folder)
                before = unsaved | contents.predictions
                after = before | {key: change(before)}
                if after == contents.predictions and contents.problem is None:
                    return StoreResult(after[key], False)
                problem = self._write(after, contents.problem)
            # Another thread may have left a prediction there in the meantime.
            for written in after:
                unsaved.pop(written, None)
        except OSError as error:
            before = self.read().predictions
            after = before | {key: change(before)}
            unsaved[key] = after[key]
            problem = (
                f"A prediction is kept in {self.path}, and that could not be written "
                f"({error.strerror or error}). "
                "It counts until the kernel stops. Make the folder writable, then run this cell again."
            )
        return StoreResult(after[key], after != before, problem)

    def _write(self, predictions: Mapping[str, Prediction], damage: str | None) -> str | None:
        """Write the file whole; one that could not be read is set aside, which is said."""
        with whole_file(self.path) as part:
            with part.open("w", encoding="utf-8") as file:
                data = {key: prediction.to_json() for key, prediction in predictions.items()}
                json.dump(data, file, indent=2, ensure_ascii=False)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            if damage is None:
                return None
            names = (self.path.with_name(f"{FILE_NAME}.bad-{number}") for number in count(1))
            aside = next(path for path in names if not path.exists())
            os.replace(self.path, aside)
            return f"{damage} It was moved to {aside.name}; nothing in it was changed."

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        """Let no other notebook write the file in this block. A kernel that dies leaves no lock behind."""
        if not has_processes():  # a browser's Python has neither other kernels nor locks
            yield
            return
        from filelock import FileLock, Timeout

        self.folder.stat()  # which `FileLock` would make
        try:
            with FileLock(self.folder / f".{FILE_NAME}.lock", timeout=LOCK_TIMEOUT):
                yield
        except Timeout:
            raise TimeoutError(f"another notebook is writing {FILE_NAME}") from None
