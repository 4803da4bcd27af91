"""Tables of Canvas and Moodle, filled in and otherwise untouched, and who is in a class by them."""

import pytest
from nbgrader.api import Gradebook

from starvelab_grader.errors import InputError
from starvelab_grader.lms.rosters import Person, Sheet, key, named_by_download, read_roster, register
from starvelab_grader.text import escape_csv_formulas

ADA = Person("Ada", "Lovelace")
ODD = 'Name;"Grade ""final""";Note\n"Lovelace; Ada";;" 007"\n\nBob;"7,5"\n=1+1;"a\nb";x'


def test_quotes_and_the_delimiter_are_read_and_values_stay():
    sheet = Sheet(ODD)
    assert sheet.headers == ["Name", 'Grade "final"', "Note"]
    rows = [["Lovelace; Ada", "", " 007"], ["Bob", "7,5", ""], ["=1+1", "a\nb", "x"]]
    assert sheet.rows == Sheet(sheet.content.decode()).rows == rows
    sheet.put(1, 1, "8")
    assert sheet.content.splitlines()[2] == b"Bob;8;"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_stays(tmp_path, encoding):
    (tmp_path / "x.csv").write_bytes("Name,Größe\r\nÀda,\r\n".encode(encoding))
    sheet = Sheet.read(tmp_path / "x.csv")
    assert sheet.headers == ["Name", "Größe"]
    sheet.put(0, 1, "1")
    assert sheet.content == "Name,Größe\r\nÀda,1\r\n".encode(encoding)


def test_what_says_that_it_is_utf_16_and_is_not_is_a_table_all_the_same(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfea")
    assert Sheet.read(tmp_path / "x.csv").content == b"\xff\xfea\r\n"


@pytest.mark.parametrize(
    ("table", "content"),
    [("a,b\n1\n2,3", b'a,b,"c, d"\nx,,y\n1,,4\n2,3,\n'), ("a,b", b'a,b,"c, d"\nx,,y\n'),
     ("a,b\n1,2,3\n", b'a,b,"c, d"\nx,,y\n1,2,4\n')],
)  # fmt: skip
def test_a_column_and_a_line_can_be_added(table, content):
    sheet = Sheet(table)
    column = sheet.add_column("c, d")
    if sheet.rows:
        sheet.put(0, column, "4")
    sheet.lines.insert(1, ["x", "", "y"])
    assert sheet.content == content.replace(b"\n", b"\r\n")


def test_what_is_written_is_no_formula():
    sheet = Sheet.new(["a"], [["=cmd()"], ["-1"]])
    sheet.put(1, 0, "@x")
    assert sheet.rows == [["'=cmd()"], ["'@x"]]
    escaped = [escape_csv_formulas(value) for value in ("+1", "＝1", "\t=1", -2, None, "a=1")]
    assert escaped == ["'+1", "'＝1", "'\t=1", -2, None, "a=1"]


@pytest.mark.parametrize(("roster", "student", "person"), [
    ('Student,ID,SIS Login ID\n    Points Possible,,\n"Lovelace, Ada",101,ada@x.org\n', "101",
     Person("Ada", "Lovelace", "ada@x.org")),
    ("Identifier,Full name,Email address,Grade\nParticipant 101,Ada de Byron,ada@x.org,\n", "101",
     Person("Ada de", "Byron", "ada@x.org")),
    ("ID;Vollständiger Name;Bewertung\nTeilnehmer/in101;Ada Lovelace;\n", "101", ADA),
    ("编号,名字,成绩\n参与者101,Ada Lovelace,\n参与者102,Bob,\n", "101", ADA),
    ("Nachname,Vorname,Anmeldename\nLovelace,Ada,ada12\n", "ada12", ADA),
    ("Identifier,Status,Grade\nParticipant 101,Submitted,\n", "101", Person()),
])  # fmt: skip
def test_a_roster_is_read_by_how_it_is_built(tmp_path, roster, student, person):
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8-sig")
    assert read_roster(tmp_path / "roster.csv", [student])[student] == person


def test_who_has_not_submitted_is_in_the_roster_too(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("Identifier,Full name\nParticipant 1,A B\nParticipant 2,C D\n")
    assert read_roster(path, ["2"]).keys() == read_roster(path, []).keys() == {"1", "2"}
    path.write_text('Student,ID\n"Lovelace, Ada",7\n"Student, Test",8\n')
    assert read_roster(path, []) == {"7": ADA}, "and Canvas' test student is nobody"


def test_a_roster_that_names_nobody_is_rejected_with_what_to_pass(tmp_path):
    (tmp_path / "roster.csv").write_text("Name,Login\nAda,ada\n")
    with pytest.raises(InputError, match=r"No column of the roster .* for Moodle .*It has: Name, Login\."):
        read_roster(tmp_path / "roster.csv", ["101"])


def test_a_name_of_letters_and_digits_is_no_participant():
    texts = ("Participant 12", "Teilnehmer/in12", " 12 ", "a1b2")
    assert [key(text) for text in texts] == ["12", "12", "12", "a1b2"]


def test_a_name_in_the_gradebook_is_one_line_that_can_be_stored_and_printed():
    odd = Person("\x1b[31mA\ud800da\n", "L\u00a0 \u202e" + 200 * "é")
    with Gradebook("sqlite://") as book:
        register(book, {"1": odd, "2": Person("\t")})
        one, two = (book.find_student(name) for name in "12")
        assert named_by_download(book, {"\udcff": "nobody", "3": "a b"}) == {"3": Person("a", "b")}
        assert (one.first_name, one.last_name) == ("[31mAda", "L " + 126 * "é")
        assert (two.first_name, two.last_name) == (None, None)


def test_a_name_from_a_roster_is_better_than_one_from_a_download():
    with Gradebook("sqlite://") as book:
        register(book, {"1": ADA, "2": Person("", "barkerbob")})
        register(book, named_by_download(book, {"1": "lovelaceada", "2": "x", "3": "Cem Can"}))
        register(book, {"2": Person("Bob", "Barker", "b@x.org")})
        names = {one.id: (one.first_name, one.last_name, one.email) for one in book.students}
    bob = ("Bob", "Barker", "b@x.org")
    assert names == {"1": ("Ada", "Lovelace", None), "2": bob, "3": ("Cem", "Can", None)}
