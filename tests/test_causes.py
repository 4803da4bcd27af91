"""Every sentence of the notebooks that explains has an experiment that varies its cause.

An author accounts for each of them in `causes` of its file of TOML, or of shared.toml where all
notebooks of the assignment may say it (tests/notebooks/ledger.py):

says
    A few words of the sentence as they are written, without emphasis and code.

and one of

varies, stays
    Two expressions that are True: with another cause the effect is another one, and with a change of
    something else it is not. They know the package, the ``imports`` and ``names`` of the file, and trials.py.
    Both run the lab: what numbers alone give is arithmetic, and no experiment.
    What is said without its conditions is tried over a range, and over seeds where chance has a part; where
    explorers have a switch, with each set of numbers, unless ``only`` says why with round ones.
shown
    What could only be measured: an expression on ``measured``, which `python -m benchmarks.causes` wrote.
cited
    What cannot be tried here: a heading of docs/sources.md, where the source stands with what it says.
no_cause
    Why the sentence explains nothing: one word of KINDS, and what is meant.

A sentence may be listed that none of the words below marks; it is tried like the others.
"""

import ast
import re
from functools import cache
from itertools import product

import jupytext
import pytest

from starvelab.lesson.widgets._explore import ROUND, SWITCH
from tests.assignments import NOTEBOOKS, REPOSITORY, Notebook
from tests.notebooks.ledger import NO_PROSE, accounts, accounts_of, names, path_of, places, prose

EXPLAINS = re.compile(
    r"\b(because|since|so that|lets|needs|follows|therefore|hence|due to|thanks to|the reason"
    r"|that is why|is the cause|comes from|depends on)\b"
    r"|, so (?!that)|^So\b(?!-)",
    re.IGNORECASE,
)
WAYS = ({"varies", "stays"}, {"varies", "stays", "only"}, {"shown"}, {"cited"}, {"no_cause"})
KINDS = {
    "figure": "how much of something a case has or needs",
    "task": "what a learner is to do or to answer",
    "aim": "why the lab does something so",
    "definition": "what a word, a sign or a unit means",
    "arithmetic": "what two numbers beside it give, which the numbers' own test computes",
    "story": "what somebody did or wrote",
    "rule": "what the model assumes, and says that it assumes",
}


def sentences(text: str) -> list[str]:
    """The sentences of a text; what stands behind a colon is one of its own."""
    return re.split(r"(?<=[.!?:])\s+", text)


@cache
def said_in_code(notebook: Notebook) -> list[str]:
    """Sentences that a notebook's code prints, draws or answers with."""
    strings = [
        node.value
        for cell in jupytext.read(notebook.script, fmt="py:percent").cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 3
    ]
    return [sentence for text in strings for sentence in sentences(" ".join(NO_PROSE.sub(" ", text).split()))]


@cache
def all_sentences(notebook: Notebook) -> list[str]:
    """Every sentence of a notebook."""
    return [*sentences(prose(notebook)), *said_in_code(notebook)]


def holds(expression: str, notebook: Notebook, numbers: str = ROUND) -> bool:
    """Evaluate an expression of a ledger with a set of numbers."""
    value = eval(expression, names(notebook, numbers))
    assert isinstance(value, bool), f"{expression} is {value!r}, and neither True nor False"
    return value


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_sentence_that_explains_is_listed(notebook):
    listed = [account["says"] for account in accounts_of("causes", notebook)]
    missing = [
        sentence
        for sentence in all_sentences(notebook)
        if EXPLAINS.search(sentence) and not any(phrase in sentence for phrase in listed)
    ]
    where = path_of(notebook)
    assert not missing, f"say in {where} how these were tried:\n" + "\n".join(missing)


def test_each_account_is_of_a_sentence_that_is_written_and_is_settled_in_one_way():
    for where, account in accounts("causes"):
        found = any(
            account["says"] in sentence for place in places(where) for sentence in all_sentences(place)
        )
        assert found, f"{where}: nobody says {account['says']!r}"
        assert set(account) - {"says"} in WAYS, f"{where}: {account['says']!r} is settled by {set(account)}"
        kind, _, what = account.get("no_cause", "task: none").partition(": ")
        assert kind in KINDS, f"{where}: {account['says']!r} is one of {', '.join(KINDS)}"
        assert what, f"{where}: say of {account['says']!r} what is meant"


# Each of its explorers has the switch, which a test of its notebooks says.
SWITCHED = "starving-the-gpu"


EXPERIMENTS = [
    pytest.param(where, account, numbers, id=f"{where}: {account['says']}, {numbers}")
    for where, account in accounts("causes")
    for numbers in SWITCH
    if "varies" in account and (numbers == ROUND or (where.assignment == SWITCHED and "only" not in account))
]


@pytest.mark.parametrize(("where", "account", "numbers"), EXPERIMENTS)
def test_the_effect_goes_with_its_cause_and_with_nothing_else(where, account, numbers):
    assert holds(account["varies"], where, numbers), "the effect does not follow its cause"
    assert holds(account["stays"], where, numbers), "the effect follows something else"


@pytest.mark.needs("starvelab_doctor")  # among all experiments are those of the doctor's notebook
def test_an_experiment_of_an_assignment_runs_the_lab():
    tried = [(names(where), each) for where, each in accounts("causes") if "varies" in each]
    for (known, account), way in product(tried, ("varies", "stays")):
        used = {node.id for node in ast.walk(ast.parse(account[way])) if isinstance(node, ast.Name)}
        runs = {
            name for name in used & set(known) - {"same", "Q_"} if not isinstance(known[name], int | float)
        }
        assert runs, f"{way} only computes: {account[way]}. Run a pipeline or a loader, or say no_cause."


def test_what_was_measured_shows_the_effect():
    for where, account in accounts("causes"):
        assert holds(account.get("shown", "True"), where), f"{where}: {account['says']}"


def test_what_cannot_be_tried_here_has_a_source_that_says_who_says_what():
    sources = (REPOSITORY / "docs/sources.md").read_text(encoding="utf-8").split("\n## ")[1:]
    texts = {heading: text for heading, _, text in (part.partition("\n") for part in sources)}
    assert {account["cited"] for _, account in accounts("causes") if "cited" in account} == texts.keys()
    for heading, text in texts.items():
        assert re.search(r"\]\(https://| et al\., ", text), f"{heading!r} names no source"
