"""The model's error on published measurements: as written down, and never on what was fitted to itself."""

from __future__ import annotations

import copy
import statistics

import pytest

from benchmarks.validation import FIGURES, RULES, Published, main
from starvelab.units import Quantity

PUBLISHED = Published()
TABLE = {
    "row": PUBLISHED.rows,
    "constant": PUBLISHED.constants,
    "left_out": PUBLISHED.left_out,
    "guess": PUBLISHED.guesses,
}
INPUTS = [name for name in PUBLISHED.rows if name not in PUBLISHED.tested]


def with_another_value(name):
    """The same table, had that row been measured a tenth higher."""
    table = copy.deepcopy(TABLE)
    value = PUBLISHED.value(name)
    table["row"][name]["value"] = f"{1.1 * value:~}" if isinstance(value, Quantity) else 1.1 * value
    return Published(table)


def fitted_to_itself(published, name):
    """Whether the prediction of a row rests on the row."""
    return name in published.test(name).uses


@pytest.mark.parametrize("name", [*PUBLISHED.tested, *PUBLISHED.guesses])
def test_the_model_is_off_by_what_is_written(name):
    row = PUBLISHED.rows.get(name) or PUBLISHED.guesses[name]
    assert 100 * PUBLISHED.test(name).error == pytest.approx(row["error"], abs=0.051)


@pytest.mark.parametrize("name", PUBLISHED.tested)
def test_no_row_is_tested_with_a_constant_fitted_to_itself(name):
    assert not fitted_to_itself(PUBLISHED, name)
    before, after = PUBLISHED.test(name), with_another_value(name).test(name)
    assert after.predicted == before.predicted
    assert after.measured != before.measured


def test_a_row_that_is_fitted_to_itself_would_be_noticed():
    table = copy.deepcopy(TABLE)
    constant = table["constant"]["pytorch_synchronisation"]["with"]
    constant |= {"one": "@rn50_train_a100_pytorch_amp_1gpu", "all": "@rn50_train_a100_pytorch_amp_8gpu"}
    cheating = Published(table)
    assert fitted_to_itself(cheating, "rn50_train_a100_pytorch_amp_8gpu")
    assert cheating.test("rn50_train_a100_pytorch_amp_8gpu").error == pytest.approx(0, abs=1e-9)


def test_half_of_the_errors_are_at_most_7_percent_and_none_is_above_25():
    errors = [100 * abs(PUBLISHED.test(name).error) for name in PUBLISHED.tested]
    assert statistics.median(errors) <= 7
    assert max(errors) <= 25


@pytest.mark.parametrize("name", PUBLISHED.tested)
def test_a_prediction_rests_on_at_least_one_published_row(name):
    assert PUBLISHED.test(name).uses


@pytest.mark.parametrize("name", INPUTS)
def test_a_row_that_is_not_tested_serves_a_prediction(name):
    assert any(name in PUBLISHED.test(one).uses for one in PUBLISHED.tested)


def test_every_row_says_what_was_measured_and_where_it_stands():
    for row in PUBLISHED.rows.values():
        assert len(row["what"]) > 5
        assert len(row["source"]) > 10
        assert set(row) <= {"value", "what", "source", "figure", "pipeline", "error"}
        assert ("pipeline" in row) == ("error" in row)


def test_every_row_that_is_left_out_has_a_reason_and_is_not_tested():
    named = [name for one in PUBLISHED.left_out for name in one["rows"]]
    assert len(named) == len(set(named))
    assert not set(named) & set(PUBLISHED.rows)
    assert all(len(one["reason"]) > 20 for one in PUBLISHED.left_out)


def test_a_guess_is_of_a_row_that_is_left_out_and_says_what_it_assumes():
    left_out = {name for one in PUBLISHED.left_out for name in one["rows"]}
    assert left_out >= set(PUBLISHED.guesses)
    assert not set(PUBLISHED.guesses) & set(PUBLISHED.tested)
    assert all(len(guess["assumed"]) > 20 for guess in PUBLISHED.guesses.values())


def test_every_rule_and_every_figure_is_used():
    assert {constant["rule"] for constant in PUBLISHED.constants.values()} == set(RULES)
    assert {row.get("figure", "throughput") for row in PUBLISHED.rows.values()} == set(FIGURES)


def test_the_two_rows_of_the_caching_article_follow_from_the_six_others():
    for name in ("caching_optimised_raw_sample", "caching_optimised_small"):
        found = PUBLISHED.test(name)
        assert found.error == pytest.approx(0, abs=1e-4)
        assert len(found.uses) == 6
        assert all(used.startswith("caching_") for used in found.uses)


def test_the_table_is_printed_with_its_summary(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["validation", "--format", "github", "--uses", "--left-out"])
    main()
    printed = capsys.readouterr().out
    assert printed.startswith("| what")
    assert "ResNet-50, MXNet AMP, 8 A100" in printed
    assert (
        f"{len(PUBLISHED.tested)} rows, none used to calibrate its own prediction: median error 6." in printed
    )
    assert "hdd_seq" in printed
