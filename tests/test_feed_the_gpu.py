"""What the page Feed the GPU says is so, and it is small and asks nobody; tests/browser plays it."""

from __future__ import annotations

import re

import pytest

from starvelab import Datasets
from starvelab.lesson.widgets._moving import SCRIPT
from starvelab.model.stages.data import hit_share
from tests.documents import DOCS, load

FOLDER = DOCS / "_extra/feed-the-gpu"
FILES = sorted(FOLDER.iterdir())


@pytest.fixture(scope="module")
def feed():
    return load("feed_the_gpu")


def test_the_whole_page_has_less_than_75_kilobytes_and_loads_nothing_from_elsewhere():
    assert {path.name for path in FILES} == {"index.html", "page.css", "page.js", "tables.js"}
    assert sum(path.stat().st_size for path in [*FILES, SCRIPT]) < 75_000
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?:|//\w+\.\w|fetch\(", text), path.name
        assert set(re.findall(r"import .*", text)) <= {'import { mount, solve } from "../moving.js";'}


def test_no_number_stands_in_the_page_itself():
    html = (FOLDER / "index.html").read_text(encoding="utf-8")
    body = re.sub(r"<svg.*?</svg>|<[^>]*>", " ", html.partition("<body>")[2], flags=re.DOTALL)
    assert not re.search(r"\d", body)


def test_all_but_the_last_scenario_starve_at_the_start_and_there_nothing_needs_doing(feed):
    shares, dollars = [], []
    for scenario in feed.SCENARIOS:
        start = scenario.start
        values = {name: getattr(start, name) for name in feed.GRID}
        answer = feed.solve(scenario, (start.drive, start.decode), values)
        shares.append(float(answer.step.utilization))
        dollars.append(float(answer.dollars))
    assert all(share < feed.GOAL for share in shares[:-1])
    assert shares[-1] >= feed.GOAL
    assert dollars[-1] == feed.cheapest(feed.SCENARIOS[-1])[1]


def test_each_setting_of_a_scenario_is_one_that_the_page_offers(feed):
    assert len({scenario.key for scenario in feed.SCENARIOS}) == 5
    for scenario in feed.SCENARIOS:
        for setting in (scenario.start, feed.cheapest(scenario)[0]):
            assert (setting.drive, setting.decode) in scenario.choices
            assert all(getattr(setting, name) in values for name, values in feed.GRID.items())


def test_what_the_stories_say_is_so(feed):
    first, nearly, huge, hungriest, words = feed.SCENARIOS
    assert "eight cores" in first.story
    assert first.start.cores == 8
    assert "cheapest drive" in nearly.story
    prices = {path: table["price"] for path, table in feed.tables()["drives"].items()}
    assert min(prices, key=prices.get) == nearly.start.drive
    assert "larger than a thousand photos" in huge.story
    assert Datasets.KiTS19.sample_size > 1000 * Datasets.ImageNet.sample_size
    assert huge.dataset.samples < 1000
    assert "the fastest GPU" in hungriest.story
    peaks = {scenario.hardware.peak_fp16_dense: scenario for scenario in feed.SCENARIOS}
    assert peaks[max(peaks)] is hungriest
    assert "tokens" in words.story
    # The page's own text: half of the data in memory serves less than half of the reads.
    assert hit_share(0.5) < 0.5


def test_the_link_to_the_page_leads_to_it():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    (target,) = re.findall(r'<a href="([\w/.-]*feed-the-gpu[\w/.-]*)">', index)
    assert (DOCS / "_extra" / target).is_file()
    assert 'html_extra_path = ["_extra", "../starvelab/lesson/widgets/moving.js"]' in (
        DOCS / "conf.py"
    ).read_text(encoding="utf-8")
