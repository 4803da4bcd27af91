"""JupyterLab on a hub in Chromium: what a student and a teacher press on the page docs/jupyterhub.md."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.browser.lab_in_browser import CHROMIUM_ARGUMENTS, find_chromium, lock_every_prediction

MILLISECONDS = 120_000  # that the page of a hub may take


@dataclass(frozen=True)
class HubInBrowser:
    """A browser, and a hub that it can reach."""

    browser: Browser
    address: str
    password: str

    @classmethod
    @contextmanager
    def opened(cls, address: str, password: str) -> "Iterator[HubInBrowser]":
        """Start a browser, for as long as it is used."""
        expect.set_options(timeout=MILLISECONDS)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_chromium(), args=list(CHROMIUM_ARGUMENTS)
            )
            try:
                yield cls(browser, address, password)
            finally:
                browser.close()

    def log_in(self, name: str) -> "Desk":
        """Log in as an account, and wait for its JupyterLab."""
        page = self.browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(MILLISECONDS)
        page.goto(f"{self.address}/hub/login")
        page.fill("input[name=username]", name)
        page.fill("input[name=password]", self.password)
        page.click("#login_submit")
        page.wait_for_selector(".lm-MenuBar-itemLabel")
        return Desk(page, f"{self.address}/user/{name}")


@dataclass(frozen=True)
class Desk:
    """The JupyterLab of one account."""

    page: Page
    address: str

    def choose(self, menu: str, item: str) -> None:
        """Choose an item of a menu."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text=menu).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(item, exact=True).click()

    def row_of(self, assignment: str, within: str) -> Locator:
        """The row of an assignment in a part of nbgrader's list, which is opened anew."""
        self.page.goto(f"{self.address}/lab/workspaces/list?reset")
        self.choose("Nbgrader", "Assignment List")
        return self.page.locator(f"#{within}_assignments_list .list_item", has_text=assignment).first

    def fetch(self, assignment: str) -> None:
        """Fetch an assignment."""
        self.row_of(assignment, "fetched").page.get_by_role("button", name="Fetch", exact=True).click()
        expect(self.page.get_by_role("button", name="Submit", exact=True)).to_be_visible()

    def submit(self, assignment: str) -> None:
        """Submit what stands in the folder of an assignment."""
        self.row_of(assignment, "fetched").page.get_by_role("button", name="Submit", exact=True).click()
        self.accept()

    def fetch_feedback(self, assignment: str) -> None:
        """Fetch the pages of the last submission."""
        self.row_of(assignment, "submitted").page.get_by_role("button", name="Fetch Feedback").first.click()
        expect(self.page.get_by_text("(view feedback)").first).to_be_visible()

    def accept(self) -> None:
        """Accept each dialog that comes, and wait until there is none."""
        self.page.wait_for_timeout(2000)
        for _ in range(self.page.locator(".jp-Dialog .jp-mod-accept").count()):
            self.page.locator(".jp-Dialog .jp-mod-accept").first.click()
        expect(self.page.locator(".jp-Dialog")).to_have_count(0)

    def work_through(self, assignment: str, notebook: str) -> str:
        """Run a notebook, lock all its predictions in the widgets, save and validate it; what that says."""
        self.page.goto(f"{self.address}/lab/workspaces/work/tree/{assignment}/{notebook}.ipynb?reset")
        self.run_all()
        lock_every_prediction(self.page)
        self.run_all()
        self.page.get_by_role("button", name="Validate").click()
        dialog = self.page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("notebook", timeout=2 * MILLISECONDS)
        text = dialog.inner_text()
        self.accept()
        return text

    def run_all(self) -> None:
        """Run all cells, and wait until the last one has run."""
        expect(self.page.locator(".jp-Notebook-cell").first).to_be_visible()
        self.accept()  # the kernel, if it is asked for
        expect(self.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_visible()
        self.choose("Run", "Run All Cells")
        self.page.wait_for_timeout(3000)
        expect(self.page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0)

    def mark_in_formgrader(self, assignment: str, notebook: str, points: float) -> None:
        """Give points for the first explanation of the first submission of a notebook."""
        self.page.goto(f"{self.address}/formgrader/gradebook/{assignment}/{notebook}")
        self.page.locator("tbody tr td.name a").first.click()
        field = self.page.locator("input.score").last
        expect(field).to_be_visible()
        self.page.wait_for_load_state("networkidle")  # its scripts save what is typed
        field.fill(f"{points:g}")
        with self.page.expect_response(lambda reply: reply.request.method == "PUT"):
            field.blur()
