"""Arguments that cannot be meant, and what is said of them: rows of a table, (arguments, message).

Of the arguments the first is wrong, and the others stand beside it. Whatever goes through a gate of
`starvelab.units` or `model.fields` is told the same sentence, with its own name, value and unit in it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from starvelab.units import Quantity, format_quantity

Row = tuple[dict[str, Any], str]


def message(error: type[Exception], call: Callable, *arguments: Any, **named: Any) -> str:
    """The message of the error that a call raises."""
    with pytest.raises(error) as caught:
        call(*arguments, **named)
    return str(caught.value)


def _row(arguments: dict[str, Any], said: str, **more: str) -> Row:
    name, value = next(iter(arguments.items()))
    return arguments, f"{name} {said}".format(value=value, kind=type(value).__name__, **more)


def not_positive(**arguments: Any) -> Row:
    value = next(iter(arguments.values()))
    came = format_quantity(value) if isinstance(value, Quantity) else str(value)
    said = "must be finite and positive, got {came}. Check the value and its sign."
    return _row(arguments, said, came=came)


def negative(**arguments: Any) -> Row:
    return _row(arguments, "must be finite and not negative, got {value}. Check the value and its sign.")


def not_whole(**arguments: Any) -> Row:
    is_float = isinstance(next(iter(arguments.values())), float)
    do = "Round it to the one you mean" if is_float else "Pass an int such as 256"
    return _row(arguments, "must be a whole number, got {value!r}. {do}.", do=do)


def no_share(**arguments: Any) -> Row:
    return _row(arguments, "must be a share up to 1, got {value}. Write 0.5 for 50 %.")


def other_dimension(unit: str, **arguments: Any) -> Row:
    """Of a quantity that counts something else than `unit` does."""
    return _row(arguments, "must be convertible to {unit}, got {value}. Check what it counts.", unit=unit)


def bare(unit: str, **arguments: Any) -> Row:
    """Of a number without a unit, for which `unit` is an example."""
    said = 'needs a unit, got the bare {kind} {value}. Write for example Q_({value}, "{unit}").'
    return _row(arguments, said, unit=unit)


def no_rate(**arguments: Any) -> Row:
    said = "must be a rate in samples or in bytes, got {value}. "
    return _row(arguments, said + 'Write for example Q_("100 img/s") or Q_("250 MB/s").')


def none_of(choices: str, **arguments: Any) -> Row:
    return _row(arguments, "must be one of {choices}, got {value!r}. Pass one of these.", choices=choices)


def no_entry(example: str, **arguments: Any) -> Row:
    """Of what is no entry of the group of `example`."""
    said = "must be an entry of {group}, got {value!r}. Pass for example {example}."
    return _row(arguments, said, group=example.partition(".")[0], example=example)
