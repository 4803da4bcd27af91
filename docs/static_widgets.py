"""Show a widget on a page of the site, where no Python answers.

A picture is moved by its own script, and all else is still HTML.
A hidden cell of each copied notebook imports this. It knows the widgets of the lab by their parts only.
"""

import html
import json
from itertools import count

import anywidget
import comm
import ipywidgets

from starvelab.lesson.widgets import _progress, _report
from starvelab.lesson.widgets.keyboard import Box

# The script of the picture, seen from a page of a notebook: learners/ASSIGNMENT/NAME.html.
SCRIPT = "../../moving.js"
numbers = count(1)


def moving(picture: anywidget.AnyWidget) -> str:
    """Return a place in which the script draws the picture, which computes in the page."""
    place = f"moving-{next(numbers)}"
    data = json.dumps(picture.data).replace("<", "\\u003c")
    return (
        f'<div id="{place}"></div><script type="module">import {{ mount }} from "{SCRIPT}";'
        f'mount(document.getElementById("{place}"), {data});</script>'
    )


def still(widget: ipywidgets.Widget) -> str:
    """Return a widget as HTML that asks no kernel."""
    match widget:
        case anywidget.AnyWidget() if "data" in widget.traits():
            return moving(widget)
        case ipywidgets.HTML():
            return f"<div>{widget.value}</div>"
        case ipywidgets.RadioButtons():
            choices = (
                f'<label><input type="radio" disabled> {html.escape(str(label))}</label>'
                for label in widget._options_labels
            )
            return f'<div class="still-choices">{"".join(choices)}</div>'
        case ipywidgets.Button():
            return f"<button disabled>{html.escape(widget.description)}</button>"
        case ipywidgets.Text():
            return f'<input type="text" size="12" disabled placeholder="{html.escape(widget.placeholder)}">'
        case ipywidgets.SelectionSlider():
            return f'<label>{html.escape(widget.description)} <input type="range" disabled></label>'
        case ipywidgets.Label():
            return f"<span>{html.escape(widget.value)}</span>"
        case ipywidgets.Box():
            row = " still-row" if isinstance(widget, ipywidgets.HBox) else ""
            parts = "".join(still(child) for child in widget.children)
            return f'<div class="still-box{row}">{parts}</div>' if parts else ""
        case _:
            return ""


def mimebundle(self: Box, **_: object) -> dict[str, str]:
    """What IPython asks a widget for, in the place of a view that needs a running kernel."""
    return {"text/html": f'<div class="still">{still(self)}</div>', "text/plain": "a box of the lab"}


Box._repr_mimebundle_ = mimebundle
# What waits for a prediction shows its notice as HTML. No state of widgets is kept, so that no page loads the
# scripts of another site to draw it.
ipywidgets.Output._repr_mimebundle_ = lambda *_, **__: {}
ipywidgets.comm.create_comm = comm.DummyComm
# A page of the site has no folder with a report and answers.
_report.LabReport._repr_html_ = lambda _: "<p>In the lab this cell writes <code>report.html</code>.</p>"
_progress.Progress._repr_html_ = lambda _: "<p>In the lab this cell lists exercises and predictions.</p>"
