"""Feed the GPU, a page of the site without Python: its numbers are the package's, and anybody can play it."""

import json
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from starvelab import Q_
from tests.browser.lab_in_browser import SITE, page_of_site, serious
from tests.documents import DOCS, load

PAGE = f"{SITE}feed-the-gpu/index.html"
SETTINGS = 10_000
# What the page calls what the package calls otherwise.
TIMES = ("storage", "CPU", "link", "decoder", "accelerator")


@pytest.fixture(scope="module")
def feed() -> ModuleType:
    return load("feed_the_gpu")


@pytest.fixture
def game(browser: BrowserContext) -> Iterator[Page]:
    with page_of_site(browser, PAGE) as page:
        yield page


def test_the_page_and_the_package_agree_on_10000_settings_and_on_the_cheapest(game, feed):
    random = np.random.default_rng(7)
    asked, expected, bottlenecks = [], [], []
    kinds = [(place, choice) for place, one in enumerate(feed.WORKLOADS) for choice in one.choices]
    for place, choice in kinds:
        values = {
            name: random.choice(column, -(-SETTINGS // len(kinds))) for name, column in feed.GRID.items()
        }
        answer = feed.solve(feed.WORKLOADS[place], choice, values)
        step = answer.step
        columns = [step.resource_times.get(name, Q_("0 s")).m_as("s") for name in TIMES]
        columns += [step.step_time.m_as("s"), step.utilization, step.throughput.m_as("img/s")]
        columns += [answer.dollars, answer.cost, step.feasible]
        expected.append(np.column_stack(np.broadcast_arrays(*columns)))
        bottlenecks.extend(step.bottleneck)
        numbers = {name: column.tolist() for name, column in values.items()}
        asked.append({"place": place, "drive": choice[0], "decode": choice[1], **numbers})
    # As text: Playwright takes seconds for so many values, one by one.
    answered = game.evaluate(
        """async ([asked, times]) => {
            const { answer } = await import('./page.js');
            return JSON.stringify(JSON.parse(asked).flatMap(
                ({place, drive, decode, ...columns}) => columns.batch.map((_, i) => {
                    const values = Object.entries(columns).map(([name, all]) => [name, all[i]]);
                    const setting = {drive, decode, ...Object.fromEntries(values)};
                    const found = answer(TABLES.workloads[place], setting);
                    return [...times.map(name => found.times[name] ?? 0), found.step, found.busy,
                        found.throughput, found.dollars, found.cost, found.feasible, found.bottleneck];
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
        """async () => (({ answer }) => TABLES.workloads.map(scenario => {
            const {workers, cores, memory, batch} = TABLES.values;
            const {cost, ...setting} = scenario.cheapest;
            const fed = found => found.feasible && found.busy >= TABLES.goal;
            const cheapest = answer(scenario, setting);
            if (!fed(cheapest) || Math.abs(cheapest.cost - cost) > 1e-9) return 'the cheapest itself';
            for (const drive in TABLES.drives) for (const decode in scenario.decoders)
            for (const c of cores) for (const m of memory) {
                const one = {drive, decode, cores: c, memory: m};
                if (answer(scenario, {...one, workers: 1, batch: 1}).dollars > cost - 1e-9) continue;
                for (const w of workers) for (const b of batch) {
                    const found = answer(scenario, {...one, workers: w, batch: b});
                    if (fed(found) && found.cost < cost - 1e-9) return {...one, w, b};
                }
            }
            return null;
        }))(await import('./page.js'))"""
    )
    assert cheaper == [None] * len(feed.WORKLOADS)


def lock(page: Page, guess: str) -> None:
    """Choose a guess by keyboard, and lock it."""
    page.get_by_role("radio", name=guess, exact=True).press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")


def choose(page: Page, feed: ModuleType, start: object, wanted: object) -> None:
    """Bring the host to a setting, one arrow after the other."""
    for name, column in feed.GRID.items():
        slider = page.get_by_role("slider", name={"memory": "Cache in memory"}.get(name, name))
        slider.focus()
        steps = column.index(getattr(wanted, name)) - column.index(getattr(start, name))
        for _ in range(abs(steps)):
            page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")
    for name in ("drive", "decode"):
        if getattr(start, name) != getattr(wanted, name):
            page.locator(f"[name={name}][value={getattr(wanted, name)}]").press("Space")


def test_the_guess_is_locked_before_the_picture_moves_or_says_anything(game, feed):
    moving, story = game.locator("#moving"), game.get_by_label("Your host")
    expect(game.locator("#question")).to_contain_text("The NVIDIA A100 80GB SXM waited 17.4 % of the time.")
    expect(game.get_by_role("button", name="Lock my guess")).to_be_disabled()
    expect(story).to_be_hidden()
    for answer in ("binds", "%", "waits"):
        assert answer not in moving.locator("svg").text_content()
    expect(moving.get_by_role("img")).to_have_accessible_name("Nothing moves yet")
    expect(moving.locator(".token")).to_have_count(0)
    expect(moving.get_by_role("button")).to_have_count(0)
    assert serious(game) == []

    lock(game, "more")
    expect(game.locator("#said")).to_have_text("Right. Now feed it.")
    expect(moving).to_contain_text("The workers bind: the GPU waits 81 % of the time.")
    expect(moving.locator(".token").first).to_be_attached()
    expect(game.locator("#theory")).to_be_hidden()
    # It stays locked, and the remedy is not told.
    game.reload()
    expect(game.locator("#guess")).to_be_hidden()
    expect(story).to_be_visible()
    expect(game.get_by_label("Your line: right guess", exact=True)).to_be_visible()


def test_a_host_is_repaired_by_keyboard_in_five_runs_and_its_line_is_shared(game, feed):
    first = feed.SCENARIOS[0]
    lock(game, "less")
    said, run = game.locator("#said"), game.locator("#run")
    expect(said).to_have_text("No. Now feed it.")
    expect(run).to_have_text("Run it for $6.47 an hour: 5 runs left")
    # What is chosen shows its price, and nothing else until it runs.
    cheapest, dollars = feed.cheapest(first.workload)
    choose(game, feed, first.start, cheapest)
    solved = feed.solve(
        first.workload, (cheapest.drive, cheapest.decode), {n: getattr(cheapest, n) for n in feed.GRID}
    )
    expect(run).to_have_text(f"Run it for ${float(solved.dollars):.2f} an hour: 5 runs left")
    expect(game.locator("#busy")).to_have_text("19.2 %")
    game.get_by_role("slider", name="Batch size").press("End")
    run.press("Enter")
    choose(game, feed, feed.Setting(**{**vars(cheapest), "batch": feed.BATCHES[-1]}), cheapest)
    run.press("Enter")
    expect(said).to_contain_text(f"busy, and an hour of training costs ${dollars:.2f}.")
    expect(said).to_be_focused()
    expect(game.locator("#theory")).to_contain_text(first.theory)
    expect(game.get_by_label("Your line: wrong guess, ")).to_contain_text("Gold")
    shared = game.get_by_label("Your line, with a link").input_value().splitlines()
    assert shared[0] == "Feed the GPU, The hungriest"
    assert shared[1].startswith("❌")
    assert shared[1].endswith("🟩 Gold")
    assert shared[2] == f"{PAGE}#the-hungriest"
    assert serious(game) == []
    game.get_by_role("button", name="Next puzzle").press("Enter")
    expect(game.get_by_role("radio", name=feed.SCENARIOS[1].title)).to_be_focused()
    expect(game.get_by_role("radio", name="The hungriest")).to_have_accessible_name("The hungriest Gold")


def test_giving_up_earns_nothing_and_what_was_shown_counts_no_more(game, feed):
    for scenario in feed.SCENARIOS[:2]:  # one with a GPU before it, and one without
        game.goto(f"{PAGE}#{scenario.key}")
        lock(game, "more" if scenario.before else "the link")
        game.get_by_role("button", name="Give up").press("Enter")
        expect(game.locator("#said")).to_have_text("Given up: no medal.")
        choose(game, feed, scenario.start, feed.cheapest(scenario.workload)[0])
        expect(game.locator("#run")).to_contain_text("it no longer counts")
        game.locator("#run").press("Enter")
        expect(game.locator("#said")).to_contain_text("Fed: ")
        expect(game.locator(f"#result-{scenario.key}")).to_have_text("not fed")
        assert "not fed" in game.locator("#share").input_value()


def test_where_the_launch_binds_the_picture_says_so_and_of_a_setting_that_cannot_run_nothing(game):
    game.goto(f"{PAGE}#words")
    game.reload()
    lock(game, "nothing: it is fed")
    expect(game.locator("#said")).to_have_text("Right. Run it as it is.")
    moving = game.locator("#moving")
    expect(moving.locator(".token")).not_to_have_count(0)
    for key, cannot in (("End", True), ("Home", False)):
        game.get_by_role("slider", name="Batch size").press(key)
        game.locator("#run").press("Enter")
        expect(game.locator("#said")).to_contain_text("This cannot run." if cannot else "Not fed: ")
        expect(moving.get_by_role("status")).to_be_visible(visible=not cannot)
        assert ("▲" in moving.locator("svg").text_content()) != cannot
        assert bool(moving.locator(".token").count()) != cannot
    expect(moving).to_contain_text("Nothing is slower than launching the work: the GPU waits ")


def test_a_day_has_one_puzzle_for_everybody_which_starves(game):
    game.clock.set_fixed_time("2030-01-02T03:04:05Z")
    game.goto(f"{PAGE}#2030-01-02")
    game.reload()
    expect(game.get_by_role("radio", name="Today")).to_be_checked()
    days = game.evaluate(
        """async () => {
            const { answer, daily } = await import('./page.js');
            return Array.from({length: 366}, (_, n) => {
                const key = new Date(Date.UTC(2030, 0, 2 - n)).toISOString().slice(0, 10), day = daily(key);
                if (JSON.stringify(daily(key)) !== JSON.stringify(day)) throw Error(key);
                const {busy, feasible, bottleneck} = answer(day, day.start);
                const text = JSON.stringify([day.gpu, day.model, day.start]);
                return {busy, feasible, bottleneck, theory: day.theory, text};
            });
        }"""
    )
    assert all(day["feasible"] and day["busy"] < 0.8 and day["theory"] for day in days)
    assert {day["bottleneck"] for day in days} == {"CPU", "storage", "accelerator"}
    assert len({day["text"] for day in days}) > 360
    expect(game.locator("#story")).to_contain_text("A day begins at 0:00 UTC.")
    # Tomorrow's is not to be had, and a link that names nothing says so.
    for wrong in ("2030-01-03", "2030-13-41x", "<b>x</b>", "100%", "%"):
        game.goto(f"{PAGE}#{wrong}")
        game.reload()
        alert = game.get_by_role("alert")
        expect(alert).to_have_text(
            f"This link cannot be opened: “{wrong}” is no puzzle of this page. Here is the first one."
        )


def test_a_host_that_is_as_it_was_costs_no_run(game, feed):
    lock(game, "more")
    run, said = game.locator("#run"), game.locator("#said")
    for _ in range(2):
        run.press("Enter")
        expect(said).to_have_text("This host is as it was: change something. It cost no run.")
        expect(run).to_contain_text("5 runs left")
    game.get_by_role("slider", name="workers").press("ArrowRight")
    run.press("Enter")
    expect(run).to_contain_text("4 runs left")
    run.press("Enter")
    expect(run).to_contain_text("4 runs left")


def test_opened_as_a_file_the_page_says_that_it_has_to_be_served(browser):
    page = browser.new_page()
    page.goto((DOCS / "_extra/feed-the-gpu/index.html").as_uri())
    expect(page.get_by_role("alert").filter(has_text="could not load its scripts")).to_be_visible()
    expect(page.get_by_role("alert").filter(has_text="http.server")).to_be_visible()
    expect(page.locator("#game")).to_be_hidden()  # and no button that does nothing
    expect(page.locator("header p").first).to_contain_text("Keep it busy nearly all of the time")
    page.close()


def test_a_phone_has_one_column_with_everything_in_it_and_in_the_dark_the_page_is_dark(game):
    game.set_viewport_size({"width": 390, "height": 844})
    game.emulate_media(color_scheme="dark")
    game.goto(f"{PAGE}#huge-bites")
    game.reload()
    lock(game, "storage (the drive)")
    # A step that does not fit.
    game.get_by_role("slider", name="Batch size").press("End")
    game.locator("#run").press("Enter")
    expect(game.locator("#said")).to_contain_text("This cannot run. A step needs 3,670 GB of memory")
    expect(game.locator("#busy")).to_have_text("cannot run")
    # What came of it is in view, and so is the focus: a button out of view would spend the next run.
    for seen in (game.locator("#said"), game.locator(":focus")):
        expect(seen).to_be_in_viewport(ratio=1)
    wide, overflowing, columns, background, unnamed = game.evaluate(
        """() => [
            Math.max(...[...document.querySelectorAll('body *')]
                .filter(one => !one.closest('.wide, .hidden, svg'))
                .map(one => one.getBoundingClientRect().right)),
            [...document.querySelectorAll('dd, dt, button, output')]
                .filter(one => one.scrollWidth > one.clientWidth + 1).length,
            getComputedStyle(document.getElementById('game')).gridTemplateColumns.split(' ').length,
            getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number),
            [...document.querySelectorAll('input, textarea')]
                .filter(one => !one.labels.length && !one.ariaLabel).length,
        ]"""
    )
    assert wide <= 390
    assert overflowing == 0
    assert columns == 1
    assert max(background) < 60
    assert unnamed == 0
    game.locator("#origin summary").click()
    assert serious(game) == []
