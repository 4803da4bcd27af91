"""Every number in the notebooks' prose is computed from the package, cited, or set by the exercise itself.

An author accounts for each number of a notebook in `numbers` of its file of TOML, or of shared.toml where all
notebooks of the assignment may say it (tests/notebooks/ledger.py):

phrase
    A few words of the prose as they are written (without emphasis and code), with the numbers they hold. It
    counts wherever it stands.

and one of

expr
    What gives these numbers, evaluated with the package, and the ``imports`` and ``names`` of the file; a
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
from typing import Any

import pytest

from tests.assignments import NOTEBOOKS, Notebook
from tests.notebooks.ledger import accounts, accounts_of, names, path_of, places, prose

WAYS = {"expr", "holds", "cited", "given"}

COUNTED = ("six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen")
WORDS = {word: str(n) for n, word in enumerate(COUNTED, start=6)}
# Digits in a name (A100, ResNet-50) belong to the name.
NUMBER = re.compile(rf"(?<![\w.-])\d+(?:,\d{{3}})*(?:\.\d+)?(?!\w)|\b(?i:{'|'.join(WORDS)})\b")


def numbers(text: str) -> list[str]:
    """The numbers of a text as digits: "Eight of 2,470" has 8 and 2470."""
    return [WORDS.get(word.lower(), word.replace(",", "")) for word in NUMBER.findall(text)]


def positions(phrase: str, text: str) -> list[range]:
    """Where a phrase stands in a text with its numbers whole: "5 ms" does not stand in "15 ms"."""
    found = (range(m.start(), m.end()) for m in re.finditer(re.escape(phrase), text))
    edges = {edge for m in NUMBER.finditer(text) for edge in range(m.start() + 1, m.end())}
    return [place for place in found if place.start not in edges and place.stop not in edges]


def each_place(way: str = "phrase") -> pytest.MarkDecorator:
    """Run a test on all accounts of a notebook that say in this way where their numbers come from."""
    chosen: dict[Notebook, list[dict[str, Any]]] = {}
    for where, account in accounts("numbers"):
        if way in account:
            chosen.setdefault(where, []).append(account)
    return pytest.mark.parametrize(("where", "accounts"), chosen.items(), ids=map(str, chosen))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_number_is_accounted_for(notebook):
    text = prose(notebook)
    settled = {
        position
        for account in accounts_of("numbers", notebook)
        for place in positions(account["phrase"], text)
        for position in place
    }
    open_ones = [
        f"{m.group()!r} in '... {text[max(0, m.start() - 40) : m.end() + 40]} ...'"
        for m in NUMBER.finditer(text)
        if m.start() not in settled
    ]
    where = path_of(notebook)
    assert not open_ones, f"say in {where} where these come from:\n" + "\n".join(open_ones)


@each_place()
def test_each_account_is_of_a_phrase_that_is_written_and_says_in_one_way_where_its_numbers_come_from(
    where, accounts
):
    for account in accounts:
        phrase = account["phrase"]
        assert any(positions(phrase, text) for text in map(prose, places(where))), phrase
        assert len(WAYS & set(account)) == 1, f"{phrase}: one of {', '.join(sorted(WAYS))}"
        assert set(account) <= WAYS | {"phrase", "format"}, phrase
        assert "holds" in account or numbers(phrase), phrase


@each_place("expr")
def test_a_number_that_is_computed_is_what_the_package_gives(where, accounts):
    def computed(account):
        value = eval(account["expr"], names(where))
        values = value if isinstance(value, list | tuple) else [value]
        return [format(one, account.get("format", "g")) for one in values]

    written = [(account["phrase"], numbers(account["phrase"])) for account in accounts]
    assert written == [(account["phrase"], computed(account)) for account in accounts]


@each_place("holds")
def test_what_is_said_in_words_holds(where, accounts):
    for account in accounts:
        assert eval(account["holds"], names(where)) is True, account["phrase"]


@each_place("cited")
def test_a_number_from_outside_is_cited_beside_it(where, accounts):
    for account in accounts:
        sides = [
            text[max(0, place.start - 400) : place.stop + 200]
            for text in map(prose, places(where))
            for place in positions(account["phrase"], text)
        ]
        assert all(account["cited"] in side for side in sides), account["phrase"]
