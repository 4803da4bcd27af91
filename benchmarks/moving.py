"""What a frame of the moving picture costs, and how soon it follows its slider, in a real Chromium.

It asserts nothing: the figures depend on the machine.

    python -m benchmarks.moving
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from starvelab import Hardware, Links, Models, Pipeline, Storage
from starvelab.lesson.widgets._moving import SCRIPT, data_of
from starvelab.show import table
from tests.browser.lab_in_browser import chromium

from .report import options
from .results import save

PIPELINE = Pipeline(
    model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=32,
    storage=Storage.NVMe_Gen4, link=Links.PCIe4_x16,
)  # fmt: skip

# Every frame that the script asks for is timed; the slider's clock stops in the first task after the paint.
MEASURE = """async ([script, data, seconds, moves]) => {
    const { mount } = await import(URL.createObjectURL(new Blob([script], {type: 'text/javascript'})));
    const ask = window.requestAnimationFrame, frames = [], works = [], answers = [];
    window.requestAnimationFrame = act => ask(time => {
        const start = performance.now();
        act(time);
        frames.push(time);
        works.push(performance.now() - start);
    });
    const picture = mount(document.body, data);
    await new Promise(done => setTimeout(done, 1000 * seconds));
    const slider = document.querySelector('input[type=range]');
    const painted = () => new Promise(done => ask(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = done;
        channel.port2.postMessage(null);
    }));
    const count = frames.length;
    for (let move = 0; move < moves; move++) {
        await new Promise(done => setTimeout(done, 30));
        const start = performance.now();
        slider.value = (move * 7) % 64;
        slider.dispatchEvent(new Event('input'));
        await painted();
        answers.push(performance.now() - start);
    }
    picture.end();
    const between = frames.slice(1, count).map((time, i) => time - frames[i]);
    return [between, works.slice(0, count), answers];
}"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    asked = options(__doc__, seconds=(5, 1), moves=(100, 3)).parse_args(arguments)
    data = data_of(PIPELINE) | {"controls": {"workers": [*range(1, 65)]}}
    script = SCRIPT.read_text(encoding="utf-8")
    with chromium() as browser:
        page = browser.new_page()
        page.set_content('<!doctype html><body style="width:800px">')
        measured = page.evaluate(MEASURE, [script, data, asked.seconds, asked.moves])
    rows = [
        [what, *(float(np.quantile(times, share)) for share in (0.5, 0.95, 1))]
        for what, times in zip(
            ("frame to frame", "script of a frame", "slider to picture"), measured, strict=True
        )
    ]
    table(["moving picture, 32 workers", "p50 (ms)", "p95 (ms)", "longest (ms)"], rows)
    for key, (what, median, high, _) in zip(("frame", "script", "slider"), rows, strict=True):
        save(f"moving {key}", f"moving picture: {what}, p50 / p95", f"{median:.1f} / {high:.1f} ms")


if __name__ == "__main__":
    main()
