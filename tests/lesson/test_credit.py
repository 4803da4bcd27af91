"""Partial credit: each part earns its points on its own, and a grader reads their sum."""

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_, runtime
from starvelab.checks import Credit, NotAnsweredError, WrongAnswer, check


def fail():
    raise WrongAnswer("n is 3, and that is not right.")


def unwritten():
    raise NotImplementedError


def test_each_part_earns_its_points_or_says_why_not_and_the_next_goes_on(capsys):
    credit = Credit(6.5)
    credit.part(1.5, "doubling", lambda: check(4, 4, what="four"))
    credit.part(0.5, "halving", fail)
    credit.part(0.5, "a quarter", fail)
    credit.part(0.5, "an eighth", fail)
    credit.part(1, "dividing", lambda: 1 / 0)
    credit.part(1.5, "adding", unwritten)
    credit.part(2.0, "squaring", lambda: None)
    credit.part(0.5, "a tenth", fail)
    assert credit.total() == 3.5
    assert capsys.readouterr().out == (
        "1.5 of 1.5: doubling\n0 of 0.5: halving. n is 3, and that is not right.\n"
        "0 of 0.5: a quarter. As above.\n0 of 0.5: an eighth. As above.\n"
        "0 of 1: dividing. ZeroDivisionError: division by zero.\n0 of 1.5: adding. Not written yet.\n"
        "2 of 2: squaring\n0 of 0.5: a tenth. n is 3, and that is not right.\n"
    )


@pytest.mark.parametrize("why", ["", "n is 3, and that is not right.\n"], ids=["in part", "not at all"])
def test_points_of_a_single_part_are_said_once_to_a_learner_and_a_grader_reads_its_line(capsys, why):
    def earn():
        if why:
            fail()
        return 0.125

    earned = "0" if why else "0.38"
    for graded in (False, True):
        with runtime.use(runtime.GRADING if graded else runtime.current()):
            credit = Credit(3)
            credit.share(3, "predictions", earn)
            total = credit.total()
        said = capsys.readouterr().out
        line = f"{earned} of 3: predictions{'. ' + why if why else chr(10)}"
        assert said == (line if graded else why and f"Not yet. {why}")
    assert total._repr_html_() == f"<p>{earned} of 3 points.</p>"


def test_units_that_do_not_fit_are_said_in_the_labs_words_and_not_in_those_of_pint(capsys):
    credit = Credit(1)
    credit.part(1, "adding", lambda: Q_("5 ms") + 1)
    credit.total()
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Not yet. Values that are added, subtracted, compared or converted need units of")
    assert 'A bare number needs a unit, such as Q_(15, "ms").' in said


def test_in_a_notebook_the_parts_are_one_table_with_reasons_where_there_are_some(monkeypatch):
    shown = []
    shell = SimpleNamespace(display_pub=SimpleNamespace(publish=lambda data: shown.append(data["text/html"])))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    for test in (fail, lambda: None):
        credit = Credit(4)
        credit.part(1.5, "doubling", lambda: None)
        credit.part(2, "halving", test)
        credit.total()
    wrong, right = (re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", html) for html in shown)
    heads, why = ["points", "part", "what is not right yet"], "n is 3, and that is not right."
    assert wrong == [*heads, "1.5 of 1.5", "doubling", "", "0 of 2", "halving", why]
    assert right == [*heads[:2], "1.5 of 1.5", "doubling", "2 of 2", "halving"]


@pytest.mark.parametrize(("points", "hidden"), [(5, "3"), (3, "1"), (2.5, "0.5")])
def test_points_of_hidden_parts_are_announced(points, hidden):
    credit = Credit(points)
    credit.part(2, "doubling", lambda: None)
    assert f"2 of 2 points. Hidden checks decide {hidden} more.</div>" in credit.total()._repr_html_()


def test_where_nothing_is_written_a_learner_is_told_so_in_one_line_and_a_grader_reads_0(capsys):
    def answered():
        credit = Credit(3)
        credit.part(1, "dividing", unwritten)
        credit.part(1, "adding", unwritten)
        return credit.total()

    with pytest.raises(NotAnsweredError, match=r"^Nothing is written yet\.$"):
        answered()
    assert capsys.readouterr().out == ""
    with runtime.use(runtime.GRADING):
        assert answered() == 0.0
    assert capsys.readouterr().out == (
        "0 of 1: dividing. Not written yet.\n0 of 1: adding. Not written yet.\n"
    )


def test_a_learner_reads_the_points_in_a_sentence_and_a_grader_a_plain_number():
    credit = Credit(3)
    credit.part(1.5, "dividing", lambda: None)
    credit.part(0.5, "halving", fail)
    total = credit.total("That must not be said.")
    assert total._repr_html_() == "<p>1.5 of 2 points. Hidden checks decide 1 more.</p>"
    # What nbgrader reads, and what a saved notebook has beside the sentence.
    assert (repr(total), str(total)) == ("1.5", "1.5")
    for grader in (runtime.GRADING, runtime.Runtime(is_validating=True)):
        with runtime.use(grader):
            assert total._repr_html_() is None


def test_whoever_has_all_points_is_told_so_in_green_with_what_it_means():
    credit = Credit(2)
    credit.part(2, "dividing", lambda: None)
    html = credit.total("So 44 workers, and a host has 16 cores.")._repr_html_()
    assert "#009E73" in html
    # No hidden check looks at other figures where the visible parts give all points.
    assert html.endswith("</strong> So 44 workers, and a host has 16 cores. 2 of 2 points.</div>")
    assert "<strong>Done." in html


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 9), st.booleans())))
def test_the_total_is_a_float_between_nothing_and_all_points(points, parts):
    credit = Credit(points)
    for worth, passes in parts:
        credit.part(worth, "a part", (lambda: None) if passes else fail)
    total = credit.total()
    assert isinstance(total, float)
    assert repr(total) == repr(float(total))
    assert 0.0 <= total <= points
    assert total == min(points, sum(worth for worth, passes in parts if passes))


def test_a_name_that_no_cell_has_defined_is_said_with_what_to_run():
    credit = Credit(1)
    rule = r"^The name never_run is not defined here: a cell above has not run\. Choose Run > Run All Above"
    with pytest.raises(NotAnsweredError, match=rule):
        credit.share(1, "predictions", lambda: never_run)  # noqa: F821
