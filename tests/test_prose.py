"""Every number in the notebooks' prose is computed from the package, cited, or set by the exercise itself.

An author accounts for each number of a notebook in golden/prose/ASSIGNMENT.toml, under the name of the
notebook, or under "any" where all notebooks of the assignment may say it:

phrase
    A few words of the prose as they are written (without emphasis and code), with the numbers they hold. It
    counts wherever it stands.

and one of

expr
    What gives these numbers, evaluated with the package, the ``imports`` and the ``names`` of the file; a
    list for several. ``format`` says how they are written (Python's format language; "g" unless given).
    "2,470" counts as 2470 and "Eight" as 8.
holds
    What must be true for the sentence to be right, where a number is rounded or put into words.
cited
    The source, as the text names it beside the number.
given
    No fact: a figure that the story or the exercise sets, and which.
"""

import re
from functools import cache
from typing import Any

import pytest

from tests.assignments import NOTEBOOKS, Notebook
from tests.prose import NO_PROSE, accounts, accounts_of, names, path_of, prose, texts

FOLDER = "golden/prose"
WAYS = {"expr", "holds", "cited", "given"}

COUNTED = ("six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen")
WORDS = {word: str(n) for n, word in enumerate(COUNTED, start=6)}
# Digits in a name (A100, ResNet-50) belong to the name.
NUMBER = re.compile(rf"(?<![\w.-])\d+(?:,\d{{3}})*(?:\.\d+)?(?!\w)|\b(?i:{'|'.join(WORDS)})\b")


def numbers(text: str) -> list[str]:
    """The numbers of a text as digits: "Eight of 2,470" has 8 and 2470."""
    return [WORDS.get(word.lower(), word.replace(",", "")) for word in NUMBER.findall(text)]


def places(phrase: str, text: str) -> list[range]:
    """Where a phrase stands in a text with its numbers whole: "5 ms" does not stand in "15 ms"."""
    found = (range(m.start(), m.end()) for m in re.finditer(re.escape(phrase), text))
    edges = {edge for m in NUMBER.finditer(text) for edge in range(m.start() + 1, m.end())}
    return [place for place in found if place.start not in edges and place.stop not in edges]


@cache
def known_names(assignment: str) -> dict[str, Any]:
    """What an expression may use."""
    return names(FOLDER, assignment)


def each_place(way: str = "phrase") -> pytest.MarkDecorator:
    """Run a test on all accounts of a notebook that say in this way where their numbers come from."""
    chosen: dict[Notebook, list[dict[str, Any]]] = {}
    for where, account in accounts(FOLDER):
        if way in account:
            chosen.setdefault(where, []).append(account)
    return pytest.mark.parametrize(("where", "accounts"), chosen.items(), ids=map(str, chosen))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_number_is_accounted_for(notebook):
    text = prose(notebook)
    settled = {
        position
        for account in accounts_of(FOLDER, notebook)
        for place in places(account["phrase"], text)
        for position in place
    }
    open_ones = [
        f"{m.group()!r} in '... {text[max(0, m.start() - 40) : m.end() + 40]} ...'"
        for m in NUMBER.finditer(text)
        if m.start() not in settled
    ]
    where = path_of(FOLDER, notebook.assignment)
    assert not open_ones, f"say in {where} where these come from:\n" + "\n".join(open_ones)


@each_place()
def test_each_account_is_of_a_phrase_that_is_written_and_says_in_one_way_where_its_numbers_come_from(
    where, accounts
):
    for account in accounts:
        phrase = account["phrase"]
        assert any(places(phrase, text) for text in texts(where)), phrase
        assert len(WAYS & set(account)) == 1, f"{phrase}: one of {', '.join(sorted(WAYS))}"
        assert set(account) <= WAYS | {"phrase", "format"}, phrase
        assert "holds" in account or numbers(phrase), phrase


@each_place("expr")
def test_a_number_that_is_computed_is_what_the_package_gives(where, accounts):
    def computed(account):
        value = eval(account["expr"], known_names(where.assignment))
        values = value if isinstance(value, list | tuple) else [value]
        return [format(one, account.get("format", "g")) for one in values]

    written = [(account["phrase"], numbers(account["phrase"])) for account in accounts]
    assert written == [(account["phrase"], computed(account)) for account in accounts]


@each_place("holds")
def test_what_is_said_in_words_holds(where, accounts):
    for account in accounts:
        assert eval(account["holds"], known_names(where.assignment)) is True, account["phrase"]


@each_place("cited")
def test_a_number_from_outside_is_cited_beside_it(where, accounts):
    for account in accounts:
        sides = [
            text[max(0, place.start - 400) : place.stop + 200]
            for text in texts(where)
            for place in places(account["phrase"], text)
        ]
        assert all(account["cited"] in side for side in sides), account["phrase"]


# --- the reading itself ----------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "found"), [
    ("Eight workers feed 2,470 img/s at 18.3 %, in 0.25 ms; half of", ["8", "2470", "18.3", "0.25"]),
    ("a batch of 256, then 224 x 224.", ["256", "224", "224"]),
    ("An A100 runs ResNet-50 and a 3D U-Net on KiTS19 as uint8.", []),
    ("1. Of `b` 64 [a](5.html) 7\n## Case 1: 80 of $x$ 90", ["64", "7", "80", "90"]),
    # Code, formulas, links and numbering are no prose.
    ("`step(64)` $b = 64$ [text](64.html) <img width='64'> [Notebook 4](04.ipynb)", []),
    ("```\n64\n```\n$$\nb = 64\n$$\n## 3. The wall\n1. First\n## Case 1: medical", []),
    ("### Exercise 3.1: the wall (1.5 points)\n(6 points, read by a person)\n- 2 points: says so", []),
    ("<summary>Hint 1</summary>", []),
])  # fmt: skip
def test_numbers_of_prose_are_found_in_digits_and_in_words_and_none_of_names_or_code(text, found):
    assert numbers(NO_PROSE.sub(" ", text)) == found


def test_a_phrase_is_found_with_its_numbers_whole():
    assert places("5 ms", "15 ms") == []
    assert places("5 ms", "5 ms and 0.5 ms") == [range(4)]
    assert places("a batch of 25", "a batch of 256") == []
