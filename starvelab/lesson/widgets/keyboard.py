"""The box that every widget of the lab stands in: keys pressed in it stay in it, and its parts have names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from ... import runtime
from ...errors import InputError
from .. import notices

BOX_CLASS = "starvelab-box"
SPOKEN_CLASS = "starvelab-spoken"
LISTED_CLASS = "starvelab-listed"


class _Keyboard(anywidget.AnyWidget):
    """Invisible: its script and its style dress the nearest box around it."""

    _esm = Path(__file__).with_name("keyboard.js")
    _css = Path(__file__).with_name("keyboard.css")
    name = traitlets.Unicode().tag(sync=True)
    # Set by the page that runs the script: it answers what `Box.after_changes` sends.
    answers = traitlets.Bool(False).tag(sync=True)


class Box(ipywidgets.VBox):
    """A column of widgets that is one group with a name; its `message` says what came of a click."""

    def __init__(self, name: str, children: Sequence[ipywidgets.Widget], **kwargs: object) -> None:
        # If the front end of anywidget is missing, JupyterLab puts an error in place of that widget.
        # The hidden box around it keeps that out of sight.
        self._keyboard = _Keyboard(name=name)
        self._keyboard.on_msg(self._page_answered)
        self._waiting: Callable[[], None] | None = None
        hidden = ipywidgets.VBox([self._keyboard], layout={"display": "none"})
        super().__init__([*children, hidden], **kwargs)
        self.add_class(BOX_CLASS)
        self._in_words = name

    def after_changes(self, act: Callable[[], None]) -> None:
        """Call `act` once the kernel has every change that was made in the page before now.

        While the kernel works, ipywidgets holds back the second and later changes of a control, but no click:
        the click would act on what was there before. The page sends what it held back before its answer.
        """
        if self._keyboard.answers:
            self._waiting = act
            self._keyboard.send({})
        else:
            act()

    def show_errors(self, act: Callable[[], None]) -> None:
        """Call `act`, and show in the message what it raises: out of a callback nothing reaches the page."""
        try:
            act()
        except InputError as error:
            self.message.value = notices.notice(error, "Please note")
        except Exception as error:
            self.message.value = notices.notice(f"{type(error).__name__}: {error}", "Problem")

    # Any: the page's message says nothing more than that it came.
    def _page_answered(self, *_message: Any) -> None:
        act, self._waiting = self._waiting, None
        if act is not None:
            act()

    def __repr__(self) -> str:
        # What a page without widgets shows, and what nbgrader stores beside the widget.
        return f"[{self._in_words}]"

    def html(self) -> str:
        """Return what the box says, for a page that shows no widgets: texts and figures, without controls."""
        return "".join(one.value for one in self.children if isinstance(one, ipywidgets.HTML))

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        if runtime.current().has_widgets:
            shown: dict[str, object] = super()._repr_mimebundle_(**kwargs)
            return shown
        return {"text/html": self.html(), "text/plain": repr(self)}


def spoken(**kwargs: object) -> ipywidgets.HTML:
    """An HTML widget whose changes a screen reader reads out."""
    widget = ipywidgets.HTML(**kwargs)
    widget.add_class(SPOKEN_CLASS)
    return widget
