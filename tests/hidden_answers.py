"""What decides a puzzle, as patterns: the cheapest host, the laws of black boxes, keys of own cases."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from starvelab.lesson.course.decisions import Design, inside
from starvelab.lesson.course.practice import own_case
from tests.notebooks.exercises import exercises

BINARY = {".png", ".svg", ".gif", ".webp", ".woff2", ".pyc", ".ico", ".wasm", ".gz", ".zip", ".whl"}
# The page of model answers may say all, and so may what the site makes of it.
MODEL_ANSWERS = "model-answers"


def cheapest_host() -> Iterator[str]:
    """Yield patterns of the optimum of exercise 2.1 of the third assignment: its price, and the host."""
    exercise = next(one for one in exercises("master-the-loader") if one.answer_id == "my-design")
    names: dict = {}
    exec(f"{exercise.setup}\n{exercise.solution}", names)
    host = names["my_design"]()
    yield rf"(?<![\d.]){re.escape(f'{Design(*host.values()).dollars:.2f}')}(?!\d)"
    yield r"(?<!\d){gpus}\W+cores\W+{cores}\W+drives\W+{drives}\b".format(**host)


def laws_of_the_boxes() -> Iterator[str]:
    """Yield patterns of what binds in each black box and why, in any place where a line may break."""
    for box in "ABC":
        binds, law = inside(box)
        parts = (part.split() for part in re.split(r"since|[,;.]\s", law))
        yield from (r"\s+".join(map(re.escape, words)) for words in parts if len(words) > 6)
        yield rf'"{box}":\W+"{binds}"'


def keys_of_own_cases() -> Iterator[str]:
    """Yield patterns of the sentences that say why the script of a number starves."""
    for number in range(1, 25):
        case = own_case(number)
        case.guess(*case.best)
        yield from (re.escape(reason.partition(" ms")[0]) for reason in case.key().reasons)


SECRETS = {
    "the cheapest host": cheapest_host,
    "the laws of the black boxes": laws_of_the_boxes,
    "the keys of own cases": keys_of_own_cases,
}


@cache
def _patterns() -> list[re.Pattern[str]]:
    # One by one they are found five times as fast as in one expression.
    return [re.compile(pattern) for secret in SECRETS.values() for pattern in dict.fromkeys(secret())]


def _texts(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the texts of a file by their names: of a wheel of ours those that it carries."""
    if path.suffix == ".whl" and path.name.startswith("starvelab"):
        with zipfile.ZipFile(path) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist())
    else:
        yield path.as_posix(), path.read_bytes()


def leaks(paths: Iterable[Path]) -> list[str]:
    """Return the texts in which the answer of a puzzle stands, with what they say."""
    texts = (text for path in paths if MODEL_ANSWERS not in path.name for text in _texts(path))
    read = (
        (Path(name), text.decode(errors="replace")) for name, text in texts if Path(name).suffix not in BINARY
    )
    return [
        f"{path.name}: {match[0]}"
        for path, text in read
        if (match := next(filter(None, (pattern.search(text) for pattern in _patterns())), None))
    ]
