"""Explorers: a figure that follows its controls, so that moving a slider shows what the model says.

A description of a control, such as ``(1, 64)`` or ``["PNG", "JPEG"]``, becomes a widget.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import ipywidgets

from ...errors import InputError, StarvelabError
from ...model.parts import Part, first_field
from ...pipeline import Pipeline
from ...units import Quantity, format_number, format_quantity, unit_name
from ..checks import Captured
from . import words
from .keyboard import LISTED_CLASS, Box, spoken
from .store import PredictionStore

# Takes the values of the controls by name. Any: whatever `Drawing.of` reads may come back.
Draw: TypeAlias = Callable[..., Any]
# Any: values of a control, as below; `make_control` says what each form means.
Description: TypeAlias = Sequence[Any] | Mapping[str, Any] | bool
# Any: a control's value may be a number, a quantity, a catalogue entry, a text, or anything else in a list.
Value: TypeAlias = Any

# None is a value that may be meant: a pipeline without storage.
NO_START = object()

# As many as fit beside each other; more become a drop-down list.
MAX_BUTTONS = 4
MIN_STEPS = 100

_STYLE = {"description_width": "13em"}
_LAYOUT = {"width": "36em", "max_width": "100%"}
_FORMS = (
    "Write (low, high) or (low, high, step), a list of values, a dict of names to values, or True or False."
)


@dataclass(frozen=True)
class Drawing:
    """One figure with its words, for one setting of an explorer's controls.

    Parameters
    ----------
    svg : str
        The figure, an ``<svg>`` element with role="img" and a title.
    sentence : str
        What is to be seen, in plain text.
    headers : sequence of str, optional
        Head of the table of values.
    rows : sequence of sequences, optional
        The values; quantities and numbers are shown to four digits.
    """

    svg: str
    sentence: str = ""
    headers: Sequence[str] | None = None
    rows: Sequence[Sequence[object]] | None = None

    @classmethod
    def of(cls, drawn: object) -> Drawing:
        """Read what a drawing function returned: a `Drawing`, anything with its fields, or an SVG string."""
        if isinstance(drawn, str):
            drawn = cls(drawn)
        svg = getattr(drawn, "svg", None)
        if not isinstance(svg, str) or "<svg" not in svg:
            raise InputError(
                f"An explorer's function must return a Drawing or an SVG string, got {drawn!r:.80}. "
                "Return Drawing(svg, sentence)."
            )
        drawing = cls(
            svg, getattr(drawn, "sentence", ""), getattr(drawn, "headers", None), getattr(drawn, "rows", None)
        )
        if (drawing.headers is None) != (drawing.rows is None):
            raise InputError("A Drawing has both headers and rows or neither. Pass the one that is missing.")
        return drawing

    def table(self) -> str:
        """The values as HTML, folded away until the reader opens them; empty without values."""
        if self.headers is None or self.rows is None:
            return ""
        return (
            '<details><summary style="cursor: pointer">The values as a table</summary>'
            f"{words.table(self.headers, self.rows)}</details>"
        )


def explore(
    draw: Draw | Pipeline,
    of_parts: Mapping[str, Description] | None = None,
    /,
    *,
    after: str | None = None,
    advice: bool = True,
    **controls: Description,
) -> Explorer:
    """Make an explorer: controls, a figure that follows them, a sentence and a table of its values.

    Parameters
    ----------
    draw : function or Pipeline
        ``draw(**values)`` returns a `Drawing` or an SVG string. Of a pipeline the stage bars are drawn.
    of_parts : mapping of str, optional
        Controls of a pipeline's parts, by the path of their field: ``{"workers.cores": [8, 16]}``.
    after : str, optional
        Key of a prediction; the explorer opens when that is locked.
    advice : bool
        True for a sentence beneath a pipeline that says what to do about what binds; it may answer a later
        question.
    **controls
        One for each argument. ``(low, high)`` or ``(low, high, step)`` of numbers or quantities makes a
        slider, a list of numbers a slider over just these, a list of texts or catalogue entries buttons or
        a drop-down list; a dict names its values; True or False makes a tick box. A control starts at the
        default of `draw`'s argument, or the pipeline's own value, where there is one.

    Returns
    -------
    Explorer
        The widget.

    Raises
    ------
    InputError
        If there are no controls, or one cannot be made.
    """
    controls = {**(of_parts or {}), **controls}
    if not controls:
        raise InputError(
            "An explorer needs something to move, got no controls. Pass for example batch_size=(1, 512)."
        )
    if isinstance(draw, Pipeline):
        starts = {path: _start(draw, path) for path in controls}
        draw = _draw_pipeline(draw, advice)
    elif callable(draw):
        starts = _defaults(draw)
    else:
        raise InputError(
            f"An explorer draws with a function or a Pipeline, got {draw!r:.80}. Pass one of these."
        )
    return Explorer(draw, controls, starts, after)


def _start(pipeline: Pipeline, path: str) -> Value:
    """A field of a pipeline or of a part of it; of a part what a plain value would change."""
    value: Value = pipeline
    for name in path.split("."):
        value = getattr(value, name, NO_START)
    if path == "dataset.size" and value is None:
        return pipeline.size  # that of the assumptions
    if path == "hardware" and pipeline.hardware.of is None:
        return pipeline.hardware.rate
    return getattr(value, first_field(type(value))) if isinstance(value, Part) else value


def _defaults(draw: Draw) -> dict[str, Value]:
    with contextlib.suppress(TypeError, ValueError):  # some built-in callables have no signature to read
        parameters = inspect.signature(draw).parameters.values()
        return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    return {}


def _draw_pipeline(pipeline: Pipeline, advice: bool) -> Draw:
    # Loaded on first use: most explorers draw with a function of their own.
    from ..show import svg
    from ..show.style import with_feasible

    def draw(**values: Value) -> Drawing:
        changed = pipeline.replace(**values)
        step = changed.solve()
        headers, rows = with_feasible(
            ["stage", "time for a step"], list(step.stage_times.items()), step.feasible
        )
        return Drawing(svg.step_bars(step), str(changed.explain(advice=advice)), headers=headers, rows=rows)

    return draw


class Explorer(Box):
    """The widget of an explorer: its `controls` by the name of their argument, and texts.

    These are the `figure`, a `sentence` with what is to be seen, a `table` of its values, and a `message`
    with errors or prints of the drawing function.
    """

    def __init__(
        self, draw: Draw, controls: dict[str, Description], starts: dict[str, Value], after: str | None
    ) -> None:
        self._draw = draw
        self._controls = {
            name: make_control(name, one, starts.get(name, NO_START)) for name, one in controls.items()
        }
        self._drawn: dict[str, Value] | None = None
        self.controls = {name: control.widget for name, control in self._controls.items()}
        self.figure = ipywidgets.HTML()
        self.sentence = spoken()
        self.table = ipywidgets.HTML()
        self.message = spoken()
        labels = ", ".join(map(shown_name, controls))
        super().__init__(
            f"Explorer: {labels}",
            [*self.controls.values(), self.message, self.figure, self.sentence, self.table],
        )
        for widget in self.controls.values():
            widget.observe(lambda _change: self._redraw(), names="value")
        self._open_after(after)

    def html(self) -> str:
        """One picture, for a page that shows no widgets, with the settings that it was drawn for."""
        values = ", ".join(f"{name} = {value}" for name, value in (self._drawn or {}).items())
        moved = f"This page moves no controls. Shown is {values}. In JupyterLab they can be moved."
        return (words.paragraphs(moved) if self._drawn else "") + super().html()

    def _open_after(self, key: str | None) -> None:
        store = PredictionStore()
        if key is None or store.get(key) is not None:
            self._redraw()
            return
        for widget in self.controls.values():
            widget.disabled = True
        text = f"This explorer opens when you have locked your prediction above. {store.memory.which(key)}"
        self.message.value = words.notice(text.rstrip(), "Please note")
        store.when_locked(key, self._open)

    def _open(self) -> None:
        for widget in self.controls.values():
            widget.disabled = False
        self._redraw()

    def _redraw(self) -> None:
        # The front end keeps one message per control under way and merges what comes meanwhile, so that a
        # fast drag cannot pile up work here. A value that came back to what is drawn needs none either.
        values = {name: control.read() for name, control in self._controls.items()}
        if values == self._drawn:
            return
        self._drawn = values
        printed, drawing, message = Captured(), None, ""
        try:
            with printed:
                drawing = Drawing.of(self._draw(**values))
        except StarvelabError as error:
            message = words.notice(error, "Problem")
        except Exception as error:
            message = words.notice(f"{type(error).__name__}: {error}", "Problem")
        if printed.getvalue():
            message += f"<pre>{words.escape(printed.getvalue())}</pre>"
        # Nothing raised or printed in a callback reaches the page, so it is shown here. After an error the
        # old figure would contradict the controls, so it goes.
        self.message.value = message
        self.figure.value = drawing.svg if drawing else ""
        self.sentence.value = words.paragraphs(drawing.sentence) if drawing else ""
        self.table.value = drawing.table() if drawing else ""


@dataclass(frozen=True)
class Control:
    """A widget, and how its value is read."""

    widget: ipywidgets.Widget
    read: Callable[[], Value]


def make_control(name: str, described: Description, start: Value = NO_START) -> Control:
    """Make the control of an argument, which starts at a value that it can show.

    It is described by ``(low, high)`` or ``(low, high, step)`` of numbers or quantities, by the values of a
    list, by a dict of labels to values, or by True or False for a tick box.
    """
    label = shown_name(name)
    if isinstance(described, bool):
        return _tick_box(label, start if isinstance(start, bool) else described)
    if isinstance(described, Mapping):
        return _choice(name, label, {str(key): value for key, value in described.items()}, start)
    if isinstance(described, tuple) and len(described) in (2, 3) and all(map(_is_number, described)):
        return _range(name, label, described, start)
    if isinstance(described, list | tuple | range) and len(described):
        return _choice(name, label, {_label_of(value): value for value in described}, start)
    raise InputError(
        f"The control {name!r} must be a range, some values or a switch, got {described!r}. {_FORMS}"
    )


def shown_name(name: str) -> str:
    """The name of an argument, or the path of a pipeline's field, as a label."""
    return name.replace("_", " ").replace(".", " ")


def _is_number(value: Value) -> bool:
    return isinstance(value, Quantity) or (isinstance(value, Real) and not isinstance(value, bool))


def _is_like(value: Value, unit: str) -> bool:
    return isinstance(value, Quantity) and value.is_compatible_with(unit)


def _label_of(value: Value) -> str:
    if isinstance(value, Quantity):
        return format_quantity(value)
    if _is_number(value):
        return format_number(value, 6)
    return str(getattr(value, "name", value))


def _tick_box(label: str, start: bool) -> Control:
    widget = ipywidgets.Checkbox(value=start, description=label, style=_STYLE, layout=_LAYOUT)
    return Control(widget, lambda: widget.value)


def _range(name: str, label: str, described: tuple[Value, ...], start: Value) -> Control:
    unit = next((str(value.units) for value in described if isinstance(value, Quantity)), None)
    if unit is not None:
        if not all(_is_like(value, unit) for value in described):
            raise InputError(
                f"The ends of the control {name!r} must be quantities of one kind, got {described!r}. "
                f"{_FORMS}"
            )
        label = f"{label} ({unit_name(described[0].units)})"
        described = tuple(value.to(unit).magnitude for value in described)
        start = start.to(unit).magnitude if _is_like(start, unit) else NO_START
    low, high, *rest = described
    if not -math.inf < low < high < math.inf or (rest and not 0 < rest[0] <= high - low):
        raise InputError(
            f"The control {name!r} must run from a low to a high value, got {described!r}. {_FORMS}"
        )
    if unit is None and all(isinstance(value, Integral) for value in described):
        kind, step, more = ipywidgets.IntSlider, rest[0] if rest else 1, {}
    else:
        kind, step = ipywidgets.FloatSlider, rest[0] if rest else _round_step(high - low)
        more = {"readout_format": f".{max(_decimals(low), _decimals(step))}f"}
    value = start if isinstance(start, Real) and low <= start <= high else low
    widget = kind(
        value=value, min=low, max=high, step=step, description=label,
        continuous_update=True, style=_STYLE, layout=_LAYOUT, **more,
    )  # fmt: skip
    return Control(widget, (lambda: widget.value) if unit is None else (lambda: Quantity(widget.value, unit)))


def _round_step(span: float) -> float:
    """The power of ten that divides `span` into a hundred to a thousand steps, so that values stay round."""
    return 10.0 ** math.floor(math.log10(span / MIN_STEPS))


def _decimals(number: float) -> int:
    """Decimals that `number` is written with, four at most."""
    return len(f"{number:.4f}".rstrip("0").partition(".")[2])


def _choice(name: str, label: str, values: dict[str, Value], start: Value) -> Control:
    if len(values) < 2:
        raise InputError(f"The control {name!r} must offer two or more values, got {list(values)}. {_FORMS}")
    options = list(values.items())
    begins = next(
        (shown for shown, value in options if type(value) is type(start) and value == start), options[0][0]
    )
    # The widget holds the label: a widget cannot compare quantities or catalogue entries.
    shown = {"options": list(values), "value": begins, "description": label, "style": _STYLE}
    if all(map(_is_number, values.values())):
        widget = ipywidgets.SelectionSlider(continuous_update=True, layout=_LAYOUT, **shown)
        widget.add_class(LISTED_CLASS)
    elif len(values) <= MAX_BUTTONS:
        shown["style"] = _STYLE | {"button_width": "auto"}
        widget = ipywidgets.ToggleButtons(**shown)
    else:
        widget = ipywidgets.Dropdown(layout=_LAYOUT, **shown)
    return Control(widget, lambda: values[widget.value])
