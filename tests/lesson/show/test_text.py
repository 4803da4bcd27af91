"""Tables, lists and sentences: quantities to four digits, HTML in a notebook, and nothing returned."""

import re
from types import SimpleNamespace

import pytest

from starvelab import Q_, InputError
from starvelab.show import say, table
from starvelab.tables import to_text


def test_a_table_is_printed_as_text_and_its_rows_may_come_from_a_generator(capsys):
    assert table(["batch", "step"], ([n, Q_("5.856 ms")] for n in (32, 64))) is None
    assert capsys.readouterr().out == to_text(["batch", "step"], [[32, "5.856 ms"], [64, "5.856 ms"]]) + "\n"


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
    text = InputError("The drive binds: " + "reading takes long, " * 20)
    assert say(text) is None
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 100 for line in lines)
    assert " ".join(lines).split() == str(text).split()


def test_in_a_notebook_they_are_html_and_plain_text_for_whoever_sees_none(monkeypatch):
    published = []
    shell = SimpleNamespace(display_pub=SimpleNamespace(publish=published.append))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    table(["batch", "a < b"], [[32, "<i>"]])
    say("The drive binds & waits.")
    tabled, said = published
    assert '<th scope="col">batch</th>' in tabled["text/html"]
    assert ">a &lt; b</th>" in tabled["text/html"]
    assert ">&lt;i&gt;</td>" in tabled["text/html"]
    assert "-----" in tabled["text/plain"]
    assert re.search(r"^<div .*>The drive binds &amp; waits\.</div>$", said["text/html"])
    assert said["text/plain"] == "The drive binds & waits."
