"""Tables, lists and sentences: quantities to four digits, HTML in a notebook, and nothing returned."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_, InputError
from starvelab.show import info, say, table


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Q_(11.743205, "ms"), "11.74 ms"),
        (Q_("64 ms"), "64 ms"),
        (Q_("2 GB/s"), "2 GB/s"),
        (Q_(21799.84, "img/s"), "21800 img/s"),
        (Q_(10.899919, "GB/s"), "10.9 GB/s"),
        (Q_(0.00262821, "s"), "0.002628 s"),
        (Q_(38048780.5, "img/s"), "38050000 img/s"),
        (18.348758, "18.35"),
        (436, "436"),
        (1_000_001, "1000001"),
        (np.int64(7), "7"),
        (True, "yes"),
        (np.bool_(False), "no"),
        ("5.45x", "5.45x"),
        (None, ""),
    ],
    ids=str,
)
def test_values_are_shown_as_people_write_them(value, shown, capsys):
    info("It", value=value)
    assert capsys.readouterr().out == f"It\n--\nvalue  {shown}\n"
    table(["value"], [[value]])
    assert capsys.readouterr().out.splitlines()[-1].strip() == shown


@pytest.fixture
def shown_in_a_notebook(monkeypatch):
    """What a notebook is told to show, while IPython runs."""
    published = []
    monkeypatch.setattr("IPython.get_ipython", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda data, raw: published.append(data))
    return published


names = st.from_regex(r"[a-z]{1,9}(_[a-z]{1,9}){0,2}", fullmatch=True)


@given(st.dictionaries(names, st.integers(0, 10**6), min_size=1))
def test_the_values_of_a_list_stand_below_each_other(fields):
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("builtins.print", printed.append)
        info("It", **fields)
    [text] = printed
    lines = text.splitlines()[2:]
    width = max(map(len, fields)) + 2
    assert [line[:width].strip() for line in lines] == [name.replace("_", " ") for name in fields]
    assert [line[width:] for line in lines] == [str(value) for value in fields.values()]


def test_a_list_has_a_title_and_spaces_for_underscores(capsys):
    assert info("Nothing") is None
    assert capsys.readouterr().out == "Nothing\n-------\n"
    info("Baseline", step_time=Q_("11.743205 ms"), binds="Compute")
    assert capsys.readouterr().out == "Baseline\n--------\nstep time  11.74 ms\nbinds      Compute\n"


def test_figures_stand_to_the_right_and_words_to_the_left(capsys):
    table(["batch", "step", "binds"], [[32, Q_("5.856 ms"), "CPU"], [1024, Q_("31.93 ms"), "accelerator"]])
    assert capsys.readouterr().out.splitlines() == [
        "  batch      step  binds",
        "-------  --------  -----------",
        "     32  5.856 ms  CPU",
        "   1024  31.93 ms  accelerator",
    ]


def test_a_table_without_rows_shows_its_headers(capsys):
    assert table(["batch", "step"], ([n] for n in ())) is None
    assert capsys.readouterr().out.split() == ["batch", "step", "-------", "------"]


def test_text_that_looks_like_a_number_is_left_as_it_is(capsys):
    table(["what"], [["1e3"], ["007"]])
    assert capsys.readouterr().out.split()[-2:] == ["1e3", "007"]


@pytest.mark.parametrize("row", [[1], [1, 2, 3]])
def test_a_row_of_the_wrong_length_is_refused(row, capsys):
    with pytest.raises(InputError) as caught:
        table(["batch", "step"], [row])
    assert str(caught.value) == (
        f"A row has one value for each of the 2 headers, got {len(row)}: {row}. "
        "Add what is missing, or None for an empty cell."
    )
    assert capsys.readouterr().out == ""


def test_a_paragraph_is_broken_between_words(capsys):
    text = InputError("Storage binds: " + "reading takes long, " * 20)
    assert say(text) is None
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 100 for line in lines)
    assert " ".join(lines).split() == str(text).split()


def test_in_a_notebook_they_are_html_and_plain_text_for_whoever_sees_none(shown_in_a_notebook):
    table(["batch", "a < b"], [[32, "<i>"]])
    info("It & that", a_part=Q_("5 ms"))
    say("Storage binds & waits.")
    tabled, listed, said = shown_in_a_notebook
    assert '<th scope="col">batch</th>' in tabled["text/html"]
    assert ">a &lt; b</th>" in tabled["text/html"]
    assert ">&lt;i&gt;</td>" in tabled["text/html"]
    assert "-----" in tabled["text/plain"]
    assert re.search(r'<th colspan="2" scope="colgroup"[^>]*>It &amp; that</th>', listed["text/html"])
    assert re.search(r'<th scope="row"[^>]*>a part</th><td[^>]*>5 ms</td>', listed["text/html"])
    assert listed["text/plain"] == "It & that\n---------\na part  5 ms"
    assert re.search(r"^<div .*>Storage binds &amp; waits\.</div>$", said["text/html"])
    assert said["text/plain"] == "Storage binds & waits."
