"""Explorers: a figure that follows its controls, so that moving a slider shows what the model says."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import ipywidgets

from ... import runtime
from ...errors import InputError, StarvelabError
from ...model.assumptions import PUBLISHED, TUTORIAL
from ...model.fields import Part, first_field
from ...model.paths import field_label
from ...pipeline import Pipeline
from ...units import Quantity, format_number, format_quantity, unit_name
from .. import notices
from ._measured import MEASURED, ROUND, MeasuredSwitch
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
# More controls stand in columns, beside a figure that stays in view.
MAX_ROWS = 6
SWITCH = {ROUND: TUTORIAL, MEASURED: PUBLISHED}

_STYLE = {"description_width": "15em"}
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
        What the figure shows, in plain text.
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
        """Read what a drawing function returned: a `Drawing`, or an SVG string."""
        drawing = cls(drawn) if isinstance(drawn, str) else drawn
        if not isinstance(drawing, Drawing) or "<svg" not in drawing.svg:
            raise InputError(
                f"An explorer's function must return a Drawing or an SVG string, got {drawing!r:.80}. "
                "Return Drawing(svg, sentence)."
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
            f"{notices.widget_table(self.headers, self.rows)}</details>"
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
        ``draw(**values)`` returns a `Drawing` or an SVG string. For a pipeline the stage bars are drawn.
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
        default of `draw`'s argument, or the pipeline's own value, where there is one. A pipeline of
        `TUTORIAL`, and a function of ``assumptions``, get a switch to the *measured* ones of `PUBLISHED`.

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
        if draw.assumptions == TUTORIAL and draw.hardware.rate is None:
            controls.setdefault("assumptions", SWITCH)
        starts = {path: _start(draw, path) for path in controls}
        return Explorer(
            _draw_pipeline(draw, advice), controls, starts, after, lambda **fields: draw.solve(fields)
        )
    if not callable(draw):
        raise InputError(
            f"An explorer draws with a function or a Pipeline, got {draw!r:.80}. Pass one of these."
        )
    starts = {}
    with contextlib.suppress(TypeError, ValueError):  # some built-in callables have no signature to read
        starts = {name: one.default for name, one in inspect.signature(draw).parameters.items()}
    if "assumptions" in starts:
        controls.setdefault("assumptions", SWITCH)
    return Explorer(draw, controls, starts, after, draw)


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


def _draw_pipeline(pipeline: Pipeline, advice: bool) -> Draw:
    # Loaded on first use: most explorers draw with a function of their own.
    from ..show import svg
    from ..show.figure import with_feasible

    def draw(**values: Value) -> Drawing:
        changed = pipeline.replace(**values)
        step = changed.solve()
        headers = ["stage", "time for a step"]
        headers, rows = with_feasible(headers, step.stage_times.items(), step.feasible)
        return Drawing(svg.step_bars(step), str(changed.explain(advice=advice)), headers, rows)

    return draw


class Explorer(Box):
    """The widget of an explorer: its `controls`, the figure and its texts, and errors in its `message`."""

    def __init__(
        self,
        draw: Draw,
        controls: dict[str, Description],
        starts: dict[str, Value],
        after: str | None,
        compared: Draw,
    ) -> None:
        self._draw = draw
        made = {name: make_control(name, one, starts.get(name, NO_START)) for name, one in controls.items()}
        self.controls = {name: widget for name, (widget, _) in made.items()}
        self._reads = {name: read for name, (_, read) in made.items()}
        self._drawn: dict[str, Value] | None = None
        # By what this returns the effect of numbers is known: a solve is quicker than a picture.
        self._compared, self.switch = compared, None
        if controls.get("assumptions") is SWITCH:
            self.switch = switch = MeasuredSwitch(self.controls["assumptions"])
            self._reads["assumptions"] = lambda: switch.assumptions
        self.figure, self.table = ipywidgets.HTML(), ipywidgets.HTML()
        self.sentence, self.message = spoken(), spoken()
        super().__init__(
            f"Explorer: {', '.join(map(field_label, controls))}",
            [
                *self.controls.values(),
                *([self.switch.row] if self.switch else []),
                self.message,
                self.figure,
                self.sentence,
                self.table,
            ],
        )
        self.figure.add_class("starvelab-figure")
        if len(self.controls) > MAX_ROWS:
            self.add_class("starvelab-board")
        store = PredictionStore()
        for name, widget in self.controls.items():
            widget.disabled = True
            if self.switch is None or name != "assumptions":
                widget.observe(lambda _change: self._redraw(), names="value")
        if after is None or store.get(after) is not None:
            self._open()
            return
        text = f"This explorer opens when you have locked your prediction above. {store.memory.which(after)}"
        self.message.value = notices.paragraphs(text)
        store.when_locked(after, self._open)

    def html(self) -> str:
        """One picture, for a page that shows no widgets, with the settings that it was drawn for."""
        if self._drawn is None:
            return super().html()
        shown, other = dict(self._drawn), ""
        if self.switch is not None:
            buttons = self.switch.buttons
            shown["assumptions"] = buttons.value
            (label,) = SWITCH.keys() - {buttons.value}
            buttons.value = label
            changes = "; ".join(tick.description for tick in self.switch.ticks.values())
            other = f"<p>Switched to {label}:</p>{self.message.value}{self.sentence.value}"
            other += notices.paragraphs(f"Measured: {changes}.")
            buttons.value = shown["assumptions"]
        values = (f"{field_label(name)} = {value}" for name, value in shown.items())
        moved = f"Controls do not move on this page. It shows {', '.join(values)}. In JupyterLab they move."
        return notices.paragraphs(moved) + super().html() + other

    def _open(self) -> None:
        for widget in self.controls.values():
            widget.disabled = False
        # A graded notebook keeps no widget, and nobody moves one there.
        if runtime.current().is_grading:
            return
        if self.switch is not None:
            values = {name: read() for name, read in self._reads.items()}
            # What fails is said where it is drawn.
            with contextlib.suppress(StarvelabError):
                self.switch.offer(
                    lambda numbers: self._compared(**{**values, "assumptions": numbers}), self._redraw
                )
        self._redraw()

    def _redraw(self) -> None:
        # The front end keeps one message per control under way and merges what comes meanwhile, so that a
        # fast drag cannot pile up work here. A value that came back to what is drawn needs none either.
        values = {name: read() for name, read in self._reads.items()}
        if values == self._drawn:
            return
        self._drawn = values
        # Nothing raised in a callback reaches the page, so it is shown here. After an error the old figure
        # would contradict the controls, so it goes.
        drawing, message = Drawing(""), ""
        try:
            drawing = Drawing.of(self._draw(**values))
        except StarvelabError as error:
            message = notices.notice(error, "Problem")
        except Exception as error:
            message = notices.notice(f"{type(error).__name__}: {error}", "Problem")
        self.message.value, self.figure.value = message, drawing.svg
        self.sentence.value, self.table.value = notices.paragraphs(drawing.sentence), drawing.table()


# A widget, and how its value is read.
Control: TypeAlias = tuple[ipywidgets.Widget, Callable[[], Value]]


def make_control(name: str, described: Description, start: Value = NO_START) -> Control:
    """Make the control of an argument, which starts at a value that it can show; see `explore`."""
    if isinstance(described, bool):
        return _widget(ipywidgets.Checkbox, name, value=start if isinstance(start, bool) else described)
    if isinstance(described, Mapping):
        return _choice(name, {str(key): value for key, value in described.items()}, start)
    if isinstance(described, tuple) and len(described) in (2, 3) and all(map(_is_number, described)):
        return _range(name, described, start)
    if isinstance(described, list | tuple | range) and len(described):
        return _choice(name, {_label_of(value): value for value in described}, start)
    raise InputError(
        f"The control {name!r} must be a range, some values or a switch, got {described!r}. {_FORMS}"
    )


# Any: options of a widget, each of a type of its own.
def _widget(kind: Callable[..., ipywidgets.Widget], name: str, unit: str = "", **options: Any) -> Control:
    label = f"{field_label(name)} ({unit})" if unit else field_label(name)
    widget = kind(**{"description": label, "style": _STYLE, "layout": _LAYOUT, **options})
    return widget, lambda: widget.value


def _is_number(value: Value) -> bool:
    return isinstance(value, Quantity) or (isinstance(value, Real) and not isinstance(value, bool))


def _is_like(value: Value, unit: Any) -> bool:
    return isinstance(value, Quantity) and value.is_compatible_with(unit)


def _label_of(value: Value) -> str:
    if isinstance(value, Quantity):
        return format_quantity(value)
    if _is_number(value):
        return format_number(value, 6)
    return str(getattr(value, "name", value))


def _range(name: str, ends: tuple[Value, ...], start: Value) -> Control:
    unit = next((value.units for value in ends if isinstance(value, Quantity)), None)
    if unit is not None:
        if not all(_is_like(value, unit) for value in ends):
            raise InputError(
                f"The ends of the control {name!r} must be quantities of one kind, got {ends!r}. {_FORMS}"
            )
        ends = tuple(value.m_as(unit) for value in ends)
        start = start.m_as(unit) if _is_like(start, unit) else NO_START
    low, high, *rest = ends
    if not -math.inf < low < high < math.inf or (rest and not 0 < rest[0] <= high - low):
        raise InputError(f"The control {name!r} must run from a low to a high value, got {ends!r}. {_FORMS}")
    # A power of ten divides the range into a hundred to a thousand steps, so that values stay round.
    step = 10.0 ** math.floor(math.log10((high - low) / MIN_STEPS))
    kind: type[ipywidgets.Widget] = ipywidgets.IntSlider
    options: dict[str, Any] = {"step": 1}
    if unit is not None or not all(isinstance(value, Integral) for value in ends):
        decimals = max(_decimals(low), _decimals(rest[0] if rest else step))
        kind, options = ipywidgets.FloatSlider, {"step": step, "readout_format": f".{decimals}f"}
    options |= {"value": start if isinstance(start, Real) and low <= start <= high else low}
    options |= {"min": low, "max": high, "continuous_update": True} | ({"step": rest[0]} if rest else {})
    if unit is None:
        return _widget(kind, name, **options)
    widget, read = _widget(kind, name, unit_name(unit), **options)
    return widget, lambda: Quantity(read(), unit)


def _decimals(number: float) -> int:
    """Decimals that `number` is written with, four at most."""
    return len(f"{number:.4f}".rstrip("0").partition(".")[2])


def _choice(name: str, values: dict[str, Value], start: Value) -> Control:
    if len(values) < 2:
        raise InputError(f"The control {name!r} must offer two or more values, got {list(values)}. {_FORMS}")
    begins = [label for label, value in values.items() if type(value) is type(start) and value == start]
    # The widget holds the label: a widget cannot compare quantities or catalogue entries.
    options: dict[str, Any] = {"options": list(values), "value": [*begins, *values][0]}
    if all(map(_is_number, values.values())):
        widget, read = _widget(ipywidgets.SelectionSlider, name, continuous_update=True, **options)
        widget.add_class(LISTED_CLASS)
    elif len(values) <= MAX_BUTTONS:
        options |= {"style": _STYLE | {"button_width": "auto"}, "layout": {}}
        widget, read = _widget(ipywidgets.ToggleButtons, name, **options)
    else:
        widget, read = _widget(ipywidgets.Dropdown, name, **options)
    return widget, lambda: values[read()]
