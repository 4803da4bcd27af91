"""The score card: hits and calibration, each worked out by hand here."""

import pytest

from starvelab.lesson.widgets._progress import ScoreCard
from starvelab.prediction_file import Prediction
from starvelab.widgets import predict, reveal, scorecard


def revealed(*pairs) -> ScoreCard:
    """A score card of (confidence, hit) pairs."""
    return ScoreCard(
        tuple(
            Prediction(
                key=f"k{i}", answer="a", locked_at="t", confidence=sure, truth="a", hit=hit, revealed_at="t"
            )
            for i, (sure, hit) in enumerate(pairs)
        )
    )


def test_with_nothing_locked_or_revealed_it_says_how_to_go_on(folder):
    said = "Nothing is locked yet. Lock a prediction in a notebook of this folder: it appears here."
    assert (repr(scorecard()), scorecard()._repr_html_()) == (said, f"<p>{said}</p>")
    predict("cpu-wall", "CPU", confidence=0.7)
    card = scorecard()
    assert card.rows() == [["cpu-wall", "CPU", "70 %", "", "not revealed"]]
    assert card.sentences() == [
        "1 prediction locked, none revealed yet. Run the cells that show the answers."
    ]
    assert card.group is None
    (folder / "predictions.json").write_text("{")
    for shown in (repr(scorecard()), scorecard()._repr_html_()):
        assert "predictions.json must be JSON" in shown


def test_a_card_of_a_walk_through_the_notebooks(shown):
    predict("cpu-wall", "CPU", question="What `binds`?", choices=["CPU", "storage"], confidence=0.9)
    predict("rate", 4000, unit="img/s", confidence=0.5)
    predict("last", "no idea")
    reveal("cpu-wall", "CPU")
    reveal("rate", 21799.84)
    card = scorecard()
    assert card.rows() == [
        ["What binds?", "CPU", "90 %", "CPU", "hit"],
        ["rate", "4,000 img/s", "50 %", "21,800 img/s", "miss"],
        ["last", "no idea", "", "", "not revealed"],
    ]
    # By hand: mean confidence (0.9 + 0.5) / 2.
    assert card.group.sure == pytest.approx(0.7)
    assert card.sentences() == ["1 of 2 revealed predictions came true."]
    assert "What binds?" in repr(card)
    assert card.sentences()[0] in repr(card)
    assert "<td" in card._repr_html_()
    assert "came true" in card._repr_html_()
    reveal("rate", measured=4100)  # what was predicted was measured
    assert scorecard().rows()[1][-1] == "hit: 4,100 img/s were measured"
    assert scorecard().hits == 2


def test_nothing_is_said_of_calibration_below_five_predictions_that_say_how_sure():
    assert revealed(*[(0.9, True)] * 4).sentences() == ["4 of 4 revealed predictions came true."]
    few = revealed(*[(0.9, True)] * 4, *[(None, True)] * 4).sentences()
    assert not any("sure on average" in said for said in few)


@pytest.mark.parametrize(("sure", "hits", "count", "verdict"), [
    (0.8, 5, 10, "overconfident"),
    (0.6, 9, 10, "underconfident"),
    (0.8, 7, 10, "well matched"),
    (0.7, 7, 10, "well matched"),
    (0.5, 3, 5, "well matched"),
    # Who is right as often as they say gets all of them one time in 2.7, in 13, in 21.
    (0.87, 7, 7, "they differ, and with so few predictions chance can explain it"),
    (0.6, 5, 5, "they differ, and with so few predictions chance can explain it"),
    (0.6, 6, 6, "underconfident"),
])  # fmt: skip
def test_confidence_is_held_against_the_rate_of_hits(sure, hits, count, verdict):
    said = revealed(*((sure, i < hits) for i in range(count))).sentences()[1]
    right = f"right {100 * hits / count:.0f} % of the time: {verdict}."
    assert said == f"You were {100 * sure:.0f} % sure on average and {right}"


def test_predictions_without_confidence_count_as_hits_but_not_for_calibration():
    card = revealed(*[(0.9, True)] * 5, (None, True), (None, False))
    assert card.hits == 6
    assert card.group.sure == pytest.approx(0.9)
    assert card.sentences()[1].startswith("Where you gave a confidence, you were 90 % sure on average")


def test_a_question_stands_whole_unless_no_notebook_asks_it_and_markup_is_text(folder):
    question = (
        "Training on these images, behind eight workers and one drive: what is the smallest batch size?"
    )
    predict("j", 3, question=f"{question}\n\nThink.")
    predict("k", "<i>", question="Why " + "so long " * 90)
    card = scorecard()
    assert card.rows()[0][0] == question
    assert len(card.rows()[1][0]) <= 400
    assert card.rows()[1][0].endswith(" ...")
    assert "&lt;i&gt;" in card._repr_html_()
