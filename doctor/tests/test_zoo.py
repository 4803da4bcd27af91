"""The jobs of `doctor/zoo`: each head says what is needed, and the doctor names the cause of five."""

import pytest

from benchmarks.zoo import NOTHING, faults, under_doctor

pytest.importorskip("torch")
FAULTS = faults()
# pandas lets go of Python's lock and takes it back at once, so that a sampler hardly gets it.
PANDAS = pytest.param("frame_row_by_row", marks=pytest.mark.needs("pandas"))
RUN = (PANDAS, "iterator_each_step", "list_searched", "one_shard", "process_per_item")


@pytest.mark.parametrize("name", FAULTS)
def test_the_head_of_a_fault_says_what_is_needed_and_one_line_is_marked(name):
    fault, text = FAULTS[name], FAULTS[name].path.read_text(encoding="utf-8")
    assert all((fault.title, fault.symptom, fault.asked, fault.cause, fault.right))
    assert "/" in fault.asked  # a repository
    cured = text.count('"--fixed" in sys.argv') + text.count('"--fixed" not in sys.argv')
    assert bool(cured) is ("--fixed" in fault.title)
    assert cured or fault.right == (NOTHING,)
    assert "the training step" in text


@pytest.mark.long
@pytest.mark.programs
@pytest.mark.parametrize("name", RUN)
def test_the_doctor_names_the_cause(name):
    # On a machine where five others compute on each core, the first two of three runs may name another line.
    for _ in range(8):
        seen = under_doctor(name)
        if seen["first"] in FAULTS[name].right:
            return
    pytest.fail(f"{seen['first']}: {seen['said']}")
