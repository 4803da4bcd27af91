"""The file ``predictions.json``: it is beside a notebook, travels with a submission, and is read here."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args, get_type_hints

FILE_NAME = "predictions.json"
MAX_BYTES = 1_000_000
MAX_FAULTS, MAX_KEY = 10, 80  # that a message names, and of characters


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One locked prediction, and the truth once it has been revealed; numbers are in `unit`."""

    key: str  # its name in the notebook, such as "cpu-wall"
    answer: str | float  # the choice, or the number
    locked_at: str  # times are ISO 8601 in UTC
    unit: str | None = None
    confidence: float | None = None  # how sure the learner was, 0 to 1
    choices: tuple[str, ...] | None = None  # what could be chosen
    question: str | None = None
    truth: str | float | None = None  # the answer as revealed
    hit: bool | None = None  # the prediction came true
    revealed_at: str | None = None
    measured: float | None = None  # where the prediction met this and not `truth`, which a model says
    unchanged: float | None = None  # of a number that says what a change brings, the value of "nothing"

    def __post_init__(self) -> None:
        # A file can hold anything. The types of the fields are checked here, once, for every reader.
        wrong = [name for name, allowed in _ALLOWED.items() if not _is_one_of(getattr(self, name), allowed)]
        if wrong:
            raise ValueError(f"{', '.join(wrong)} is not what a prediction holds")
        if self.choices is not None:
            object.__setattr__(self, "choices", tuple(str(choice) for choice in self.choices))
            if not all(map(_is_text, self.choices)):
                raise ValueError("choices is not what a prediction holds")

    @property
    def revealed(self) -> bool:
        """True if the truth has been shown."""
        return self.revealed_at is not None

    def to_json(self) -> dict[str, object]:
        """The prediction as JSON can hold it."""
        return asdict(self) | {"choices": None if self.choices is None else list(self.choices)}

    @classmethod
    def from_json(cls, key: str, data: object) -> Prediction:
        """Read one prediction; a ValueError says what is wrong with it."""
        if not isinstance(data, dict):
            raise ValueError("it is no table of fields")
        missing = {"answer", "locked_at"} - data.keys()
        if missing:
            raise ValueError(f"{', '.join(sorted(missing))} is missing")
        return cls(**{name: value for name, value in data.items() if name in _ALLOWED} | {"key": key})


# The types that JSON has for each field, from those that the fields name.
_JSON_TYPES: dict[object, tuple[type, ...]] = {float: (int, float), tuple[str, ...]: (tuple, list)}
_ALLOWED = {
    name: tuple(kind for one in get_args(hint) or (hint,) for kind in _JSON_TYPES.get(one, (one,)))
    for name, hint in get_type_hints(Prediction).items()
}


def _is_one_of(value: object, allowed: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in allowed  # Python counts True as an int; a prediction does not
    if isinstance(value, str):
        return str in allowed and _is_text(value)
    return isinstance(value, allowed) and (not isinstance(value, int | float) or _is_finite(value))


def _is_text(value: str) -> bool:
    """True if a text can be written; JSON also holds halves of characters (surrogates)."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _is_finite(number: float) -> bool:
    """True if a number can be shown and compared; JSON also holds whole numbers that no float can hold."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


@dataclass(frozen=True)
class Contents:
    """The predictions that could be read, and in words what could not."""

    predictions: dict[str, Prediction]
    problem: str | None = None


def read_file(folder: Path) -> Contents:
    """The predictions in the file of a folder. This changes nothing, and never raises."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Contents({})
    except OSError as error:
        return Contents({}, f"{FILE_NAME} must be readable, and it is not ({error.strerror or error}).")
    return parse(content)


def parse(content: bytes) -> Contents:
    """The predictions in a file with this content; only those that are whole."""
    problem, predictions, faults = "", {}, []
    if len(content) > MAX_BYTES:
        return Contents({}, f"{FILE_NAME} may have {MAX_BYTES / 1e6:g} MB, and it has more.")
    try:
        # Editors of Windows save UTF-16, or a mark (BOM) before UTF-8.
        data = json.loads(content.decode(json.detect_encoding(content)).removeprefix("\ufeff"))
        if not isinstance(data, dict):
            problem = f"hold one table of predictions, and it holds a {type(data).__name__}"
    except UnicodeDecodeError:
        problem = "be text in UTF-8 or UTF-16, and it is not"
    except (ValueError, RecursionError) as error:
        problem = f"be JSON, and it is not ({error})"
    if problem:
        return Contents({}, f"{FILE_NAME} must {problem}.")
    for key, entry in data.items():
        try:
            predictions[key] = Prediction.from_json(key, entry)
        except ValueError as error:
            name = repr(key)
            faults.append(f"{name if len(name) < MAX_KEY else name[: MAX_KEY - 1] + '…'}: {error}")
    if not faults:
        return Contents(predictions)
    named = "; ".join(faults[:MAX_FAULTS])
    more = f"; and {len(faults) - MAX_FAULTS} more" if faults[MAX_FAULTS:] else ""
    return Contents(predictions, f"{FILE_NAME} must hold whole predictions, and not all are ({named}{more}).")
