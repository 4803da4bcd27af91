"""A line for each student whom a person should look at, the worst first, and what was looked at before."""

from __future__ import annotations

from starvelab_grader.batch.records import GradedSubmission, GradedSubmissions
from starvelab_grader.report.remarks import LOOKED_AT, load_looked_at, save_looked_at, to_look_at
from starvelab_grader.submissions import SubmissionWarning


def record(student: str, *remarks: str, rejected=(), notebook="one") -> GradedSubmission:
    usual = dict.fromkeys(("written", "at", "grader", "nbgrader", "mode"), "")
    warnings = [SubmissionWarning("Nothing to do."), *(SubmissionWarning(text, True) for text in remarks)]
    more = {"warnings": {notebook: warnings}, "rejected": list(rejected)}
    return GradedSubmission(student, assignment="lab", **more, **usual)


CLASS = [
    record("ada"),
    record("bob", "Its text was not in UTF-8."),
    record("cem", "`one.ipynb` is empty.", rejected=["one"]),
    record("dee", "It is damaged.", "There are several files.", "It took long.", notebook="two"),
]


def test_each_student_has_one_line_the_worst_first():
    assert list(map(str, to_look_at(CLASS))) == [
        "cem: ask again for one. one: `one.ipynb` is empty.",
        "dee: look into two. two: It is damaged. And 2 more.",
        "bob: look into one. one: Its text was not in UTF-8.",
    ]


def test_who_was_looked_at_is_listed_again_once_a_remark_is_new(tmp_path):
    records = GradedSubmissions(tmp_path, tmp_path, "lab")
    assert load_looked_at(records) == {}
    save_looked_at(records, to_look_at(CLASS[1:3]))
    save_looked_at(records, to_look_at(CLASS[3:]))
    assert records.students == []
    looked_at = load_looked_at(records)
    assert to_look_at(CLASS, looked_at) == []
    changed = record("bob", "Its text was not in UTF-8.", "It took long.")
    assert [one.student for one in to_look_at([changed, *CLASS[2:]], looked_at)] == ["bob"]
    (records.folder / LOOKED_AT).write_text("[")
    assert load_looked_at(records) == {}
