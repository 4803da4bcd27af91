"""Tables that other programs gave out, filled in and otherwise untouched."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab_grader.lms.rosters import Sheet
from starvelab_grader.text import escape_csv_formulas

ODD = 'Name;"Grade ""final""";Note\n"Lovelace; Ada";;" 007"\n\nBob;"7,5"\n=1+1;"a\nb";x'


def test_what_nobody_writes_keeps_every_character():
    assert Sheet(ODD).content == ODD.encode()
    sheet = Sheet(ODD)
    sheet.put(1, 1, "8")
    assert sheet.content == ODD.replace('Bob;"7,5"', "Bob;8").encode()


def test_quotes_line_ends_and_the_delimiter_are_read():
    sheet = Sheet(ODD)
    assert sheet.headers == ["Name", 'Grade "final"', "Note"]
    assert sheet.rows == [["Lovelace; Ada", "", " 007"], ["Bob", "7,5", ""], ["=1+1", "a\nb", "x"]]


cells = st.text(st.sampled_from("ab,;\"\n\r\t '=é"), max_size=5)


@given(st.lists(st.lists(cells, min_size=2, max_size=4), min_size=1, max_size=4))
def test_any_table_is_read_as_csv_reads_it_and_comes_out_as_it_went_in(rows):
    made = io.StringIO(newline="")
    csv.writer(made).writerows([["a", "b", "c", "d"], *rows])
    sheet = Sheet(made.getvalue())
    assert sheet.content.decode() == made.getvalue()
    assert sheet.rows == [row + [""] * (4 - len(row)) for row in rows]


@given(st.text(st.sampled_from('ab,"\n\r'), max_size=12))
def test_damaged_quotes_change_nothing_either(text):
    assert Sheet(text).content.decode() == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_stays(tmp_path, encoding):
    (tmp_path / "x.csv").write_bytes("Name,Größe\r\nÀda,\r\n".encode(encoding))
    sheet = Sheet.read(tmp_path / "x.csv")
    assert sheet.headers == ["Name", "Größe"]
    sheet.put(0, 1, "1")
    assert sheet.content == "Name,Größe\r\nÀda,1\r\n".encode(encoding)


def test_a_column_and_a_line_can_be_added():
    sheet = Sheet("a,b\n1\n2,3")
    sheet.put(0, sheet.add_column("c, d"), "4")
    sheet.insert_row(["x", "", "y"])
    assert sheet.content == b'a,b,"c, d"\nx,,y\n1,,4\n2,3,'


def test_a_line_that_is_shorter_than_the_headers_is_filled_up():
    sheet = Sheet("a,b,c\n1\n")
    sheet.put(0, 2, "x")
    assert sheet.content == b"a,b,c\n1,,x\n"


def test_what_is_written_is_no_formula():
    sheet = Sheet.new(["a"], [["=cmd()"], ["-1"]])
    sheet.put(1, 0, "@x")
    assert sheet.rows == [["'=cmd()"], ["'@x"]]
    escaped = [escape_csv_formulas(value) for value in ("+1", "＝1", "\t=1", -2, None, "a=1")]
    assert escaped == ["'+1", "'＝1", "'\t=1", -2, None, "a=1"]
