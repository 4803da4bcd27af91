"""What pandas holds comes back as it was, or is refused by its type; a forged table says nothing."""

import sys
from datetime import date, datetime

import numpy as np
import pytest

from grader.tests.sandbox.test_codec import out_of_a_sandbox as across
from starvelab_grader.sandbox.codec import MAX_VALUES, Decoder, SerializationError

pd = pytest.importorskip("pandas")
testing = pytest.importorskip("pandas.testing")


SCORES = pd.DataFrame(
    {
        "name": ["Ada", None, "Grace"],
        "points": [1.5, np.nan, -0.0],
        "tries": np.array([1, 2, 3], np.int8),
        "passed": [True, False, True],
        "day": np.array(["2026-01-02", "NaT", "2026-03-04T05:06:07.000000008"], "M8[ns]"),
        "mixed": [1, "one", date(2026, 1, 2)],
    }
)
TWICE = pd.DataFrame([[1, "a"], [2, "b"]], columns=["same", "same"], index=[7, 7])
BY_TWO = SCORES.groupby(["tries", "passed"])[["points"]].agg(["mean", "count"])
WHOLE = [
    SCORES,
    SCORES.set_index("day"),
    TWICE,
    BY_TWO,
    SCORES.iloc[:0],
    pd.DataFrame(index=[1, 2]),
    pd.DataFrame({("a", 1): [1], ("b", 2): [2.0]}),
    SCORES["name"],
    SCORES.iloc[0].drop("day"),
    pd.Series([pd.NA, pd.NaT, None, np.nan], dtype=object),
    SCORES["mixed"].value_counts(),
    BY_TWO["points"]["mean"],
    pd.Series([1, 2], name=("a", 1)),
    SCORES.columns,
    BY_TWO.index,
    pd.Index([1.5, 2.5], name="size"),
]


@pytest.mark.parametrize("value", WHOLE, ids=range(len(WHOLE)))
def test_a_table_comes_back_as_it_was(value):
    kind = next(each for each in (pd.DataFrame, pd.Series, pd.Index) if isinstance(value, each))
    same = {pd.DataFrame: testing.assert_frame_equal, pd.Series: testing.assert_series_equal}
    same.get(kind, testing.assert_index_equal)(across(value), value)
    (inside,) = across({"of a dict": [value]})["of a dict"]
    assert isinstance(inside, kind)


def test_a_table_that_has_arrived_can_be_written_to_and_computed_with():
    found = across(SCORES)
    found.loc[found["tries"] > 1, "points"] = 4.0
    found["twice"] = found["points"] * 2
    assert found["twice"].tolist() == [3.0, 8.0, 8.0]
    assert found.merge(SCORES, on="name").shape == (3, 12)


@pytest.mark.parametrize(("value", "why"), [
    (pd.Series(["a", "b"]).astype("category"), "of the type Categorical"),
    (pd.to_datetime(["2026-01-02"]).tz_localize("UTC"), "of the type DatetimeArray"),
    (pd.Series(pd.period_range("2026", periods=2)), "of the type PeriodArray"),
    (pd.Series([1, None], dtype="Int64"), "of the type IntegerArray"),
    (pd.Series([[1], object()]), "of the type object"),
    (pd.Series([SCORES, 1]), "cannot be read"),
    (pd.Series([2**70, 1], dtype=object), "cannot be read"),
    (pd.Series(["x"] * MAX_VALUES), "too many values"),
    (pd.Series(np.zeros(600_000)), "more than 4 MB"),
], ids=range(9))  # fmt: skip
def test_what_no_column_holds_is_refused(value, why):
    with pytest.raises(SerializationError, match=why):
        across(value)


def test_what_is_missing_arrives_as_missing():
    assert across(pd.Timestamp("2026-01-02 03:04:05")) == datetime(2026, 1, 2, 3, 4, 5)
    assert across([pd.NaT, pd.NA]) == [pd.NaT, pd.NA]  # by identity


ROWS = {"!": "pandas", "parts": ["index", ["rows"], None, ["object", 0, 1]]}
NAMES = {"!": "pandas", "parts": ["index", [None], None, ["object", "a"]]}


def test_what_the_forgeries_start_from_is_read():
    frame = Decoder().decode({"!": "pandas", "parts": ["frame", NAMES, ROWS, ["object", 1, 2]]})
    assert frame["a"].tolist() == [1, 2]


SAME_HASH = [n * sys.hash_info.modulus for n in range(8, 1000)]
FORGED = {
    "another kind": ["series of", "a", ROWS, ["object", 1, 2]],
    "no index": ["frame", NAMES, [0, 1], ["object", 1, 2]],
    "no names": ["frame", ["a"], ROWS, ["object", 1, 2]],
    "too few names": ["frame", NAMES, ROWS, ["object", 1, 2], ["object", 1, 2]],
    "too long": ["series", "a", ROWS, ["object", 1, 2, 3]],
    "an index without levels": ["index", [], None],
    "a name that is no key": ["series", [1], ROWS, ["object", 1, 2]],
    "a type that imports": ["series", "a", ROWS, ["string[pyarrow]", "x", "y"]],
    "a type of objects": ["series", "a", ROWS, [["object"], 1, 2]],
    "a list in a cell": ["series", "a", ROWS, ["object", 1, [2]]],
    "a namespace in a cell": ["series", "a", ROWS, ["object", {"!": "namespace", "parts": ["dtype", 1]}, 1]],
    "a frame in a cell": ["series", "a", ROWS, ["object", ROWS, 1]],
    "a table": ["series", "a", ROWS, {"!": "array", "dtype": "|b1", "shape": [1, 2], "data": "AAA="}],
    "numbers of one hash": ["index", ["a", "b"], None, ["object", *SAME_HASH], ["object", *SAME_HASH]],
    "too many levels": ["index", [None] * 10_001, None, *[["object", 1]] * 10_001],
    "no column": ["series", "a", ROWS, 3],
}


@pytest.mark.parametrize("parts", FORGED.values(), ids=FORGED)
def test_a_forged_table_says_nothing(parts):
    with pytest.raises(SerializationError):
        Decoder().decode({"!": "pandas", "parts": parts})
