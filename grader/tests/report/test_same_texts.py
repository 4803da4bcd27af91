"""Who wrote the same is found, and who only gave the right answer is not."""

from unicodedata import normalize

import pytest

from starvelab_grader.report import same_texts as module
from starvelab_grader.report.same_texts import MAX_WORDS, MIN_FILE_WORDS, SameText, same_texts, words_of

ESSAY = "Decoding binds: buying a faster GPU would only make it idle more, as the sweep shows."
OTHER = "The workers cannot decode that many pictures in time, so a faster GPU would only idle."
RIGHT = "def step_time(batch_size):\n    return overhead + batch_size * work / (peak * efficiency)\n"


@pytest.mark.parametrize("copied", [
    ESSAY, f"  {ESSAY.upper()}\n", ESSAY.replace(" ", "\n"),
    ESSAY.replace(":", ";").replace(",", " -"), f"*{ESSAY}*",
])  # fmt: skip
def test_two_with_one_essay_are_found_however_it_is_set(copied):
    texts = {"ada": {"why": ESSAY}, "bob": {"why": OTHER}, "cem": {"why": copied}, "dee": {}}
    assert same_texts(texts) == [SameText(["ada", "cem"], "why", ESSAY)]


@pytest.mark.parametrize("texts", [
    pytest.param({"ada": {"why": ESSAY}, "bob": {"when": ESSAY}}, id="another exercise"),
    pytest.param({"ada": {"why": "The CPU."}, "bob": {"why": "the cpu"}}, id="few words"),
    pytest.param({"ada": {"why": ""}, "bob": {"why": " "}}, id="nothing"),
    pytest.param({"ada": {"why": ESSAY}, "bob": {"why": f"{ESSAY} I think."}}, id="a sentence more"),
])  # fmt: skip
def test_what_may_well_be_two_peoples_own_is_no_finding(texts):
    assert same_texts(texts) == []


def test_right_answers_are_no_finding_and_a_whole_notebook_is():
    notebooks = {key: {"one.ipynb": RIGHT} for key in ("ada", "bob")}
    assert same_texts(notebooks, MIN_FILE_WORDS) == []
    notebooks = {key: {"one.ipynb": RIGHT + ESSAY * 6} for key in ("ada", "bob")}
    assert [group.students for group in same_texts(notebooks, MIN_FILE_WORDS)] == [["ada", "bob"]]


def test_the_largest_group_comes_first_and_letters_that_look_the_same_are_the_same():
    texts = {"a": {"x": OTHER}, "b": {"x": OTHER}} | {student: {"x": ESSAY} for student in "cde"}
    assert [group.students for group in same_texts(texts)] == [["c", "d", "e"], ["a", "b"]]
    assert words_of("ﬁve  Größe, x_1!") == ("five", "grösse", "x_1")


def test_no_text_holds_the_report_of_a_class(monkeypatch):
    """5 MB of accents behind one letter would take hours, and as many Arabic ligatures gigabytes."""
    lengths = []
    monkeypatch.setattr(
        module, "normalize", lambda form, text: lengths.append(len(text)) or normalize(form, text)
    )
    assert len(words_of("a" + "\N{COMBINING ACUTE ACCENT}" * 9000)) == 1
    assert len(words_of("\ufdfa" * MAX_WORDS)) == MAX_WORDS
    assert max(lengths) <= 100
