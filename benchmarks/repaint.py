"""From a moved slider to the repainted picture, in milliseconds, in a real JupyterLab and a real Chromium.

It measures an explorer of the lab as learners use it. It asserts nothing: the figures depend on the machine.

    python -m benchmarks.repaint
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from starvelab.show import table
from tests.browser.lab_in_browser import (
    OpenNotebook,
    chromium,
    jupyterlab,
    open_notebook,
    window,
    write_notebook,
)

from .report import options
from .results import save

WARM_UP = 10

NOTEBOOK = """from starvelab import Hardware, Models, Pipeline
from starvelab.widgets import explore
explore(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8),
        batch_size=(1, 1024), workers=(1, 64))"""

# Runs in the page. The clock starts before the key that moves the slider, and stops in the first task after
# the frame that shows the new picture: the mutation is seen, a frame is asked for, its paint has been sent.
MOVE_AND_WAIT = """async ([moves, pause]) => {
    const box = document.querySelector('.starvelab-box');
    const handle = box.querySelector('[role=slider][aria-label="batch size"]');
    const painted = () => new Promise(done => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = done;
        channel.port2.postMessage(null);
    }));
    const changed = () => new Promise(done => {
        const watcher = new MutationObserver(records => {
            if (!records.some(record => [...record.addedNodes].some(node => node.nodeName === 'svg'))) return;
            watcher.disconnect();
            done();
        });
        watcher.observe(box, {childList: true, subtree: true});
    });
    handle.focus();
    const times = [];
    for (let move = 0; move < moves; move++) {
        const key = move % 40 < 20 ? 'ArrowRight' : 'ArrowLeft';
        const redrawn = changed();
        const start = performance.now();
        handle.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
        await redrawn;
        await painted();
        times.push(performance.now() - start);
        await new Promise(done => setTimeout(done, pause));
    }
    return times;
}"""

# Keeps the time of every change of the picture, so that the last one can be compared with the last move.
WATCH_THE_PICTURE = """() => {
    window.pictureTimes = [];
    new MutationObserver(records => {
        if (records.some(record => [...record.addedNodes].some(node => node.nodeName === 'svg')))
            window.pictureTimes.push(performance.now());
    }).observe(document.querySelector('.starvelab-box'), {childList: true, subtree: true});
}"""


def repaint_times(notebook: OpenNotebook, moves: int) -> np.ndarray:
    """Milliseconds from each of some single moves to the repaint it causes."""
    notebook.page.evaluate(MOVE_AND_WAIT, [min(WARM_UP, moves), 30])
    return np.array(notebook.page.evaluate(MOVE_AND_WAIT, [moves, 30]))


def lag_after_a_drag(notebook: OpenNotebook, moves: int) -> tuple[float, int]:
    """Milliseconds from the last move of a fast drag to the last picture, and how many pictures it drew."""
    page = notebook.page
    page.evaluate(WATCH_THE_PICTURE)
    place = page.get_by_role("slider", name="batch size").bounding_box()
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for move in range(1, moves + 1):
        page.mouse.move(x + move, y)
        page.wait_for_timeout(12)
    last_move = page.evaluate("() => performance.now()")
    page.mouse.up()
    page.wait_for_timeout(1500)
    pictures = page.evaluate("() => window.pictureTimes")
    return max(0.0, pictures[-1] - last_move), len(pictures)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    asked = options(__doc__, moves=(100, 3), drag_moves=(60, 5)).parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = write_notebook(Path(folder) / "notebook.ipynb", NOTEBOOK)
        with (
            jupyterlab(Path(folder)) as server,
            chromium() as browser,
            window(browser, server) as page,
            open_notebook(page, server, path) as notebook,
        ):
            notebook.run_all()
            times = repaint_times(notebook, asked.moves)
            lag, pictures = lag_after_a_drag(notebook, asked.drag_moves)
            engine = browser.browser.version
    machine = f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    software = (
        f"Python {platform.python_version()}, JupyterLab {version('jupyterlab')}, "
        f"ipywidgets {version('ipywidgets')}, Chromium {engine}"
    )
    table(["Slider to repaint", "value"], [["machine", machine], ["software", software]])
    table(
        ["what", "p50 (ms)", "p95 (ms)", "longest (ms)"],
        [[f"{asked.moves} single moves", *(round(float(np.quantile(times, q))) for q in (0.5, 0.95, 1.0))]],
    )
    save(
        "repaint",
        "explorer: slider to repaint, p50 / p95",
        f"{np.quantile(times, 0.5):.0f} / {np.quantile(times, 0.95):.0f} ms",
    )
    print(
        f"A drag of {asked.drag_moves} moves drew {pictures} pictures, "
        f"the last {lag:.0f} ms after the last move."
    )


if __name__ == "__main__":
    main()
