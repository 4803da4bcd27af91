"""A real JupyterLab and a real Chromium, driven from Python: what a learner sees, and nothing simulated.

It knows notebooks, cells, outputs and themes. It does not know what any notebook of the lab teaches.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from axe_playwright_python.sync_playwright import Axe
from nbformat.sign import NotebookNotary
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from starvelab.lesson.widgets._moving import SCRIPT
from starvelab.runtime import Runtime
from tests.documents import DOCS
from tests.file_server import free_port

REPOSITORY = Path(__file__).resolve().parents[2]
SITE = "http://site.test/"

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}

# No display, no profile of the user, no network: these keep Chromium quiet on a build machine and as root.
CHROMIUM_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip

# The settings that the lab ships: no news pop-up, and cells that stay in the page when scrolled away.
LAB_SETTINGS = REPOSITORY / "binder" / "jupyter"

# What stands where a widget should be that the page could not draw.
BROKEN_WIDGET = "Error displaying widget"

START_SECONDS = 90
ACTION_SECONDS = 60
# A kernel may take minutes to start on a busy machine; a test has five in all.
OPEN_SECONDS = 200


def find_chromium() -> str:
    """Path of the Chromium to use: the variable CHROMIUM, else the first usual name on PATH."""
    named = os.environ.get("CHROMIUM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise RuntimeError(
                f"The variable CHROMIUM must name a program, got {named!r}. Correct it, or unset it."
            )
        return found
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise RuntimeError(
        "The browser tests need Chromium, and none of chromium, chromium-browser, google-chrome is on PATH. "
        "Install one (on Debian: apt-get install chromium) or set the variable CHROMIUM to its path."
    )


@dataclass(frozen=True)
class Server:
    """A running JupyterLab: its address, the folder that it shows, and where it keeps its own data."""

    url: str
    folder: Path
    data: Path

    def trust(self, path: Path) -> None:
        """Show the outputs of a notebook that ran elsewhere as if it had run here."""
        NotebookNotary(data_dir=str(self.data)).sign(nbformat.read(path, as_version=4))


def _wait_until_up(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{url}/api/status", timeout=2).close()
            return
        except OSError:  # URLError is one: nobody listens yet
            time.sleep(0.2)
    raise RuntimeError(
        f"JupyterLab did not come up within {START_SECONDS} s. Its log ends:\n{log.read_text()[-3000:]}"
    )


@contextlib.contextmanager
def jupyterlab(folder: Path) -> Iterator[Server]:
    """A JupyterLab on `folder`, set up as `make lab` does, with nothing of the user's own."""
    with tempfile.TemporaryDirectory(prefix="starvelab-jupyter-", ignore_cleanup_errors=True) as home:
        home = Path(home)
        # Pipelines run live in tests/test_notebooks.py; here what they would find is computed.
        environment = os.environ | Runtime(clock="simulated").environment()
        environment.update(
            HOME=str(home), IPYTHONDIR=str(home / "ipython"), JUPYTER_CONFIG_DIR=str(home / "config"),
            JUPYTER_CONFIG_PATH=str(LAB_SETTINGS), JUPYTER_DATA_DIR=str(home / "data"),
            JUPYTER_RUNTIME_DIR=str(home / "runtime"), JUPYTERLAB_SETTINGS_DIR=str(home / "settings"),
            JUPYTERLAB_WORKSPACES_DIR=str(home / "workspaces"),
            PYTHONPATH=os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")])),
        )  # fmt: skip
        # A notebook that is closed while it is saved leaves a dialog, which keeps the next one out of sight.
        settings = home / "settings" / "@jupyterlab" / "docmanager-extension"
        settings.mkdir(parents=True)
        (settings / "plugin.jupyterlab-settings").write_text('{"autosave": false}', encoding="utf-8")
        port = free_port()
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
            "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
            f"--ServerApp.root_dir={folder}",
            "--IdentityProvider.token=", "--PasswordIdentityProvider.hashed_password=",
            # Its `window.jupyterapp` is how the harness asks for a command, a theme or the state of a kernel.
            "--LabApp.expose_app_in_browser=True",
            # Should whoever started it be killed, it does not stay behind.
            "--MappingKernelManager.cull_idle_timeout=600", "--ServerApp.shutdown_no_activity_timeout=900",
        ]  # fmt: skip
        log = home / "jupyterlab.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_up(url, process, log)
            yield Server(url=url, folder=folder, data=home / "data")
        finally:
            _stop(process)


def _stop(process: subprocess.Popen) -> None:
    """Ask the server to end, which ends its kernels; then make sure that nothing of it is left."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=15)
    with contextlib.suppress(ProcessLookupError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def chromium() -> Iterator[BrowserContext]:
    """A headless Chromium with an empty profile; its windows share what they have loaded of JupyterLab."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGUMENTS))
        try:
            yield browser.new_context(viewport={"width": 1200, "height": 900})
        finally:
            browser.close()


def write_notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of code cells; a source that starts with ``%% md`` becomes a Markdown cell."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for source in cells:
        if source.startswith("%% md\n"):
            notebook.cells.append(nbformat.v4.new_markdown_cell(source.removeprefix("%% md\n")))
        else:
            notebook.cells.append(nbformat.v4.new_code_cell(source))
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


@dataclass(frozen=True)
class OpenNotebook:
    """One notebook open in JupyterLab."""

    page: Page
    path: Path

    def command(self, name: str, **arguments: object) -> None:
        """Run one of JupyterLab's commands and wait for it to end."""
        self.page.evaluate(
            "([name, args]) => jupyterapp.commands.execute(name, args).then(() => null)", [name, arguments]
        )

    def run_all(self, *, timeout: float = 180) -> None:
        """Run every cell, as Run All does, and wait until the kernel is idle and the widgets are drawn."""
        self.command("notebook:run-all-cells")
        self.wait_until_idle(timeout=timeout)

    def restart_kernel(self) -> None:
        """Restart the kernel: nothing that Python remembered survives, the files do."""
        self.page.evaluate(
            """async () => {
                const panel = jupyterapp.shell.currentWidget;
                await panel.sessionContext.session.kernel.restart();
            }"""
        )
        self.wait_until_idle()

    def draw_outputs_again(self) -> None:
        """Draw every output anew, as the notebook has it."""
        self.page.evaluate(
            """() => jupyterapp.shell.currentWidget.content.widgets
                .map(cell => cell.outputArea?.model)
                .forEach(model => model?.fromJSON(model.toJSON()))"""
        )
        self.wait_until_idle()

    def wait_until_idle(self, *, timeout: float = 60) -> None:
        """Wait until the kernel is idle, no cell waits its turn, and no widget is still being made."""
        self.page.wait_for_function(
            """() => {
                const panel = jupyterapp.shell.currentWidget;
                const kernel = panel?.sessionContext?.session?.kernel;
                const waiting = panel?.content.widgets.some(cell => cell.promptNode?.textContent.includes('*')
                    || cell.node.querySelector('.jp-InputPrompt')?.textContent.includes('*'));
                return kernel?.status === 'idle' && kernel.connectionStatus === 'connected' && !waiting
                    && !panel.node.textContent.includes('Loading widget...');
            }""",
            timeout=timeout * 1000,
            polling=100,  # ms: to look at a long notebook in each frame holds up what is waited for
        )
        # Widgets are drawn from messages that arrive after the kernel says idle: two frames later they stand.
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )
        self.page.wait_for_timeout(300)

    def cells(self) -> list[dict]:
        """Every cell as it stands: type, source, execution count and outputs."""
        return self.page.evaluate(
            """() => jupyterapp.shell.currentWidget.content.widgets.map(cell => ({
                type: cell.model.type,
                source: cell.model.sharedModel.getSource(),
                count: cell.model.executionCount ?? null,
                outputs: cell.model.outputs ? cell.model.outputs.toJSON() : [],
            }))"""
        )

    def cells_not_run(self) -> list[str]:
        """Sources of the code cells that have text and have not run."""
        return [
            cell["source"]
            for cell in self.cells()
            if cell["type"] == "code" and cell["source"].strip() and not cell["count"]
        ]

    def errors(self) -> list[str]:
        """One line per error output: the error and the first line of the cell that raised it."""
        return [
            f"{output['ename']}: {output['evalue']}  (in the cell {cell['source'].splitlines()[0]!r})"
            for cell in self.cells()
            for output in cell["outputs"]
            if output["output_type"] == "error"
        ]

    def cell(self, index: int) -> Locator:
        """The cell at `index`, counted from 0."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def set_theme(self, theme: str) -> None:
        """Switch to the "light" or the "dark" theme and wait until it is applied."""
        self.command("apputils:change-theme", theme=THEMES[theme])
        # Its colors may come after its name, and come by degrees.
        self.page.wait_for_function(
            """light => {
                const paper = getComputedStyle(document.body).getPropertyValue('--jp-layout-color0').trim();
                return (paper === 'white') === light && document.body.dataset.jpThemeLight === String(light)
                    && !document.getAnimations().some(one => one instanceof CSSTransition);
            }""",
            arg=theme == "light",
        )
        self.page.wait_for_timeout(300)

    def pictures_without_words(self) -> list[str]:
        """Displayed images without alternative text, and SVG pictures without role="img" and a title.

        JupyterLab fills a missing text with "Image", which says nothing. Its own icons (in prompts and
        toolbars) are not outputs and are left alone.
        """
        return self.page.evaluate(
            """() => {
                const shown = selector => [...document.querySelectorAll(
                    `.jp-OutputArea-output ${selector}, .jp-MarkdownOutput ${selector}`)];
                const outermost = shown('svg').filter(svg => !svg.parentElement.closest('svg'));
                return [
                    ...shown('img').filter(image => ['', 'image'].includes(image.alt.trim().toLowerCase())),
                    ...outermost.filter(svg => svg.getAttribute('role') !== 'img'
                        || !(svg.querySelector(':scope > title')?.textContent || '').trim()),
                ].map(node => node.outerHTML.slice(0, 200));
            }"""
        )

    def faint_texts(self) -> list[str]:
        """Texts in outputs whose contrast with what lies behind them is under 4.5:1, the rule of WCAG AA.

        Disabled controls are exempt, as they are there. The colours of a traceback are JupyterLab's own.
        """
        return self.page.evaluate(
            """() => {
                const parse = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
                const luminance = ([r, g, b]) => {
                    const [R, G, B] = [r, g, b].map(c => c / 255)
                        .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
                    return 0.2126 * R + 0.7152 * G + 0.0722 * B;
                };
                const behind = node => {
                    for (let at = node; at; at = at.parentElement) {
                        const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
                        if (a > 0.5) return [r, g, b];
                    }
                    return [255, 255, 255];
                };
                const found = [];
                for (const output of document.querySelectorAll('.jp-OutputArea-output')) {
                    const walker = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
                    while (walker.nextNode()) {
                        const text = walker.currentNode.textContent.trim();
                        const node = walker.currentNode.parentElement;
                        if (!text || !node.checkVisibility()) continue;
                        // A number of the moving picture stands on its batch, in the ink of a resource.
                        if (node.closest('[disabled], title, desc, style, [class*=ansi-], .token')) continue;
                        const style = getComputedStyle(node);
                        const ink = parse(node.closest('svg') ? style.fill : style.color);
                        const [light, dark] = [luminance(ink), luminance(behind(node))].sort((a, b) => b - a);
                        const ratio = (light + 0.05) / (dark + 0.05);
                        if (ratio < 4.5) found.push(`${text.slice(0, 60)} (${ratio.toFixed(1)}:1)`);
                    }
                }
                return found;
            }"""
        )


def lock_every_prediction(page: Page) -> None:
    """Answer whatever is still open with the first choice or a number, and lock it."""
    # Not all at once: a lock wakes reveals, whose explorers are boxes too, and then each later box has
    # another place.
    unlocked = page.locator(".starvelab-box").filter(
        has=page.get_by_role("button", name="Lock my prediction")
    )
    for left in range(unlocked.count(), 0, -1):
        box = unlocked.first
        if box.get_by_role("radio").count():
            box.get_by_role("radio").first.click()
        else:
            box.get_by_role("textbox").first.fill("10")
        box.get_by_role("button", name="Lock my prediction").click()
        expect(unlocked).to_have_count(left - 1)


def serious(page: Page, *, within: str | None = None, contrast: bool = True) -> list[str]:
    """What axe-core finds serious or critical in a page, or in the parts of it that a selector names.

    In a notebook to look at contrast takes it longest, and `faint_texts` looks at that more strictly.
    """
    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": contrast}}}
    found = Axe().run(page, within, options).response["violations"]
    return [one["id"] for one in found if one["impact"] in ("serious", "critical")]


@contextlib.contextmanager
def page_of_site(browser: BrowserContext, address: str, **options: object) -> Iterator[Page]:
    """A page of the site as it lies there, beside the script of the moving picture; nobody was there yet."""

    def answer(route: Route) -> None:
        asked = route.request.url.partition("#")[0].removeprefix(SITE)
        route.fulfill(path=SCRIPT if asked == SCRIPT.name else DOCS / "_extra" / asked)

    context = browser.browser.new_context(**options)
    try:
        page = context.new_page()
        page.route(f"{SITE}**", answer)
        page.goto(address)
        yield page
    finally:
        context.close()


@contextlib.contextmanager
def window(browser: BrowserContext, server: Server) -> Iterator[Page]:
    """JupyterLab in a window of its own, for one notebook after the other: to load it takes longest."""
    page = browser.new_page()
    page.set_default_timeout(ACTION_SECONDS * 1000)
    try:
        page.goto(f"{server.url}/lab")
        page.wait_for_function("() => Boolean(window.jupyterapp)")
        # A notebook has the whole width, as in a tab of its own.
        page.evaluate(
            """async () => {
                await jupyterapp.restored;
                jupyterapp.shell.mode = 'single-document';
                jupyterapp.shell.collapseLeft();
            }"""
        )
        yield page
    finally:
        page.close()


@contextlib.contextmanager
def open_notebook(page: Page, server: Server, path: Path) -> Iterator[OpenNotebook]:
    """Open the notebook at `path` (inside the server's folder) alone in a window, its kernel ready."""
    notebook = OpenNotebook(page=page, path=path)
    inner = path.relative_to(server.folder).as_posix()
    # One that is behind another window draws nothing, and is given no focus.
    page.bring_to_front()
    try:
        page.evaluate(
            """async path => {
                for (const left of [...jupyterapp.shell.widgets('main')]) left.dispose();
                const open = {path, factory: 'Notebook'};
                window.opened = await jupyterapp.commands.execute('docmanager:open', open);
            }""",
            inner,
        )
        try:
            page.wait_for_function(
                """() => {
                    // What is left of another notebook, or a dialog, may have taken its place in front.
                    const isInFront = jupyterapp.shell.currentWidget === opened;
                    if (!isInFront) jupyterapp.shell.activateById(opened.id);
                    const kernel = opened.sessionContext.session?.kernel;
                    return isInFront && kernel && opened.content.widgets.length;
                }""",
                timeout=OPEN_SECONDS * 1000,
            )
            notebook.wait_until_idle(timeout=OPEN_SECONDS)
        except PlaywrightTimeoutError as error:
            seen = page.locator(".jp-Dialog, .jp-NotebookPanel-toolbar").all_inner_texts()
            raise RuntimeError(f"{inner} did not open in {OPEN_SECONDS} s. The page shows {seen}.") from error
        yield notebook
    finally:
        # Without saving, which would ask.
        with contextlib.suppress(Exception):
            page.evaluate(
                """async () => {
                    await opened.sessionContext.shutdown();
                    opened.dispose();
                }"""
            )
