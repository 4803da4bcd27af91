"""What decides a puzzle stands in nothing that a learner gets, but on the page of model answers.

These are the cheapest host of a design under a budget, the laws of black boxes, and the keys of own cases.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from starvelab.lesson.course.decisions import Design, inside
from starvelab.lesson.course.practice import own_case
from tests.assignments import REPOSITORY
from tests.notebooks.exercises import exercises

# What people get: the notebooks, what each wheel carries, and the pages of the site.
FOLDERS = ("labs", "starvelab", "doctor/starvelab_doctor", "grader/starvelab_grader", "docs", "lite")
MODEL_ANSWERS = REPOSITORY / "docs" / "model-answers.md"
BUILT = {"_build", "__pycache__", ".ipynb_checkpoints"}


def cheapest_host() -> Iterator[str]:
    """Yield patterns of the optimum of exercise 2.1 of the third assignment: its price, and the host."""
    exercise = next(one for one in exercises("master-the-loader") if one.answer_id == "my-design")
    names: dict = {}
    exec(f"{exercise.setup}\n{exercise.solution}", names)
    host = names["my_design"]()
    yield rf"(?<![\d.]){Design(*host.values()).dollars:.2f}(?!\d)"
    yield r"\D{{1,9}}{gpus}\W+cores\W+{cores}\W+drives\W+{drives}\b".format(**host)


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


def public_files() -> list[Path]:
    """Return every file of text that a learner gets."""
    found = (path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*") if path.is_file())
    binary = {".png", ".svg", ".gif", ".whl", ".woff2", ".pyc", ".ico"}
    return [
        path
        for path in found
        if path.suffix not in binary and path != MODEL_ANSWERS and not BUILT.intersection(path.parts)
    ]


def leaks(patterns: list[str], paths: list[Path]) -> list[str]:
    """Return the files that hold one of these patterns, with what they hold."""
    secret = re.compile("|".join(patterns))
    texts = ((path, path.read_text(encoding="utf-8", errors="replace")) for path in paths)
    return [f"{path.name}: {match[0]}" for path, text in texts if (match := secret.search(text))]


PLANTED = {
    "the cheapest host": "The cheapest host trains for {price} USD.",
    "the laws of the black boxes": "26 MB go over a link of 1 GB/s one\nbatch after the other",
    "the keys of own cases": "GPU: serialized copy 73 + model 92 = 165 of 717 ms: each batch waits for both.",
}


@pytest.mark.parametrize("secret", SECRETS)
def test_an_answer_of_a_puzzle_is_found_where_it_is_planted_and_in_nothing_that_a_learner_gets(
    secret, tmp_path
):
    patterns, page = list(SECRETS[secret]()), tmp_path / "page.md"
    price = re.search(r"\d+\.\d\d", patterns[0])
    page.write_text(PLANTED[secret].format(price=price and price[0]))
    paths = public_files()
    assert len({path.relative_to(REPOSITORY).parts[0] for path in paths}) == len(FOLDERS)
    assert [leak.partition(":")[0] for leak in leaks(patterns, [*paths, page])] == ["page.md"]
