"""The clinic: keys that no two cases share, bounds of difficulty, scores, and what a learner sees."""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter

import pytest

from benchmarks.clinic import alike, likely_mistakes, survey
from starvelab import Q_, InputError, Pipeline, Samples, UnknownNameError, Workers, runtime
from starvelab.lesson.course import case as bounds
from starvelab.lesson.course import faults, practice
from starvelab.lesson.course.faults import FAULTS
from starvelab.lesson.course.practice import Case, clinic
from starvelab.lesson.course.why import reason
from tests.assignments import REPOSITORY
from tests.rejected import message

PAIR, SINGLE = 4, 6  # seeds of a case with two faults, and of one with one


def pages(case: Case) -> tuple[str, str, str]:
    return repr(case), case.script, case._repr_html_()


# --- what is drawn ---------------------------------------------------------------------------------------


def test_there_are_enough_faults_each_of_a_line_of_its_own():
    assert len(FAULTS) >= 25
    assert sorted(re.findall(r"{(\w+)}", faults.SCRIPT)) == sorted([*FAULTS, "batch", "side"])
    lines = [line for fault in FAULTS.values() for line in (fault.good, fault.bad) if line]
    assert max(Counter(lines).values()) == 1
    for name, fault in FAULTS.items():
        size = fault.value if fault.value is not None else fault.sizes[-1]
        for sizes in ({}, {name: size}):
            compile(by_hand(sizes, tuple(sizes)).script, f"<script with {name}>", "exec")
        assert fault.good != fault.bad, name
        assert fault.cure.endswith("."), name


@pytest.mark.programs
def test_the_difficulty_stays_within_its_bounds():
    found = survey(range(125))
    assert min(found["lost"]) >= bounds.LOST[0] - 0.005
    assert max(found["lost"]) <= bounds.LOST[1] + 0.005
    assert min(found["won"]) >= bounds.EACH_WON
    assert {len(names) for names in found["faults"]} == {1, 2}
    assert max(found["mistake"]) <= 1 - bounds.EACH_LOST
    assert {name for names in found["faults"] for name in names} == FAULTS.keys()
    assert alike(found["key"]) == 0, "no two keys are equal to three digits"


@pytest.mark.parametrize("seed", [SINGLE, PAIR])
def test_no_likely_mistake_comes_to_the_throughput_of_the_key(seed):
    case = clinic(seed)
    for changes in likely_mistakes(case).values():
        assert float(f"{case.treated(changes).throughputs[-1].m_as('sample/s'):.3g}") != case._key[-1]


def test_a_number_gives_the_same_case_again_and_another_number_another_one():
    assert pages(clinic(PAIR)) == pages(practice.own_case(PAIR)) != pages(clinic(PAIR + 1))


# --- what an answer wins back -----------------------------------------------------------------------------


def test_a_score_by_hand():
    """One worker takes 0.32 s for a batch of 8; a step takes 0.16 s, or 0.08 s in 16 bits.

    At the beginning of each epoch of 60 batches the first one is waited for, while the last step still runs.
    """
    case = by_hand({"num_workers": 1, "autocast": 0.5}, ("num_workers", "autocast"))
    broken, workers, both = (8 * 60 / (60 * step + 0.32 - step) for step in (0.32, 0.16, 0.08))
    case.guess("num_workers", "autocast")
    treatment = case.cure("num_workers", "autocast")
    rates = [rate.m_as("sample/s") for rate in treatment.throughputs]
    assert rates == pytest.approx([broken, workers, both])
    assert treatment.won == pytest.approx(
        [(workers - broken) / (both - broken), (both - workers) / (both - broken)]
    )
    assert treatment.score == pytest.approx(1)
    hidden = case.cure("autocast")
    assert hidden.score == pytest.approx(0, abs=0.01)
    assert hidden.note.startswith("autocast is a fault, and another one hides it")


def by_hand(sizes: dict[str, object], faults: tuple[str, ...]) -> Case:
    """A host of 8 cores, whose workers prepare 25 images a second each, and an accelerator with 100."""
    pipeline = Pipeline(
        batch_size=8, hardware="100 img/s", dataset=Samples(cpu_time="40 ms"), workers=Workers(8, prefetch=4)
    )
    return Case(0, {"pipeline": pipeline, "cores": 8, "batch": 8, "side": 224}, sizes, faults)


@pytest.mark.parametrize(("changes", "note"), [
    (lambda c: c.best, "All that was lost is back."),
    (lambda c: c.best[::-1], "All that was lost is back. Until {binds} is cured, the other wins less."),
    (lambda c: c.best[:1], "What bound is cured, and another fault binds now: see `evidence`"),
    (lambda c: c.best[1:], "{hidden} is a fault, and another one hides it"),
    (lambda c: likely_mistakes(c)["what looks bad"], "{harmless} looks bad, and costs next to nothing"),
    (lambda c: likely_mistakes(c)["by reflex"], "num_workers is as it should be: a change of it wins"),
])  # fmt: skip
def test_the_likeliest_mistake_is_named(changes, note):
    case = clinic(PAIR)
    binds, hidden = case.best
    harmless = likely_mistakes(case)["what looks bad"][0]
    case.guess(*case.best)
    expected = note.format(binds=binds, hidden=hidden, harmless=harmless)
    assert case.cure(*changes(case)).note.startswith(expected)


def test_a_guess_is_locked_before_any_cure_and_three_cures_are_all():
    puzzle = clinic(PAIR)
    binds, hidden = puzzle.best
    assert message(InputError, puzzle.cure, binds) == (
        f"A guess comes before a cure, and case 4 has none. Lock one first: case.guess('{binds}')."
    )
    assert message(InputError, puzzle.key) == (
        "The key is shown after a guess, and case 4 has none. Lock one first: case.guess(...)."
    )
    assert message(InputError, puzzle.guess, binds) == (
        "A guess of case 4 names 2 lines, as many as starve it, got 1. Begin with the one that binds."
    )
    assert puzzle.guess("mem", binds) == (
        f"Locked: mem, {binds}. You may try 3 cures, and then ask for the key."
    )
    assert message(InputError, puzzle.guess, binds, hidden) == (
        f"Case 4 has a locked guess, mem, {binds}. Try a cure, or take another case."
    )
    for change in ("mem", "cpus", "mem", "item"):  # the same one again counts once
        puzzle.cure(change)
    assert message(InputError, puzzle.cure, binds) == (
        "Case 4 has 3 cures between a guess and the key. 3 were tried. Ask for case.key()."
    )


def test_tools_show_what_a_change_does_only_after_it_was_tried():
    puzzle = clinic(PAIR)
    binds = puzzle.best[0]
    assert message(InputError, puzzle.evidence, binds) == (
        f"Tools show what a script does after changes that were tried, got {binds}. "
        f"Call cure('{binds}') first."
    )
    puzzle.guess(*puzzle.best)
    puzzle.cure(binds)
    assert puzzle.evidence(binds) != puzzle.evidence()


def test_the_key_ends_a_case_and_says_what_the_guess_was_worth():
    puzzle = clinic(PAIR)
    binds, hidden = puzzle.best
    puzzle.guess(binds, "mem")
    key = puzzle.key()
    assert list(key.sizes) == [binds, hidden]
    assert key.score == 1
    said = r"Your guess wins back (\d+) % of the lost throughput, and the key 100 %"
    won = re.fullmatch(said, key.summary)
    assert won
    assert 0 < int(won[1]) < 100
    assert key.note.endswith(f" {binds}: {FAULTS[binds].cure} {hidden}: {FAULTS[hidden].cure}")
    assert key.note.startswith(f"As it is, {key.reasons[0]} With {binds} cured, {key.reasons[1]} With ")
    assert message(InputError, puzzle.cure, binds) == (
        "Case 4 has 3 cures between a guess and the key. Its key has been shown. "
        "Take another case, by another number."
    )


def test_the_key_says_why_with_a_sum():
    puzzle = clinic(6)
    puzzle.guess(*puzzle.best)
    before, cured = puzzle.key().reasons
    assert before == "GPU: model 40 + host time 66 = 106 of 108 ms: each batch waits for both."
    assert cured == "GPU: model 40 of 43 ms. An epoch begins with an empty queue: 2.9 ms."


@pytest.mark.programs
def test_every_sum_of_a_key_comes_to_the_time_of_a_batch():
    """What binds, late batches and starts of epochs; what is too small is not named."""
    for seed in range(6):
        puzzle = clinic(seed)
        for count in range(puzzle.faults + 1):
            rates = puzzle.treated(puzzle.best).throughputs
            pipeline = puzzle._pipeline({*puzzle._sizes} - {*puzzle.best[:count]})
            text = reason(pipeline, Q_(puzzle._host["batch"], "sample") / rates[count])
            total = float(re.search(r"of ([\d.]+) ms", text)[1])
            named = re.search(r"(?:= )?([\d.]+) of", text)[1]
            left, added, _ = text.partition(" = ")
            if added:
                terms = re.findall(r" ([\d.]+)(?: \+|$)", left)
                assert sum(map(float, terms)) == pytest.approx(float(named)), "as it is written"
            extra = sum(map(float, re.findall(r": ([\d.]+) ms\.", text)))
            assert float(named) + extra == pytest.approx(total, rel=0.1), (seed, text)


# --- what a learner sees ----------------------------------------------------------------------------------


def test_a_script_has_each_line_that_can_be_changed_and_the_name_behind_it():
    case = clinic(PAIR)
    named = re.findall(r"# \[(\w+)\]$", case.script, re.MULTILINE)
    assert sorted(named) == sorted(case.changes)
    assert {*case._faults} <= {*named}
    compile(case.script, "<script>", "exec")


def test_evidence_after_the_cures_is_that_of_an_accelerator_that_is_fed():
    case = clinic(PAIR)
    case.guess(*case.best)
    case.cure(*case.best)
    before, after = case.evidence(), case.evidence(*case._faults)
    assert before["throughput"].m_as("img/s") == pytest.approx(case._key[-2], rel=0.005)
    assert after["throughput"].m_as("img/s") == pytest.approx(case._key[-1], rel=0.005)
    busy = "nvidia-smi: GPU busy"
    assert float(before[busy][:-2]) < 80 < float(after[busy][:-2])


def test_a_notebook_shows_script_picture_and_table_and_gives_nothing_away():
    text, script, html = pages(case := clinic(PAIR))
    assert script in text
    assert all(part in html for part in ('<svg role="img"', 'monospace">#!', "<table>"))
    for fault in case._faults:
        assert FAULTS[fault].cure not in text + html


def test_a_case_has_a_whole_number():
    for seed in (-1, 1.5, True, "7", None):
        said = f"A case has a whole number from 0, got {seed!r}. Pass for example clinic(7)."
        assert message(InputError, clinic, seed) == said


@pytest.mark.parametrize(("changes", "error", "said"), [
    ([], InputError, "A cure of case 4 changes 1 to 2 lines, as many as starve it, got 0. Name those"),
    (["mem", "cpus", "item"], InputError,
     "A cure of case 4 changes 1 to 2 lines, as many as starve it, got 3."),
    (["mem", "mem"], InputError, "Each line is changed once, got mem, mem. Name it once."),
    (["num_worker"], UnknownNameError, "Case 4 has no line 'num_worker'. Did you mean num_workers?"),
    (["packing"], UnknownNameError, "Case 4 has no line 'packing'."),  # a line that is not there
])  # fmt: skip
def test_what_cannot_be_cured(changes, error, said):
    assert message(error, clinic(PAIR).cure, *changes).startswith(said)


@pytest.mark.parametrize("mode", [runtime.Runtime(), runtime.GRADING])
def test_only_a_grader_holds_an_answer_to_the_number_that_the_course_has_given(mode, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with runtime.use(mode):
        assert practice.own_case(PAIR).seed == PAIR  # the course gives no numbers
        (tmp_path / practice.OWN_NUMBER).write_text(f"{SINGLE}\n")
        assert practice.own_case(SINGLE).seed == SINGLE
        if not mode.is_grading:
            assert practice.own_case(PAIR).seed == PAIR
            return
        assert message(InputError, practice.own_case, PAIR) == (
            "Your course has given you the number 6, and this answer is for case 4. "
            "Answer for the case of your own number."
        )


def test_the_model_answer_of_an_own_case_is_the_key_of_its_number():
    script = (REPOSITORY / "solutions" / "master-the-loader" / "own_case.py").read_text(encoding="utf-8")
    number, names = literal_eval(re.search(r"### BEGIN SOLUTION\n    return (.*)", script)[1])
    case = practice.own_case(number)
    case.guess(*names)
    assert (case.key().guessed, tuple(names)) == (1, case.best)
    assert re.search(r"A batch of \d+ takes ([\d.]+ ms)", script)[1] in case.key().reasons[0]
