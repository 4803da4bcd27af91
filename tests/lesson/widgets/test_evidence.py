"""A disturbed measurement is no evidence: it is not shown, and a recorded quiet run is one click away."""

import json
from dataclasses import replace

import pytest

from starvelab import Q_, Pipeline
from starvelab.lesson.widgets import _evidence
from starvelab.lesson.widgets._evidence import QuietRun, QuietRunBox, QuietTable, quiet_runs
from starvelab.lesson.widgets._loader import LoaderRun, step_ends
from starvelab.measure.quality import Quality
from starvelab.measure.samples import given_samples
from starvelab.runtime import GRADING, Runtime, use
from starvelab.widgets import beside_real, predict, reveal, show_measured
from tests.assignments import NOTEBOOKS
from tests.assignments import given as given_in
from tests.lesson.widgets.locked import predictions

pytest.importorskip("jupytext")  # with which the script reads a notebook
script = pytest.importorskip("benchmarks.quiet_runs")

QUIET = QuietRun(
    value=104.0, unit="%", machine="2 physical cores, x86_64, Linux", date="2026-11-22", notebook="n",
    quality="other programs used at most 1 % of the cores",
    tables=(QuietTable(caption="One < two.", headers=["what", "rate"], rows=[["one", "61 img/s"]]),),
)  # fmt: skip
ORIGIN = "Measured on a quiet machine (2 physical cores, x86_64, Linux) on 2026-11-22: other programs used"
LOAD = "other programs took 40 %"


@pytest.fixture
def recorded(monkeypatch):
    """The quiet runs that there are, by key; a test adds to them."""
    runs = {}
    monkeypatch.setattr(_evidence, "quiet_runs", lambda: runs)
    return runs


@pytest.fixture
def offered(monkeypatch):
    """The boxes that offer a recorded run, as they are displayed."""
    found = []
    show = _evidence.show_object
    monkeypatch.setattr(
        _evidence, "show_object",
        lambda one, **how: found.append(one) if isinstance(one, QuietRunBox) else show(one, **how),
    )  # fmt: skip
    return found


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_disturbed_measurement_is_not_shown_and_does_not_become_the_answer(shown, recorded, is_recorded):
    recorded |= {"past-cores": QUIET} if is_recorded else {}
    box = ["[A recorded quiet run]"] * is_recorded
    predict("past-cores", 150, unit="%", between=(0, None))
    reveal("past-cores", 61, disturbed=LOAD, then=lambda: "the table", why=lambda: 1 / 0)
    assert shown[0].startswith("Please note. You predicted 150 %. ")
    assert f"was disturbed ({LOAD}), so its numbers are no evidence, and are not shown." in shown[0]
    assert shown[1:] == box
    assert predictions()["past-cores"]["truth"] is None
    reveal("past-cores", 140, then=lambda: "the table")
    assert (shown[-1], predictions()["past-cores"]["truth"]) == ("the table", 140)
    shown.clear()
    reveal("past-cores", 61, disturbed=LOAD, then=lambda: "the table")
    assert predictions()["past-cores"]["truth"] == 140
    assert shown[0].startswith("Hit. The answer is 140.0 %."), "the disturbed number is not told"
    assert shown[1].startswith("Please note. This measurement was disturbed")
    assert shown[2:] == box
    with use(GRADING):
        reveal("past-cores", 61, disturbed=LOAD, then=lambda: "of a grader")
    assert shown[-1] == "of a grader"


def test_evidence_shows_what_was_measured_or_offers_the_recorded_run(shown, recorded):
    recorded["key"] = QUIET
    show_measured("key", lambda: "the table")
    show_measured("key", "a finding")
    show_measured("key", lambda: None)
    assert shown == ["the table", "a finding"]
    show_measured("key", lambda: 1 / 0, disturbed=LOAD)
    assert shown[2].startswith(f"Please note. This measurement was disturbed ({LOAD})")
    assert shown[3:] == ["[A recorded quiet run]"]
    with use(Runtime(has_widgets=False)):
        html = QuietRunBox(QUIET)._repr_mimebundle_()["text/html"]
    for said in ("<details>", ORIGIN, "One &lt; two.", "<td>61 img/s</td>"):
        assert said in html


@pytest.mark.parametrize(("answer", "hit", "word"), [(100, True, "Hit."), (150, False, "Miss.")])
def test_one_click_shows_the_recorded_run_and_makes_it_the_answer(recorded, offered, answer, hit, word):
    recorded |= {"past-cores": QUIET, "meanwhile": QUIET, "own": replace(QUIET, value=None)}
    recorded["other"] = replace(QUIET, value=1.0, unit="GB")
    for key in recorded:
        predict(key, answer, unit="%", between=(0, None))
        reveal(key, 61, disturbed=LOAD)
    first, meanwhile, own, other = offered
    assert predictions()["past-cores"]["truth"] is None, "nothing is chosen for the learner"
    first.button.click()
    stored = predictions()["past-cores"]
    assert (stored["truth"], stored["hit"], first.button.disabled) == (104.0, hit, True)
    for said in (word, "The answer is 104.0 %.", ORIGIN):
        assert said in first.message.value
    assert "<td>61 img/s</td>" in first.tables.value
    # An answer that was revealed meanwhile stays, and a problem is shown in the widget.
    reveal("meanwhile", 140)
    meanwhile.button.click()
    assert predictions()["meanwhile"]["truth"] == 140
    assert "The cell now gives 104.0 %; the score card keeps the answer that" in meanwhile.message.value
    other.button.click()
    assert "must be convertible to %, got 1 GB" in other.message.value
    assert not other.button.disabled
    # What depends on what a learner wrote is shown, and is no answer.
    own.button.click()
    assert (predictions()["own"]["truth"], "<td>61 img/s</td>" in own.tables.value) == (None, True)


def test_a_loader_is_held_against_a_recorded_run_where_its_own_was_disturbed(recorded, offered, capsys):
    pipeline = Pipeline(dataset=given_samples("tables"), batch_size=4, workers=1, hardware="0.1 ms")
    with use(Runtime(clock="simulated")):
        runs = [pipeline.replace(workers=n).measure(progress=False) for n in (1, 2)]
    recorded["tables"] = replace(QUIET, loaders=tuple(vars(LoaderRun.of(run)) for run in runs), tables=())
    beside_real(step_ends, [replace(run, quality=Quality(0.5, 0.1, 10)) for run in runs], quiet="tables")
    (box,) = offered
    assert "img/s" not in capsys.readouterr().out, "no number of it"
    box.button.click()
    beside_real(step_ends, runs, quiet="tables")
    live = capsys.readouterr().out
    for value in (
        "times as long for a batch as one alone.",
        *(f"{run.throughput.m_as('img/s'):.4g}" for run in runs),
    ):
        assert value in live
        assert value in box.message.value


# --- the record ----------------------------------------------------------------------------------------


def asked_in(notebook):
    """The keys of all measurements of a notebook that may be disturbed."""
    for name, argument in (("reveal", "disturbed"), ("show_measured", "disturbed"), ("beside_real", "quiet")):
        for _, call in notebook.calls(name):
            if argument in {one.arg for one in call.keywords}:
                yield given_in(call)["quiet" if argument == "quiet" else "key"]


def test_the_script_records_each_notebook_that_measures_and_the_record_names_no_other_key():
    keys = {str(one): {*asked_in(one)} for one in NOTEBOOKS if {*asked_in(one)}}
    # The second notebook of the third assignment shows the runs of the first.
    assert set(keys) - {"master-the-loader/02_design_and_repair"} == set(script.NOTEBOOKS)
    for key, run in quiet_runs().items():
        assert key in keys[run.notebook], f"python -m benchmarks.quiet_runs --again, for {key}"
        assert run.origin
    units = {
        key: question.get("unit", "") for one in NOTEBOOKS for key, (_, question) in one.questions().items()
    }
    assert all(run.unit == units[key] for key, run in quiet_runs().items() if run.value is not None)


def test_what_a_notebook_shows_of_a_measurement_is_kept_as_texts_that_can_be_read_again(tmp_path):
    patience = script.Patience(0)
    recorder = script.Recorder("n", patience)
    patience.qualities.append(Quality(0.014, 0.061, 9))
    recorder.names["reveal"](
        "a", Q_("98.8234 percent"), then=lambda: recorder.table(["x"], [[Q_("5 ms")]]), disturbed=""
    )
    recorder.names["reveal"]("told by no measurement", 3)
    show = recorder.names["show_measured"]
    show("b", lambda: recorder.table(["One", "value"], [["a part", 2]]), disturbed=LOAD)
    recorder.names["reveal"]("my-repair", 3.0, then=lambda: None, disturbed="")
    assert recorder.disturbed == [f"b: {LOAD}"]
    record = tmp_path / "runs.json"
    record.write_text(json.dumps(recorder.runs))
    runs = quiet_runs(record)
    assert {*runs} == {"a", "b", "my-repair"}
    assert (runs["a"].value, runs["a"].unit, runs["my-repair"].value) == (98.82, "%", None)
    assert runs["a"].tables == (QuietTable(headers=["x"], rows=[["5 ms"]]),)
    assert runs["b"].tables[0].rows == [["a part", "2"]]
    assert "used at most 1 % of the cores, and its parts differed by 6 % or less" in runs["a"].origin
