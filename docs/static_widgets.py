"""How a page of the site shows a widget: as still HTML, since no Python answers behind a page.

A hidden cell of each copied notebook imports this. It knows the widgets of the lab by their parts only.
"""

import html

import ipywidgets

from starvelab.lesson.widgets.keyboard import Box


def still(widget: ipywidgets.Widget) -> str:
    """A widget as HTML that does nothing."""
    match widget:
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
