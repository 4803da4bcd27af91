"""Records of which nothing else is known, and how a verdict is scored."""

import pytest

from benchmarks import black_boxes
from starvelab.lesson.checks import WrongAnswer
from starvelab.lesson.course.decisions import ENOUGH, log_score, most_likely, record, total

EVEN = dict.fromkeys(["storage", "CPU", "link", "accelerator"], 0.25)


def test_the_records_are_those_of_the_pipelines():
    assert {box: record(box) for box in black_boxes.BOXES} == black_boxes.records()


@pytest.mark.parametrize("box", black_boxes.BOXES)
def test_what_binds_in_a_box_sets_its_pace(box):
    binds, pipeline = black_boxes.BOXES[box]
    faster = {
        "storage": {"storage": None},
        "CPU": {"dataset.cpu_time": "1 ms"},
        "link": {"link": None},
        "accelerator": {"hardware": "1 ms"},
    }
    rate = pipeline.solve().throughput
    gains = {name: pipeline.solve(change).throughput / rate for name, change in faster.items()}
    assert [name for name, gain in gains.items() if gain > 1.01] == [binds]


def test_the_score_is_nothing_for_a_guess_and_all_for_enough():
    assert log_score(EVEN, "CPU") == 0
    assert log_score(EVEN | {"CPU": 0.1, "storage": 0.4}, "CPU") == 0
    sure = {"storage": 1 - ENOUGH, "CPU": ENOUGH, "link": 0, "accelerator": 0}
    assert log_score(sure, "CPU") == pytest.approx(1)
    assert log_score({"storage": 0, "CPU": 1, "link": 0, "accelerator": 0}, "CPU") == 1


def test_nobody_earns_more_on_average_than_who_says_what_they_believe():
    def mean_score(said, believed=0.6):
        return sum(
            share * log_score({"storage": said, "CPU": 1 - said, "link": 0, "accelerator": 0}, truth)
            for truth, share in (("storage", believed), ("CPU", 1 - believed))
        )

    assert max((mean_score(said / 100), said) for said in range(26, 75))[1] == 60


def test_the_most_likely_is_one_and_the_total_is_that_of_numbers_of_any_size():
    assert total(dict.fromkeys(EVEN, 25)) == 100
    assert most_likely(EVEN | {"CPU": 0.3, "link": 0.2}) == "CPU"
    with pytest.raises(WrongAnswer, match=r"got 0\.3 for storage and CPU\. Decide, if only by little\."):
        most_likely({"storage": 0.3, "CPU": 0.3, "link": 0.2, "accelerator": 0.2})


@pytest.mark.parametrize(("given", "said"), [
    ({"CPU": 1}, r"gives a probability to each of storage, CPU, .*, got 'CPU'\. Write a dict with"),
    ("CPU", r"got 'CPU'\. Write a dict with these four keys\."),
    (EVEN | {"CPU": "high"}, r"A probability is a number, got 'high' for CPU\. Write 0\.7 for 70 %\."),
    (EVEN | {"CPU": True}, r"A probability is a number, got True for CPU\."),
    (EVEN | {"CPU": -0.25}, r"A probability lies from 0 to 1, got -0\.25 for CPU\."),
    (EVEN | {"CPU": 0.5}, r"The four probabilities add up to 1, got 1\.25\. Divide each by their sum\."),
])  # fmt: skip
def test_what_is_no_verdict_is_told_so(given, said):
    with pytest.raises(WrongAnswer, match=said):
        log_score(given, "CPU")
