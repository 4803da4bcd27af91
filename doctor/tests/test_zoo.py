"""The faults of `doctor/zoo`: each head says what is needed, and the doctor names the cause of five."""

import pytest

from benchmarks.zoo import faults, under_doctor

pytest.importorskip("torch")
FAULTS = faults()
RUN = ("archive_reopened", "iterator_each_step", "list_searched", "one_shard", "process_per_item")


@pytest.mark.parametrize("name", FAULTS)
def test_the_head_of_a_fault_says_what_is_needed_and_one_line_is_marked(name):
    fault, text = FAULTS[name], FAULTS[name].path.read_text(encoding="utf-8")
    assert all((fault.title, fault.symptom, fault.asked, fault.cause, fault.right))
    assert "/" in fault.asked  # a repository
    assert "--fixed" in fault.title
    assert text.count('"--fixed" in sys.argv') + text.count('"--fixed" not in sys.argv') >= 1
    assert "the training step" in text


@pytest.mark.long
@pytest.mark.programs
@pytest.mark.parametrize("name", RUN)
def test_the_doctor_names_the_cause(name):
    for _ in range(3):  # the machine may do something else meanwhile
        first, said = under_doctor(FAULTS[name])
        if first in FAULTS[name].right:
            return
    pytest.fail(f"{first}: {said}")
