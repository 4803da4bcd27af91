"""Reading and repairing notebooks by cell; whole submissions are in tests/hostile/test_structures.py."""

from __future__ import annotations

import json
import re

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from starvelab_grader.submissions.reading import UnreadableNotebookError, read_notebook, restore
from starvelab_grader.submissions.reference import ReferenceCell
from starvelab_grader.submissions.submission import cells_named_in


def true(
    name: str, source: str, *, answer: bool = False, essay: bool = False, released: str = ""
) -> ReferenceCell:
    """An instructor's cell: set-up, test, answer or essay, by its name."""
    test = name.endswith("-test")
    return ReferenceCell(
        name=name,
        cell_type="markdown" if essay else "code",
        source=source,
        released=released or source,
        checksum="c",
        locked=not (answer or essay),
        grade=test or essay,
        solution=answer or essay,
        points=2.0 if test or essay else 0.0,
    )


TRUTH = [
    true("set-up", "import math"),
    true("f", "def f(): ...", answer=True),
    true("f-test", "assert f() == 1\nassert hidden", released="assert f() == 1"),
    true("why", "Your answer here.", essay=True),
]


def cell(name: str, source: str, cell_id: str = ""):
    made = (new_markdown_cell if name == "why" else new_code_cell)(source, id=cell_id or name)
    made.metadata["nbgrader"] = {"grade_id": name}
    return made


def given_out(**sources: str):
    """The notebook as students get it, with sources of theirs."""
    return new_notebook(cells=[cell(one.name, sources.get(one.name, one.released)) for one in TRUTH])


def names(nb) -> list[str]:
    return [one.metadata.get("nbgrader", {}).get("grade_id", one.source) for one in nb.cells]


def sources(nb) -> dict[str, str]:
    named = [one for one in nb.cells if "nbgrader" in one.metadata]
    return {one.metadata.nbgrader.grade_id: one.source for one in named}


def mended(nb) -> str:
    """What is said of it."""
    return "\n".join(one.text for one in restore(nb, TRUTH))


# --- mending ----------------------------------------------------------------------------------------------


def test_a_notebook_as_it_was_given_out_gets_its_hidden_tests_back_and_no_remark():
    nb = given_out(f="def f(): return 1", why="Because.")
    assert mended(nb) == ""
    assert sources(nb) == {one.name: one.source for one in TRUTH} | {
        "f": "def f(): return 1",
        "why": "Because.",
    }


def test_every_flag_is_the_instructors():
    nb = given_out()
    for one in nb.cells:
        one.metadata["nbgrader"] |= {"points": 99, "locked": False, "grade": True, "solution": True}
    restore(nb, TRUTH)
    test = nb.cells[2].metadata
    assert test.nbgrader == {
        "grade": True,
        "grade_id": "f-test",
        "locked": True,
        "solution": False,
        "task": False,
        "cell_type": "code",
        "checksum": "c",
        "schema_version": 3,
        "points": 2.0,
    }
    assert (test.deletable, test.editable) == (False, False)
    assert "points" not in nb.cells[1].metadata.nbgrader


def test_a_cell_of_the_wrong_type_becomes_what_it_was():
    nb = given_out()
    nb.cells[2] = new_markdown_cell("1000", id="f-test")
    nb.cells[2].metadata["nbgrader"] = {"grade_id": "f-test"}
    assert mended(nb) == "Cells that students must not change were changed, and have been restored: f-test."
    assert nb.cells[2].cell_type == "code"


def test_missing_cells_come_back_where_they_were_and_a_missing_answer_does_not():
    nb = new_notebook(cells=[new_code_cell("mine", id="x"), cell("f-test", "assert f() == 1")])
    (remark,) = restore(nb, TRUTH)
    assert remark.text == "Cells were missing, and have been put back: set-up, why."
    assert remark.person, "the text may stand elsewhere"
    assert names(nb) == ["set-up", "mine", "f-test", "why"]


def test_of_two_answers_the_last_that_was_changed_counts_and_the_other_still_runs():
    nb = given_out(f="first")
    nb.cells.insert(2, cell("f", "second", "copy"))
    nb.cells.append(cell("f", "def f(): ...", "untouched"))
    warnings = restore(nb, TRUTH)
    assert [(one.text, one.person) for one in warnings] == [
        ("Cell f was in the notebook 3 times: the last one that you changed counts.", True)
    ]
    assert names(nb) == ["set-up", "first", "f", "f-test", "why"]
    assert sources(nb)["f"] == "second"


def test_copies_that_say_the_same_need_nobody():
    nb = given_out(f="mine")
    nb.cells.insert(2, cell("f", "mine", "copy"))
    assert [(one.text, one.person) for one in restore(nb, TRUTH)] == [
        ("Cell f was in the notebook 2 times.", False)
    ]


def test_of_a_test_the_first_counts_and_copies_go():
    nb = given_out()
    nb.cells.append(cell("f-test", "1000", "copy"))
    assert mended(nb) == "Cell f-test was in the notebook 2 times."
    assert names(nb) == [one.name for one in TRUTH]


def test_cells_that_lost_their_name_are_known_by_id_or_by_what_they_hold():
    nb = given_out(f="def f(): return 1", why="Because.")
    for number, one in enumerate(nb.cells):
        one.metadata = {}
        one.id = one.id if one.id in ("f", "why") else f"n{number}"
    assert mended(nb) == ""
    assert names(nb) == [one.name for one in TRUTH]


def test_an_unknown_name_is_taken_off():
    nb = given_out()
    nb.cells.append(cell("g-test", "1000"))
    assert mended(nb) == ""
    assert nb.cells[-1].metadata == {}


@pytest.mark.parametrize(
    ("order", "moved", "person"),
    [
        (["f", "f-test", "set-up", "why"], "set-up", True),
        (["set-up", "f-test", "f", "why"], "f", False),
        (["why", "set-up", "f", "f-test"], "why", False),
        (["f-test", "set-up", "f", "why"], "f-test", True),
    ],
)
def test_cells_that_were_moved_stay_there_and_are_named(order, moved, person):
    nb = given_out()
    nb.cells.sort(key=lambda one: order.index(one.id))
    (remark,) = restore(nb, TRUTH)
    assert remark.text == (f"Cells were moved: {moved}. The checks ran in the original order.")
    assert remark.person == person
    assert names(nb) == order


def without_metadata(nb):
    """As an editor leaves it that keeps neither metadata nor ids."""
    for number, one in enumerate(nb.cells):
        one.metadata, one.id = {}, f"n{number}"
    return nb


ESSAYS = [
    "# Lab",
    TRUTH[0],
    "## Exercise 1",
    TRUTH[1],
    TRUTH[2],
    "## Exercise 2: why?",
    TRUTH[3],
    "## Exercise 3: how?",
    true("how", "Your answer here.", essay=True),
    "The end.",
]


def essays(**sources: str):
    """A notebook with prose between its cells, as students get it, with sources of theirs."""
    nb = given_out()
    nb.cells = [
        new_markdown_cell(one, id=f"p{number}")
        if isinstance(one, str)
        else cell(one.name, sources.get(one.name, one.released))
        for number, one in enumerate(ESSAYS)
    ]
    nb.cells[8] = new_markdown_cell(nb.cells[8].source, metadata=nb.cells[8].metadata)
    return nb


def restored(nb) -> tuple[dict[str, str], list[str]]:
    """The sources of the named cells of `essays`, and what is said."""
    reference = [one for one in ESSAYS if not isinstance(one, str)]
    prose = [one if isinstance(one, str) else one.name for one in ESSAYS]
    said = [one.text for one in restore(nb, reference, prose)]
    nbformat.validate(nb)
    return sources(nb), said


def test_without_any_metadata_an_essay_is_found_by_its_place():
    nb = without_metadata(essays(f="def f(): return 1", why="Because.", how="With care."))
    found, said = restored(nb)
    assert (found["why"], found["how"]) == ("Because.", "With care.")
    assert "def f(): return 1" in [one.source for one in nb.cells], "code runs wherever it stands"
    assert said == ["Cells had lost their names, and were found by their places: why, how."]


def test_an_essay_in_two_cells_is_put_together_and_its_question_is_no_part_of_it():
    nb = without_metadata(essays(why="First.", how="With care."))
    nb.cells.insert(7, new_markdown_cell("Second."))
    nb.cells.insert(8, new_code_cell("1 / 2"))
    found, said = restored(nb)
    assert (found["why"], found["how"]) == ("First.\n\nSecond.", "With care.")
    assert [one.source for one in nb.cells if one.source == "1 / 2"] == ["1 / 2"]
    assert said == ["Cells had lost their names, and were found by their places: why, how."]


def test_where_the_place_tells_nothing_a_person_is_told():
    nb = without_metadata(essays(why="Because.", how="With care."))
    nb.cells = [nb.cells[at] for at in (0, 1, 3, 4, 6, 8)]  # without the headings
    nb.cells.insert(4, new_markdown_cell("Something."))
    reference = [one for one in ESSAYS if not isinstance(one, str)]
    *_, remark = restore(nb, reference, [one if isinstance(one, str) else one.name for one in ESSAYS])
    assert remark.text == "Cells were missing, and have been put back: why, how."
    assert remark.person
    assert {"Because.", "With care.", "Something."} <= {one.source for one in nb.cells}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text + "\n",
        lambda text: text.replace("    ", "\t"),
        lambda text: text.replace("\n", " \n"),
    ],
)
def test_lines_that_end_otherwise_are_no_change(change):
    truth = [true("f-test", "if True:\n    assert f() == 1"), true("f", "def f():\n    ...", answer=True)]
    truth.append(true("why", "Your answer\nhere.", essay=True))
    told = [
        {
            "cell_type": "markdown" if one.name == "why" else "code",
            "source": change(one.released),
            "metadata": {},
        }
        for one in truth
    ]
    for named in (True, False):
        for one, cell in zip(truth, told, strict=True):
            cell["metadata"] = {"nbgrader": {"grade_id": one.name}} if named else {}
        nb, _ = read_notebook(json.dumps({"nbformat": 4, "cells": told}).encode())
        said = [one.text for one in restore(nb, truth)]
        assert said == ([] if named else ["Cells had lost their names, and were found by their places: why."])
        told_apart = {one.name: one.source for one in truth if named or one.name != "f"}
        assert sources(nb) == told_apart, "nobody has answered anything"


def test_an_answer_that_was_merged_into_a_locked_cell_is_kept():
    nb = given_out(why="Because.")
    nb.cells[0].source += "\n\ndef f():\n    return 1"
    del nb.cells[1]
    assert mended(nb) == "Cells were merged into locked ones, and have been taken apart: set-up."
    assert names(nb) == ["set-up", "def f():\n    return 1", "f-test", "why"]
    nb = given_out()
    nb.cells[1].source = "def f(): return 1\nassert f() == 1"
    del nb.cells[2]
    assert mended(nb) == "Cells were missing, and have been put back: f-test."


def test_an_instructors_own_notebook_has_hidden_tests_and_no_merged_cells():
    nb = given_out()
    for cell, original in zip(nb.cells, TRUTH, strict=True):
        cell.source = original.source
    assert "merged" not in (mended(nb) or "")


def test_what_was_written_into_a_locked_cell_needs_a_person_where_an_answer_is_missing():
    nb = given_out()
    nb.cells[2].source = "def f(): return 1\nassert f()"
    assert not restore(nb, TRUTH)[0].person
    nb = given_out()
    nb.cells[2].source = "def f(): return 1\nassert f()"
    del nb.cells[1]
    (changed,) = restore(nb, TRUTH)
    assert (changed.text, changed.person) == (
        "Cells that students must not change were changed, and have been restored: f-test.",
        True,
    )


def test_an_essay_that_was_split_is_read_whole():
    nb = given_out(why="First.")
    second = cell("why", "Second.", "n9")
    nb.cells.append(second)
    assert mended(nb) == "Cell why was in the notebook 2 times: what you wrote in them stands together."
    assert sources(nb)["why"] == "First.\n\nSecond."


@pytest.mark.parametrize("minor", range(6))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
def test_every_minor_version_in_every_encoding_is_read(minor, encoding):
    nb = given_out(f="def f(): return 1", why="Überhaupt.\n\nSo.")
    told = json.loads(nbformat.writes(nb)) | {"nbformat_minor": minor}
    for one in told["cells"]:
        if minor < 5:
            del one["id"]
        if one["cell_type"] == "code" and minor < 4:
            one["metadata"]["collapsed"] = False
    content = json.dumps(told, ensure_ascii=False, indent=1).replace("\n", "\r\n").encode(encoding)
    read, warnings = read_notebook(content)
    assert (warnings, restore(read, TRUTH)) == ([], [])
    assert sources(read)["why"] == "Überhaupt.\n\nSo."
    assert cells_named_in(content) == {one.name for one in TRUTH}


CELLS = st.lists(
    st.tuples(
        st.sampled_from(["set-up", "f", "f-test", "why", "g", None]),
        st.text(max_size=20),
        st.sampled_from(["code", "markdown", "raw"]),
    ),
    max_size=12,
)


@given(CELLS)
def test_whatever_is_handed_in_each_graded_cell_is_there_once_and_true(cells):
    told = [
        {
            "cell_type": kind,
            "source": source,
            "metadata": {"nbgrader": {"grade_id": name}} if name else {},
        }
        for name, source, kind in cells
    ]
    nb, _ = read_notebook(json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": told}).encode())
    restore(nb, TRUTH)
    nbformat.validate(nb)
    found = [one.metadata.nbgrader.grade_id for one in nb.cells if "nbgrader" in one.metadata]
    for one in TRUTH:
        assert found.count(one.name) == 1 or (one.name == "f" and found.count("f") == 0)
    kept = {one.metadata.nbgrader.grade_id: one for one in nb.cells if "nbgrader" in one.metadata}
    for one in TRUTH:
        if one.name in kept:
            assert kept[one.name].cell_type == one.cell_type
            assert dict(kept[one.name].metadata.nbgrader) == one.metadata()
            assert one.answered or kept[one.name].source == one.source
    # No word of a student's is lost but for copies of what is not theirs.
    for name, source, _ in cells:
        if name in (None, "g"):
            kept = re.sub(r"\r\n?", "\n", source).strip()
            assert any(kept in one.source for one in nb.cells)


# --- reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty."),
        (b"\0\0\0", "is empty."),
        (b"[1]", "is no notebook: it holds no cells."),
        (b'{"nbformat": 4}', "is no notebook: it holds no cells."),
        (b"hello", "is no notebook, whatever its name is. Submit the .ipynb file that JupyterLab saved."),
        (
            b"<html>",
            "is a web page and no notebook. Download the notebook itself, as .ipynb, and submit that.",
        ),
        (
            b'{"cells": [\n1,',
            "is damaged (line 2): perhaps a part of it is missing. "
            "Open it in JupyterLab, and submit it again.",
        ),
        (
            b"<<<<<<< HEAD\n{}",
            "holds a merge conflict that was not resolved (lines that begin with <<<<<<<). "
            "Resolve it, and submit the notebook again.",
        ),
        (b"[" * 100_000, "is nested more deeply than any notebook is."),
        (
            b'{"nbformat": 5, "cells": []}',
            "is in format 5, which is newer than this grader can read. "
            "Save it with JupyterLab and submit it again.",
        ),
        (
            b'{"nbformat": "\\ud800", "cells": []}',
            "is in format ?, which is newer than this grader can read. "
            "Save it with JupyterLab and submit it again.",
        ),
        (
            b'{"nbformat": 3, "worksheets": 5}',
            "is in the old format 3 and could not be converted. "
            "Open and save it in JupyterLab, and submit it again.",
        ),
        (
            json.dumps({"nbformat": 4, "cells": [{}] * 2001}).encode(),
            "has 2001 cells, and 2000 are allowed. Delete cells, and submit it again.",
        ),
    ],
)
def test_what_is_no_notebook_is_refused_with_what_to_do(content, said):
    with pytest.raises(UnreadableNotebookError) as error:
        read_notebook(content)
    assert str(error.value) == said


def test_nothing_of_a_cell_survives_but_its_type_its_source_and_its_name():
    given = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"widgets": {}, "starvelab_rejected": "x"},
        "cells": [
            {
                "cell_type": "code",
                "id": "a",
                "source": ["1\n", "2"],
                "outputs": [{"output_type": "stream", "name": "stdout", "text": "1000"}],
                "execution_count": 3,
                "metadata": {"nbgrader": {"grade_id": "f", "points": 9}, "tags": ["x"]},
            }
        ],
    }
    nb, warnings = read_notebook(json.dumps(given).encode())
    assert warnings == []
    assert nb.metadata == {}
    assert dict(nb.cells[0]) == {
        "cell_type": "code",
        "id": "a",
        "source": "1\n2",
        "outputs": [],
        "execution_count": None,
        "metadata": {"nbgrader": {"grade_id": "f"}},
    }


def test_pictures_pasted_into_a_text_stay_and_nothing_else_that_is_attached():
    attached = {
        "a.png": {"image/png": "AAAA"},
        "b": {"text/html": "<script>"},
        "c": 5,
        "d": {"image/png": "\ud800"},
    }
    given = {"cell_type": "markdown", "source": "x", "metadata": {}, "attachments": attached}
    nb, (warning,) = read_notebook(json.dumps({"nbformat": 4, "cells": [given]}).encode())
    assert nb.cells[0].attachments == {"a.png": {"image/png": "AAAA"}}
    assert warning.text == "What is attached to its texts and is no picture was left out: `b`, `c`, `d`."


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_reading_anything_gives_a_notebook_or_a_reason(content):
    try:
        nb, _ = read_notebook(content)
    except UnreadableNotebookError as error:
        reason = str(error)
    else:
        nbformat.validate(nb)
        return
    assert reason.endswith((".", ")"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["cell_type", "source", "metadata", "id", "nbgrader", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5), JSON)
def test_reading_any_cells_gives_a_valid_notebook_that_can_be_written(cells, minor):
    try:
        nb, _ = read_notebook(json.dumps({"nbformat": 4, "nbformat_minor": minor, "cells": cells}).encode())
    except UnreadableNotebookError:
        return
    nbformat.validate(nb)
    nbformat.writes(nb).encode()
