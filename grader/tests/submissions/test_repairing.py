"""Reading and repairing notebooks by cell; whole submissions: grader/tests/hostile/test_structures.py."""

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

pytestmark = pytest.mark.programs


def instructors(name: str, source: str, *, answer=False, essay=False, released: str = "") -> ReferenceCell:
    """An instructor's cell: set-up, test, answer or essay, by its name."""
    graded = name.endswith("-test") or essay
    return ReferenceCell(
        name=name, cell_type="markdown" if essay else "code", source=source, released=released or source,
        checksum="c", locked=not (answer or essay), grade=graded, solution=answer or essay,
        points=2.0 if graded else 0.0,
    )  # fmt: skip


REFERENCE = [
    instructors("set-up", "import math"),
    instructors("f", "def f(): ...", answer=True),
    instructors("f-test", "assert f() == 1\nassert hidden", released="assert f() == 1"),
    instructors("why", "Your answer here.", essay=True),
]
NAMES = [one.name for one in REFERENCE]


def cell(name: str, source: str, cell_id: str = ""):
    made = (new_markdown_cell if name in ("why", "how") else new_code_cell)(source, id=cell_id or name)
    made.metadata["nbgrader"] = {"grade_id": name}
    return made


def given_out(**sources: str):
    """The notebook as students get it, with sources of theirs."""
    return new_notebook(cells=[cell(one.name, sources.get(one.name, one.released)) for one in REFERENCE])


def file(cells, **more) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": cells} | more).encode()


def names(nb) -> list[str]:
    return [one.metadata.get("nbgrader", {}).get("grade_id", one.source) for one in nb.cells]


def sources(nb) -> dict[str, str]:
    named = [one for one in nb.cells if "nbgrader" in one.metadata]
    return {one.metadata.nbgrader.grade_id: one.source for one in named}


def test_every_flag_and_every_hidden_test_is_the_instructors():
    nb = given_out(f="def f(): return 1", why="Because.")
    for one in nb.cells:
        one.metadata["nbgrader"] |= {"points": 99, "locked": False, "grade": True, "solution": True}
    assert restore(nb, REFERENCE) == []
    answers = {"f": "def f(): return 1", "why": "Because."}
    assert sources(nb) == {one.name: one.source for one in REFERENCE} | answers
    test = nb.cells[2].metadata
    assert test.nbgrader == {
        "grade": True, "grade_id": "f-test", "locked": True, "solution": False, "task": False,
        "cell_type": "code", "checksum": "c", "schema_version": 3, "points": 2.0,
    }  # fmt: skip
    assert (test.deletable, test.editable) == (False, False)
    assert "points" not in nb.cells[1].metadata.nbgrader


SET_UP, F, TEST, WHY = ((one.name, one.released) for one in REFERENCE)
OWN = ("f", "def f(): return 1")
CHANGED = "Cells that students must not change were changed, and have been restored: {}."
MISSING = "Cells were missing, and have been put back: {}."
MOVED = "Cells were moved: {}. Set-ups ran first, and each check after its answer."
FOUND = "Cells had lost their names, and were found by their places: {}."


@pytest.mark.parametrize(("cells", "warning", "person", "after"), [
    ([SET_UP, OWN, ("f-test", "1000"), WHY], CHANGED.format("f-test"), False, NAMES),
    # What was written into a locked cell may be the answer that is missing.
    ([SET_UP, ("f-test", "f = 1"), WHY], CHANGED.format("f-test"), True,
     ["set-up", "f = 1", "f-test", "why"]),
    ([SET_UP, F, ("f-test", "f = 1"), WHY], CHANGED.format("f-test"), True,
     ["set-up", "f", "f = 1", "f-test", "why"]),
    # A missing answer does not come back, and that to an essay may stand elsewhere.
    ([("x", "mine"), TEST], MISSING.format("set-up, why"), True, ["set-up", "mine", "f-test", "why"]),
    # Of two answers the last that was changed counts, and the other still runs.
    ([SET_UP, ("f", "first"), ("f", "second"), TEST, WHY, F],
     "Cell f was in the notebook 3 times: the last one that you changed counts.", True,
     ["set-up", "first", "f", "f-test", "why"]),
    ([SET_UP, OWN, OWN, TEST, WHY], "Cell f was in the notebook 2 times.", False,
     ["set-up", OWN[1], "f", "f-test", "why"]),
    # Of a test the first counts, and copies go.
    ([SET_UP, F, TEST, WHY, ("f-test", "1")], "Cell f-test was in the notebook 2 times.", False, NAMES),
    # An essay that was split is read whole.
    ([SET_UP, F, TEST, ("why", "First."), ("why", "Second.")],
     "Cell why was in the notebook 2 times: your texts in them were joined.", True, NAMES),
    ([("set-up", f"import math\n\n{OWN[1]}"), TEST, WHY], CHANGED.format("set-up"), True,
     [f"import math\n\n{OWN[1]}", "set-up", "f-test", "why"]),
    ([SET_UP, ("f", f"{OWN[1]}\nassert f() == 1"), WHY], MISSING.format("f-test"), False, NAMES),
    ([SET_UP, ("f", "<<<<<<< HEAD\nf = 1\n=======\nf = 2\n>>>>>>> other"), TEST, WHY],
     "Cells hold a merge conflict that was not resolved: f. Keep one side, and delete the marks.",
     True, NAMES),
    # Cells that were moved stay there.
    ([F, TEST, SET_UP, WHY], MOVED.format("set-up"), False, ["f", "f-test", "set-up", "why"]),
    ([SET_UP, TEST, F, WHY], MOVED.format("f"), False, ["set-up", "f-test", "f", "why"]),
    ([WHY, SET_UP, F, TEST], MOVED.format("why"), False, ["why", "set-up", "f", "f-test"]),
    ([TEST, SET_UP, F, WHY], MOVED.format("f-test"), False, ["f-test", "set-up", "f", "why"]),
])  # fmt: skip
def test_what_was_restored_is_said_once(cells, warning, person, after):
    made = [cell(name, source, f"{name}{at}") for at, (name, source) in enumerate(cells)]
    nb = new_notebook(cells=made)
    (one,) = restore(nb, REFERENCE)
    assert (one.text, one.person) == (warning, person)
    assert names(nb) == after
    written = [source for name, source in cells if name in ("f", "why") and source not in (F[1], WHY[1])]
    assert all(any(source in each.source for each in nb.cells) for source in written)
    if "the last one" in warning:
        assert sources(nb)["f"] == "second"
    if "joined" in warning:
        assert sources(nb)["why"] == "First.\n\nSecond."


def test_a_cell_of_the_wrong_type_becomes_what_it_was_and_an_unknown_name_is_taken_off():
    nb = given_out()
    nb.cells[2] = new_markdown_cell("1000", id="f-test", metadata=nb.cells[2].metadata)
    nb.cells.append(cell("g-test", "1000"))
    (one,) = restore(nb, REFERENCE)
    assert one.text == CHANGED.format("f-test")
    assert (nb.cells[2].cell_type, nb.cells[-1].metadata) == ("code", {})


def test_an_instructors_own_notebook_has_hidden_tests_and_no_merged_cells():
    nb = new_notebook(cells=[cell(one.name, one.source) for one in REFERENCE])
    assert restore(nb, REFERENCE) == []


def test_cells_that_lost_their_name_are_known_by_id_or_by_what_they_hold():
    nb = given_out(f="def f(): return 1", why="Because.")
    for number, one in enumerate(nb.cells):
        one.metadata = {}
        one.id = one.id if one.id in ("f", "why") else f"n{number}"
    assert restore(nb, REFERENCE) == []
    assert names(nb) == NAMES


HOW = instructors("how", "Your answer here.", essay=True)
ESSAYS = [
    "# Lab", REFERENCE[0], "## Exercise 1", REFERENCE[1], REFERENCE[2], "## Exercise 2: why?", REFERENCE[3],
    "## Exercise 3: how?", HOW, "The end.",
]  # fmt: skip


def without_metadata(**answers: str):
    """A notebook of several essays as an editor leaves it that keeps neither metadata nor ids."""
    cells = [
        new_markdown_cell(one)
        if isinstance(one, str)
        else cell(one.name, answers.get(one.name, one.released))
        for one in ESSAYS
    ]
    for number, one in enumerate(cells):
        one.metadata, one.id = {}, f"n{number}"
    return new_notebook(cells=cells)


def restored(nb):
    """The sources of named cells, and the last warning."""
    reference = [one for one in ESSAYS if not isinstance(one, str)]
    *_, warning = restore(nb, reference, [one if isinstance(one, str) else one.name for one in ESSAYS])
    nbformat.validate(nb)
    return sources(nb), warning


def test_without_any_metadata_an_essay_is_found_by_its_place_and_put_together():
    nb = without_metadata(f="def f(): return 1", why="First.", how="With care.")
    nb.cells[7:7] = [new_markdown_cell("Second."), new_code_cell("1 / 2")]
    found, warning = restored(nb)
    assert (found["why"], found["how"]) == ("First.\n\nSecond.", "With care.")
    runs = [one.source for one in nb.cells if one.source in ("1 / 2", "def f(): return 1")]
    assert runs == ["def f(): return 1", "1 / 2"], "code runs wherever it stands"
    assert warning.text == FOUND.format("why, how")


def test_where_the_place_tells_nothing_a_person_has_to_look():
    nb = without_metadata(why="Because.", how="With care.")
    nb.cells = [nb.cells[at] for at in (0, 1, 3, 4, 6, 8)]  # without the headings
    nb.cells.insert(4, new_markdown_cell("Something."))
    _, warning = restored(nb)
    assert (warning.text, warning.person) == (MISSING.format("why, how"), True)
    assert {"Because.", "With care.", "Something."} <= {one.source for one in nb.cells}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("before", "after"), [("\n", "\r\n"), ("\n", "\r"), ("    ", "\t"), ("\n", " \n"), (r"\Z", "\n")]
)
def test_lines_that_end_otherwise_are_no_change(before, after, named):
    reference = [
        instructors("f-test", "if True:\n    assert f() == 1"),
        instructors("f", "def f():\n    ...", answer=True),
        instructors("why", "Your answer\nhere.", essay=True),
    ]
    cells = [
        {"cell_type": one.cell_type, "source": re.sub(before, after, one.released), "metadata": each}
        for one in reference
        for each in [{"nbgrader": {"grade_id": one.name}} if named else {}]
    ]
    nb, _ = read_notebook(file(cells, nbformat_minor=4))
    assert [one.text for one in restore(nb, reference)] == ([] if named else [FOUND.format("why")])
    expected = {one.name: one.source for one in reference if named or one.name != "f"}
    assert sources(nb) == expected, "nobody has answered anything"


CELLS = st.lists(
    st.tuples(
        st.sampled_from(["set-up", "f", "f-test", "why", "g", None]),
        st.text(max_size=20),
        st.sampled_from(["code", "markdown", "raw"]),
    ),
    max_size=12,
)


@given(CELLS)
def test_whatever_is_submitted_each_graded_cell_is_there_once_as_the_instructor_has_it(cells):
    content = [
        {"cell_type": kind, "source": source, "metadata": {"nbgrader": {"grade_id": name}} if name else {}}
        for name, source, kind in cells
    ]
    nb, _ = read_notebook(file(content))
    restore(nb, REFERENCE)
    nbformat.validate(nb)
    found = [one.metadata.nbgrader.grade_id for one in nb.cells if "nbgrader" in one.metadata]
    kept = {one.metadata.nbgrader.grade_id: one for one in nb.cells if "nbgrader" in one.metadata}
    for one in REFERENCE:
        assert found.count(one.name) == 1 or (one.name == "f" and found.count("f") == 0)
        if one.name in kept:
            assert kept[one.name].cell_type == one.cell_type
            assert dict(kept[one.name].metadata.nbgrader) == one.metadata()
            assert one.answered or kept[one.name].source == one.source
    # No word of a student's is lost but for copies of what is not theirs.
    for name, source, _ in cells:
        if name in (None, "g"):
            text = re.sub(r"\r\n?", "\n", source).strip()
            assert any(text in one.source for one in nb.cells)


@pytest.mark.parametrize("minor", range(6))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
def test_every_minor_version_in_every_encoding_is_read(minor, encoding):
    content = json.loads(nbformat.writes(given_out(f="def f(): return 1", why="Überhaupt.\n\nSo.")))
    for one in content["cells"]:
        if minor < 5:
            del one["id"]
        if one["cell_type"] == "code" and minor < 4:
            one["metadata"]["collapsed"] = False
    text = json.dumps(content | {"nbformat_minor": minor}, ensure_ascii=False, indent=1)
    encoded = text.replace("\n", "\r\n").encode(encoding)
    nb, warnings = read_notebook(encoded)
    assert (warnings, restore(nb, REFERENCE)) == ([], [])
    assert sources(nb)["why"] == "Überhaupt.\n\nSo."
    assert cells_named_in(encoded) == set(NAMES)


NEWER = "which is newer than this grader can read. Save it with JupyterLab and submit it again."


@pytest.mark.parametrize(("content", "reason"), [
    (b"", "is empty."),
    (b"\0\0\0", "is empty."),
    (b"[1]", "is not a notebook: it has no cells."),
    (b'{"nbformat": 4}', "is not a notebook: it has no cells."),
    (b"hello", "is no notebook, whatever its name is. Submit the .ipynb file that JupyterLab saved."),
    (b"<html>",
     "is a web page, not a notebook. Download the notebook itself, as .ipynb, and submit that."),
    (b'{"cells": [\n1,', "is damaged (line 2): perhaps a part of it is missing. "
     "Open it in JupyterLab, and submit it again."),
    (b"<<<<<<< HEAD\n{}", "holds a merge conflict that was not resolved (lines that begin with <<<<<<<). "
     "Resolve it, and submit the notebook again."),
    (b"[" * 100_000, "is nested more deeply than any notebook is."),
    (file([], nbformat=5), f"is in format 5, {NEWER}"),
    (file([], nbformat="\ud800"), f"is in format ?, {NEWER}"),
    (b'{"nbformat": 3, "worksheets": 5}', "is in the old format 3 and could not be converted. "
     "Open and save it in JupyterLab, and submit it again."),
    (file([{}] * 2001), "has 2001 cells, and 2000 are allowed. Delete cells, and submit it again."),
])  # fmt: skip
def test_what_is_no_notebook_is_rejected_with_what_to_do(content, reason):
    with pytest.raises(UnreadableNotebookError) as error:
        read_notebook(content)
    assert str(error.value) == reason


def test_nothing_of_a_cell_survives_but_its_type_its_source_and_its_name():
    kept = {"cell_type": "code", "id": "a"}
    submitted = kept | {
        "source": ["1\n", "2"], "outputs": [{"output_type": "stream", "name": "stdout", "text": "1000"}],
        "execution_count": 3, "metadata": {"nbgrader": {"grade_id": "f", "points": 9}, "tags": ["x"]},
    }  # fmt: skip
    nb, warnings = read_notebook(file([submitted], metadata={"widgets": {}, "starvelab_rejected": "x"}))
    assert (warnings, nb.metadata) == ([], {})
    empty = {"outputs": [], "execution_count": None, "metadata": {"nbgrader": {"grade_id": "f"}}}
    assert dict(nb.cells[0]) == kept | {"source": "1\n2"} | empty


def test_pictures_pasted_into_a_text_stay_and_nothing_else_that_is_attached():
    attached = {
        "a.png": {"image/png": "AAAA"}, "b": {"text/html": "<script>"}, "c": 5, "d": {"image/png": "\ud800"}
    }  # fmt: skip
    submitted = {"cell_type": "markdown", "source": "x", "metadata": {}, "attachments": attached}
    nb, (warning,) = read_notebook(file([submitted]))
    assert nb.cells[0].attachments == {"a.png": {"image/png": "AAAA"}}
    assert warning.text == "Attachments to its texts other than pictures were left out: `b`, `c`, `d`."


def test_what_a_notebook_lost_on_its_way_is_said():
    code = {"cell_type": "code", "input": "ä = 1", "outputs": [], "language": "python", "metadata": {}}
    worksheets = [{"cells": [code], "metadata": {}}]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": worksheets}
    nb, warnings = read_notebook(json.dumps(old, ensure_ascii=False).encode("cp1252"))
    assert [one.source for one in nb.cells] == ["ä = 1"]
    nb, more = read_notebook(file([5, {"cell_type": "raw", "source": "x"}]))
    assert [(one.text, one.person) for one in warnings + more] == [
        ("Its text was not in UTF-8: some characters may be wrong.", True),
        ("It was in an old format, and was converted.", False),
        ("1 of its cells were damaged and could not be read.", True),
    ]


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


@given(
    st.binary(max_size=300)
    | st.text(max_size=300).map(str.encode)
    | st.builds(lambda cells, minor: file(cells, nbformat_minor=minor), st.lists(JSON, max_size=5), JSON)
)
def test_reading_anything_gives_a_notebook_that_can_be_written_or_a_reason(content):
    try:
        nb, _ = read_notebook(content)
    except UnreadableNotebookError:  # its messages are above
        return
    nbformat.validate(nb)
    nbformat.writes(nb).encode()
