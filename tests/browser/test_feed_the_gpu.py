"""Feed the GPU, a page of the site without Python: its numbers are the package's, and anybody can play it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from types import ModuleType

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from starvelab import Q_
from starvelab.lesson.widgets._moving import SCRIPT
from starvelab.model.prices import price_age
from tests.documents import DOCS, load

SITE = "http://site.test/"
PAGE = f"{SITE}feed-the-gpu/index.html"
SETTINGS = 10_000
# What the page calls what the package calls otherwise.
TIMES = ("storage", "CPU", "link", "decoder", "accelerator")


@pytest.fixture(scope="module")
def feed() -> ModuleType:
    return load("feed_the_gpu")


@pytest.fixture
def game(browser: BrowserContext) -> Iterator[Page]:
    """The page as it lies on the site, where the script of the moving picture stands beside its folder."""

    def answer(route: Route) -> None:
        name = route.request.url.partition("#")[0].removeprefix(SITE)
        route.fulfill(path=SCRIPT if name == SCRIPT.name else DOCS / "_extra" / name)

    page = browser.new_page()
    try:
        page.route(f"{SITE}**", answer)
        page.goto(PAGE)
        yield page
    finally:
        page.close()


def test_prices_say_how_old_they_are_whenever_the_page_is_opened(game):
    game.clock.set_fixed_time("2030-01-02T03:04:05Z")
    game.reload()
    a100 = "The GPU is given: NVIDIA A100 80GB SXM, $2.05 an hour (May 2026, 3 years ago)."
    assert a100 in game.locator("#given").inner_text()
    assert "of November 2026, 3 years ago" in game.locator("#given").inner_text()
    ages = game.locator("#sources tr td:nth-child(4)").all_text_contents()
    assert len(ages) > 10
    assert set(ages) == {"May 2026, 3 years ago", "November 2026, 3 years ago"}
    asked = [["2026-05-01", day] for day in ("2026-05-31", "2026-06-01", "2027-04-30", "2027-05-01")]
    assert game.evaluate(
        """async rows => {
            const { age } = await import('./page.js');
            return rows.map(([from, to]) => age(from, new Date(to)));
        }""",
        asked,
    ) == [price_age(*map(date.fromisoformat, pair)) for pair in asked]


def test_the_page_and_the_package_agree_on_10000_settings_and_on_the_cheapest(game, feed):
    random = np.random.default_rng(7)
    asked, expected, bottlenecks = [], [], []
    kinds = [(scenario, choice) for scenario in feed.SCENARIOS for choice in scenario.choices]
    for scenario, choice in kinds:
        values = {
            name: random.choice(column, -(-SETTINGS // len(kinds))) for name, column in feed.GRID.items()
        }
        answer = feed.solve(scenario, choice, values)
        step = answer.step
        columns = [step.resource_times.get(name, Q_("0 s")).m_as("s") for name in TIMES]
        columns += [step.step_time.m_as("s"), step.utilization, step.throughput.m_as("img/s")]
        columns += [answer.dollars, step.feasible]
        expected.append(np.column_stack(np.broadcast_arrays(*columns)))
        bottlenecks.extend(step.bottleneck)
        numbers = {name: column.tolist() for name, column in values.items()}
        asked.append({"scenario": scenario.key, "drive": choice[0], "decode": choice[1], **numbers})
    # As text: Playwright takes seconds for so many values, one by one.
    answered = game.evaluate(
        """async ([asked, times]) => {
            const { answer, scenarioOf } = await import('./page.js');
            return JSON.stringify(JSON.parse(asked).flatMap(
                ({scenario, drive, decode, ...columns}) => columns.batch.map((_, i) => {
                    const values = Object.entries(columns).map(([name, all]) => [name, all[i]]);
                    const setting = {drive, decode, ...Object.fromEntries(values)};
                    const found = answer(scenarioOf(scenario), setting);
                    return [...times.map(name => found.times[name] ?? 0), found.step, found.busy,
                        found.throughput, found.dollars, found.feasible, found.bottleneck];
                })));
        }""",
        [json.dumps(asked), TIMES],
    )
    found = json.loads(answered)
    assert len(found) >= SETTINGS
    assert [row.pop() for row in found] == bottlenecks
    np.testing.assert_allclose(np.array(found, dtype=float), np.concatenate(expected), rtol=5e-7, atol=1e-15)

    # The page's own rules, too, find nothing that feeds a GPU for less than the package's cheapest setting.
    cheaper = game.evaluate(
        """async () => (({ answer }) => TABLES.scenarios.map(scenario => {
            const {workers, cores, memory, batch} = TABLES.values;
            const {dollars, ...setting} = scenario.cheapest;
            const fed = found => found.feasible && found.busy >= TABLES.goal;
            const cheapest = answer(scenario, setting);
            if (!fed(cheapest) || Math.abs(cheapest.dollars - dollars) > 1e-9) return 'the cheapest itself';
            for (const drive in TABLES.drives) for (const decode in scenario.decoders)
            for (const c of cores) for (const m of memory) {
                const one = {drive, decode, cores: c, memory: m};
                if (answer(scenario, {...one, workers: 1, batch: 1}).dollars > dollars - 1e-9) continue;
                for (const w of workers) for (const b of batch)
                    if (fed(answer(scenario, {...one, workers: w, batch: b}))) return {...one, w, b};
            }
            return null;
        }))(await import('./page.js'))"""
    )
    assert cheaper == [None] * len(feed.SCENARIOS)


def test_a_scenario_is_played_by_keyboard_and_its_link_opens_the_same_settings(game, feed):
    first = feed.SCENARIOS[0]
    summary, score = game.locator("#summary"), game.locator("#score")
    expect(summary).to_contain_text("The CPU starves the GPU: it prepares a batch in")
    expect(summary).to_contain_text("is burnt while the GPU does not train.")
    expect(score).to_contain_text("not fed yet")

    # The cheapest setting, one arrow after the other.
    cheapest, _ = feed.cheapest(first)
    for name, column in feed.GRID.items():
        slider = game.get_by_role("slider", name={"memory": "Cache in memory"}.get(name, name))
        slider.focus()
        steps = column.index(getattr(cheapest, name)) - column.index(getattr(first.start, name))
        for _ in range(abs(steps)):
            game.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")
    cores = game.get_by_role("slider", name="cores")
    expect(cores).to_have_attribute("aria-valuetext", "1 core, $0.02 an hour")
    expect(summary).to_contain_text("The CPU starves the GPU: it prepares a batch in")
    rows = game.locator("#moving tbody tr")
    expect(rows).to_have_count(4)
    # The GPU's decoder works beside its kernels, and is one more resource.
    game.get_by_role("radio", name="on the CPU").focus()
    game.keyboard.press("ArrowDown")
    expect(score).to_contain_text("the cheapest there is.")
    expect(summary).to_contain_text("The GPU is fed")
    expect(rows).to_have_count(5)
    shared = game.get_by_label("Your score as text").input_value()

    game.get_by_role("radio", name=first.title).focus()
    for _ in feed.SCENARIOS[1:]:
        game.keyboard.press("ArrowRight")
    expect(score).to_have_text(
        re.compile("^Gold: 100.0 % busy .* the cheapest there is. Nothing needed doing.$")
    )
    expect(summary).to_contain_text("The GPU is fed. Nothing else takes longer than its own work.")

    game.goto(shared.splitlines()[-1])
    expect(score).to_contain_text("the cheapest there is.")
    assert game.get_by_label("Your score as text").input_value() == shared
    expect(game.get_by_role("alert")).to_be_hidden()

    game.goto(f"{PAGE}#{shared.split('#')[1].replace('cores=1&', 'cores=-1&')}")
    expect(game.get_by_role("alert")).to_have_text(
        "This link cannot be opened. It says cores -1, which this scenario does not offer. "
        "These are the starting settings of “The first bite”."
    )
    expect(cores).to_have_attribute("aria-valuetext", "8 cores, $0.19 an hour")
    for wrong, why in (
        ("scenario=<b>x</b>", "It names no scenario of this page."),
        ("scenario=words", "It does not say a value for workers."),
        ("scenario=words&price=0", "It names price, and this page has no such setting."),
        ("scenario=words&workers=1&cores=1&memory=0&drive=__proto__", "It says drive __proto__, which"),
    ):
        game.goto(f"{PAGE}#{wrong}")
        expect(game.get_by_role("alert")).to_contain_text(f"This link cannot be opened. {why}")

    # A phone has one column, and everything is in it; in the dark the page is dark.
    game.set_viewport_size({"width": 390, "height": 844})
    game.emulate_media(color_scheme="dark")
    wide, columns, background, unnamed = game.evaluate(
        """() => [
            Math.max(...[...document.querySelectorAll('body *')].filter(one => !one.closest('.wide, .smoke'))
                .map(one => one.getBoundingClientRect().right)),
            getComputedStyle(document.getElementById('game')).gridTemplateColumns.split(' ').length,
            getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number),
            [...document.querySelectorAll('input, textarea')].filter(one => !one.labels.length).length,
        ]"""
    )
    assert wide <= 390
    assert columns == 1
    assert max(background) < 60
    assert unnamed == 0
