"""What the page Feed the GPU says is so, and it is small and asks nobody; tests/browser plays it."""

import re
import tomllib

import pytest
from PIL import Image

from starvelab import Datasets, Hardware
from starvelab.lesson.widgets._moving import SCRIPT
from starvelab.model.stages.data import hit_share
from tests.assignments import REPOSITORY
from tests.documents import DOCS, load

FOLDER = DOCS / "_extra/feed-the-gpu"
FILES = sorted(FOLDER.iterdir())
HTML = (FOLDER / "index.html").read_text(encoding="utf-8")
CONF = (DOCS / "conf.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def feed():
    return load("feed_the_gpu")


def test_the_whole_page_has_less_than_85_kilobytes_and_loads_nothing_from_elsewhere():
    names = {"index.html", "page.css", "page.js", "tables.js", "icon.svg"}
    assert {path.name for path in FILES} == names
    assert sum(path.stat().st_size for path in [*FILES, SCRIPT]) < 85_000
    for path in FILES:
        text = re.sub(r'<meta property="og:.*|xmlns="\S+"', "", path.read_text(encoding="utf-8"))
        assert not re.search(r"https?:|//\w+\.\w|fetch\(", text), path.name
        assert set(re.findall(r"import .*", text)) <= {'import { mount, solve } from "../moving.js";'}
    # No number stands in the page itself, and the first page leads to it.
    assert not re.search(r"\d", re.sub(r"<[^>]*>", " ", HTML.partition("<body>")[2]))
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    (target,) = set(re.findall(r'<a href="([\w/.-]*feed-the-gpu[\w/.-]*)">', index))
    assert (DOCS / "_extra" / target).is_file()
    assert 'html_extra_path = ["_extra", "_generated", "../starvelab/lesson/widgets/moving.js"]' in CONF


def test_a_link_to_the_page_has_a_picture_of_the_question_that_the_build_draws(feed, tmp_path):
    named = dict(re.findall(r'<meta (?:property|name)="([\w:]+)" content="(.*?)">', HTML))
    site = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["urls"]["Documentation"]
    assert named["og:image"] == f"{site}feed-the-gpu/link.png"
    assert named["og:url"] == f"{site}feed-the-gpu/index.html"
    assert 'draw_link(DOCS / "_generated/feed-the-gpu/link.png")' in CONF
    assert "<main>" in HTML
    drawn = tmp_path / "new" / "link.png"
    feed.draw_link(drawn)
    with Image.open(drawn) as picture:
        assert picture.size == (1200, 630)
    assert drawn.stat().st_size < 40_000


def test_all_but_the_last_scenario_starve_at_the_start_and_there_nothing_needs_doing(feed):
    *shares, last = (float(scenario.solve_start().step.utilization) for scenario in feed.SCENARIOS)
    assert all(share < feed.GOAL for share in shares)
    assert last >= feed.GOAL
    _, dollars = feed.cheapest(feed.SCENARIOS[-1].workload)
    assert float(feed.SCENARIOS[-1].solve_start().cost) <= dollars * (1 + feed.MEDALS["Gold"])
    # The newest GPU comes first, and waits more than the one before it.
    first = feed.SCENARIOS[0]
    (told,) = (scenario["before"] for scenario in feed.tables()["scenarios"] if "before" in scenario)
    assert (first.before, first.workload.hardware) == (Hardware.Cloud.A100, Hardware.Cloud.B200)
    assert shares[0] < told["busy"] - 0.3


def test_a_batch_has_its_price_so_that_the_cheapest_is_neither_the_smallest_nor_the_largest(feed):
    workload = feed.WORKLOADS[1]  # on an H100
    setting, dollars = feed.cheapest(workload)
    assert feed.BATCHES[0] < setting.batch < feed.BATCHES[-1]
    values = {name: getattr(setting, name) for name in feed.GRID}
    larger = feed.solve(workload, (setting.drive, setting.decode), values | {"batch": 4 * setting.batch})
    assert larger.step.utilization >= feed.GOAL
    # Two batches of each worker are ready: the memory of three times as many is added.
    added = 3 * 2 * setting.workers * setting.batch * 602_112 / 2**30 * feed.tables()["prices"]["memory"]
    same = feed.solve(workload, (setting.drive, setting.decode), values)
    assert float(same.cost) == pytest.approx(dollars)
    assert float(larger.dollars) == pytest.approx(float(same.dollars) + added)


def test_a_small_batch_has_its_cost_and_no_cheapest_answer_is_one(feed):
    """Each step updates all weights, whatever is in its batch."""
    for workload in feed.WORKLOADS:
        setting, dollars = feed.cheapest(workload)
        assert setting.batch >= 8, workload
        smaller = vars(setting) | {"batch": 1}
        choice = smaller.pop("drive"), smaller.pop("decode")
        assert float(feed.solve(workload, choice, smaller).cost) > dollars, workload


def test_each_setting_of_a_scenario_is_one_that_the_page_offers(feed):
    assert len({scenario.key for scenario in feed.SCENARIOS}) == 5
    offered = [(scenario.workload, scenario.start) for scenario in feed.SCENARIOS]
    for workload, setting in [*offered, *((one, feed.cheapest(one)[0]) for one in feed.WORKLOADS)]:
        assert (setting.drive, setting.decode) in workload.choices
        assert all(getattr(setting, name) in values for name, values in feed.GRID.items())


def test_what_the_stories_say_is_so(feed):
    hungriest, first, nearly, huge, words = feed.SCENARIOS
    assert "eight cores" in first.story
    assert first.start.cores == 8
    assert "cheapest drive" in nearly.story
    prices = {path: table["price"] for path, table in feed.tables()["drives"].items()}
    assert min(prices, key=prices.get) == nearly.start.drive
    assert "larger than a thousand photos" in huge.story
    assert Datasets.KiTS19.sample_size > 1000 * Datasets.ImageNet.sample_size
    assert huge.workload.dataset.samples < 1000
    assert "the fastest GPU" in hungriest.story
    peaks = {workload.hardware.peak_fp16_dense: workload.hardware for workload in feed.WORKLOADS}
    assert peaks[max(peaks)] is hungriest.workload.hardware
    assert "tokens" in words.story
    # The page's own text: half of the data in memory serves less than half of the reads.
    assert hit_share(0.5) < 0.5
