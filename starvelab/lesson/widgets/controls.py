"""Controls of explorers: a description, such as ``(1, 64)`` or ``["PNG", "JPEG"]``, becomes a widget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import ipywidgets

from ...errors import InputError
from ...units import Quantity, format_number, format_quantity, unit_name
from .keyboard import LISTED_CLASS

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
