"""An instructor marks a class of five in the browser, by keyboard alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from grader.tests.essays import GIVEN_OUT, EssayClass
from starvelab_grader.commands.mark import MarkingServer
from tests.browser.lab_in_browser import ACTION_SECONDS, serious

HOSTILE = "<script>document.title = 'x'</script><img src=x onerror=\"document.title='x'\"> mine"
ANSWERS = {"ada": "Because.", "bob": HOSTILE, "cem": GIVEN_OUT, "dan": "Because.", "eve": "Since it is."}


@contextmanager
def served(marking) -> Iterator[str]:
    """The address of a marking, while the browser's own event loop has the main thread."""
    ready, addresses = threading.Event(), []

    async def serve() -> None:
        server = MarkingServer(marking)
        done = asyncio.Event()
        addresses.extend([server.address, asyncio.get_running_loop(), done])
        ready.set()
        await done.wait()
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    try:
        assert ready.wait(30)
        address, loop, done = addresses
        yield address
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()


class SlowSave:
    """A mark is saved only when the test says so.

    It is held here and not in the browser: on a busy machine a request was seen to pass `page.route` by.
    """

    def __init__(self, save: Callable[..., str]) -> None:
        self.save, self.asked, self.answers = save, threading.Event(), threading.Event()

    def __call__(self, *args, **named) -> str:
        self.asked.set()
        assert self.answers.wait(ACTION_SECONDS)
        return self.save(*args, **named)


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_a_class_is_marked_by_keyboard_alone(browser, tmp_path, monkeypatch):
    essays = EssayClass(tmp_path, ANSWERS)
    marking = essays.marking()
    order = [one.student for one in marking.answers(marking.essays[0])]
    with served(marking) as address:
        page = browser.new_page()
        page.set_viewport_size({"width": 390, "height": 800})
        page.emulate_media(color_scheme="dark")
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        title, status = page.locator("#answer-title"), page.locator("#status")
        expect(page.locator("#progress-text")).to_have_text("0 of 4 marked")
        expect(page.locator("#points")).to_be_focused()
        assert address.split("#")[1] not in page.url

        # A mark and a comment, and on; points that there are not; the answer before, and back.
        page.keyboard.press("c")
        page.keyboard.type("Say why.")
        page.keyboard.press("Escape")
        expect(status).to_have_text("Comment saved.")
        page.keyboard.type("2,5")
        monkeypatch.setattr(marking, "save", slow := SlowSave(marking.save))
        page.keyboard.press("Enter")
        assert slow.asked.wait(ACTION_SECONDS)
        # Points for the next answer, which is not shown yet: they wait for it, and for an Enter of their own.
        page.keyboard.type("3")
        page.keyboard.press("Enter")
        slow.answers.set()
        expect(status).to_contain_text("saved. Answer")  # and the next one is shown
        expect(page.locator("#points")).to_have_value("3")
        page.keyboard.press("Backspace")
        expect(page.locator("#progress-text")).to_have_text("1 of 4 marked")
        assert essays.grade(order[0]) == (None, 2.5, False, "Say why.")
        second = title.text_content()
        page.keyboard.type("9")
        page.keyboard.press("Enter")
        expect(status).to_have_text("Not saved: Points are a number from 0 to 4, such as 2; you typed '9'.")
        expect(page.locator("#points")).to_have_attribute("aria-invalid", "true")
        page.keyboard.press("Backspace")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#points")).to_have_value("2.5")
        expect(page.locator("#comment")).to_have_value("Say why.")
        page.keyboard.press("ArrowRight")
        expect(title).to_have_text(second)

        # Somebody else was faster: what they gave is kept until Enter is pressed once more.
        other = marking.read(marking.essays[0], order[1])[1]
        marking.save(marking.essays[0], order[1], other, points="1")
        page.keyboard.type("4")
        page.keyboard.press("Enter")
        expect(status).to_contain_text("Not saved: This answer or its mark has changed since it was shown")
        expect(page.locator("#answer-state")).to_contain_text("1 points")
        assert essays.grade(order[1])[1] == 1
        page.keyboard.press("Enter")
        expect(status).to_contain_text("saved. Answer")
        assert essays.grade(order[1])[1] == 4

        assert page.title() == "Marking lab", "no script of a student has run"
        assert serious(page) == []
        # Names come on demand; what was typed is saved when the page goes.
        page.keyboard.press("n")
        expect(page.locator("#all")).to_contain_text("Ada Smith (ada)")

        waits = next(one for one in order if ANSWERS[one] != GIVEN_OUT and essays.grade(one)[1] is None)
        while f"({waits})" not in (shown := title.text_content()):
            is_after = order.index(waits) > order.index(shown.split("(")[1].rstrip(")"))
            page.keyboard.press("ArrowRight" if is_after else "ArrowLeft")
            expect(title).not_to_have_text(shown)
        page.keyboard.type("3")
        page.close(run_before_unload=True)
        for _ in range(1200):
            if essays.grade(waits)[1] == 3:
                break
            threading.Event().wait(0.05)
        assert essays.grade(waits) == (None, 3, False, None)
    assert errors == []


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_lines_of_a_rubric_are_clicked(browser, tmp_path):
    essays = EssayClass(tmp_path, ANSWERS)
    marking = essays.marking()
    with served(marking) as address:
        page = browser.new_page()
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(address)
        title, status, rubric = (page.locator(f"#{name}") for name in ("answer-title", "status", "rubric li"))
        expect(title).to_have_text("Answer 1")  # it has loaded: before, there is nothing to choose from
        page.locator("#names").check()
        page.locator("#all-part summary").click()
        page.locator("#filter").fill("(eve)")
        page.locator("#all button").click()
        expect(title).to_contain_text("(eve)")

        # A line that is clicked gives its points, and so does one that is written; both can be taken back.
        rubric.first.locator("button").first.click()
        page.locator("#comment").fill("- 2 points: names the *CPU*.\n- 1 point: has a reason.")
        expect(rubric).to_have_count(2)
        for points in ("2", "3"):
            rubric.last.locator("button").first.click()
            expect(page.locator("#points")).to_have_value(points)
        page.keyboard.press("Enter")
        expect(status).to_contain_text("saved. Answer")

        # Points of lines add up as decimals.
        page.locator("#comment").fill("- 0.1 points: is legible.\n- 0.2 points: is short.\n- 1 point: is so.")
        rubric.filter(has_text="is so").locator("button").first.click()
        expect(page.locator("#points")).to_have_value("0.3")

        # Code is read as well as prose.
        page.locator("#essays").select_option("1")
        expect(page.locator("#answer .input")).to_contain_text("# once")
        assert serious(page) == []
