"""Samples of a stack say at which line a thread is, also while it keeps Python's lock."""

import pytest

from starvelab_doctor.watching.stack_samples import Sample, SampleFile, read_samples

from .planted_lines import sampled


@pytest.mark.programs
def test_the_share_of_each_line_is_near_the_true_one():
    for _ in range(4):  # the machine may do something else meanwhile
        true, seen = sampled(0.015, 3.0)  # shorter lines: see benchmarks.sampler
        if max(abs(true[name] - seen[name]) for name in true) <= 0.1:
            return
    pytest.fail(f"true {true}, seen {seen}")


def test_what_is_written_is_read_back_and_a_line_that_is_being_written_is_left_out(tmp_path):
    file = SampleFile(tmp_path / "0-1-2.samples")
    file.add(1.0, 0.02, "dataset", None)
    file.flush(threads=3)
    file.add(2.0, 0.03, "collate", None)
    file.add(3.0, 0.03, "dataset", None)
    file.flush(threads=4, pauses=0.5)
    with file.path.open("a") as partly:
        partly.write('{"keys": [[')
    samples, more = read_samples(file.path)
    assert samples == [
        Sample(1.0, 0.02, "dataset", None),
        Sample(2.0, 0.03, "collate", None),
        Sample(3.0, 0.03, "dataset", None),
    ]
    assert more == {"threads": 4, "pauses": 0.5}


def test_a_file_whose_folder_is_gone_disturbs_nobody(tmp_path):
    file = SampleFile(tmp_path / "gone" / "0-1-2.samples")
    file.add(1.0, 0.02, "dataset", None)
    file.flush()
    assert not file.path.exists()
