"""The leaderboard, a page without Python: a link carries designs, and the page computes each again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from lab_in_browser import SITE, page_of_site, serious
from playwright.sync_api import BrowserContext, Page, expect

from starvelab.decisions import GPU_PRICES, MAX_COUNTS, Design, leaderboard

PAGE = f"{SITE}leaderboard/index.html"
GOOD = {"gpu": "A100", "gpus": 2, "cores": 39, "drives": 3}


@pytest.fixture
def board(browser: BrowserContext) -> Iterator[Page]:
    with page_of_site(browser, PAGE, viewport={"width": 390, "height": 800}) as page:
        yield page


def rows(board: Page) -> list[list[str]]:
    return [row.locator("th, td").all_text_contents() for row in board.locator("#rows tr").all()]


def test_the_page_and_the_package_agree_on_2000_designs(board):
    random = np.random.default_rng(7)
    asked = [
        Design(str(gpu), *(int(random.integers(1, most + 1)) for most in MAX_COUNTS.values()))
        for gpu in random.choice([*GPU_PRICES], 2000)
    ]
    found = board.evaluate(
        "async (asked) => { const { answer } = await import('./page.js'); return asked.map(answer); }",
        [{name: getattr(one, name) for name in GOOD} for one in asked],
    )
    assert {one.obstacle for one in asked} >= {"none", "CPU", "storage", "time"}
    assert [one["against"] for one in found] == [one.obstacle for one in asked]
    numbers = [[one["busy"], one["hours"], one["dollars"]] for one in found]
    expected = [[one.busy, one.hours.m_as("h"), one.dollars] for one in asked]
    np.testing.assert_allclose(numbers, expected, rtol=1e-9)


def test_the_link_of_a_notebook_opens_its_board_and_takes_another_design(board, capsys):
    leaderboard(GOOD, "A100 x 1, 8 cores, 1 drives (the example)", name="Käte <b>")
    address = capsys.readouterr().out.rpartition(": ")[2].strip()
    board.goto(PAGE + "#" + address.partition("#")[2])
    expect(board.locator("#rows tr")).to_have_count(2)
    good = Design(**GOOD)
    assert rows(board)[0] == [
        "Käte <b>", f"{good.dollars:.2f} USD", "2 x A100, 39 cores, 3 drives", f"{100 * good.busy:.1f} %",
        f"{good.hours.m_as('h'):.1f} h", "nothing",
    ]  # fmt: skip
    assert rows(board)[1][0::5] == ["(the example)", "the workers starve it"]
    assert "2 x A100" in board.get_by_role("img").get_attribute("aria-label")
    board.locator("#gpu").select_option("V100")
    for name, count in (("GPUs", 4), ("cores", 40), ("drives", 3)):
        board.get_by_label(name, exact=True).fill(str(count))
    board.get_by_label("your name").fill("Ada; Bob=1")
    board.get_by_label("your name").press("Enter")
    expect(board.locator("#rows tr")).to_have_count(3)
    assert "Ada; Bob=1" in [row[0] for row in rows(board)]
    # What others open is the same board, and the curve is that of whoever was added last.
    link = board.url
    board.goto("about:blank")
    board.goto(link)
    expect(board.locator("#rows tr")).to_have_count(3)
    assert "4 x V100" in board.get_by_role("img").get_attribute("aria-label")


def test_a_price_that_was_made_up_is_computed_again_and_that_is_said(board):
    board.goto(PAGE + "#A100-2-39-3=1.00=Eve;H100-9-1-1=2.00=Mallory;nonsense;A100-2-39-3.5=1=x")
    board.reload()
    assert rows(board)[0][1] == f"{Design(**GOOD).dollars:.2f} USD"
    assert board.locator("#said").text_content() == (
        "Designs that cannot be bought were left out: 3. The address gives 1 of them another price. "
        "What stands here was computed again."
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_anybody_can_read_it_on_a_phone_and_by_keyboard(board, scheme):
    board.emulate_media(color_scheme=scheme)
    board.goto(PAGE + "#A100-2-39-3=35.45=Ada")
    board.reload()
    assert serious(board) == []
    assert board.evaluate("document.documentElement.scrollWidth") <= 390
    inside = board.locator("#curve, #curve svg").evaluate_all("all => all.map(one => one.scrollWidth)")
    assert max(inside) <= 390, "the curve is seen whole, without scrolling sideways"
    sizes = "all => all.map(one => one.getBoundingClientRect().height)"
    assert min(board.locator("#curve text").evaluate_all(sizes)) >= 12, "and its numbers can be read"
    legend = board.locator("#curve p").text_content()
    assert legend.startswith("Cores of the host. Disc: 2 x A100 with 39. Ring: the lowest bill, ")
    board.locator("#drives").focus()
    board.keyboard.press("ArrowUp")
    board.keyboard.press("Enter")
    expect(board.locator("#rows tr")).to_have_count(2)
    assert re.search("1 x A100, 8 cores, 2 drives", str(rows(board)))
