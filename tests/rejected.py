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


def _row(arguments: dict[str, Any], rest: Callable[[Any], str]) -> Row:
    name, value = next(iter(arguments.items()))
    return arguments, f"{name} {rest(value)}"


def not_positive(**arguments: Any) -> Row:
    return _row(
        arguments,
        lambda v: (
            f"must be finite and positive, got {format_quantity(v) if isinstance(v, Quantity) else v}. "
            "Check the value and its sign."
        ),
    )


def negative(**arguments: Any) -> Row:
    return _row(
        arguments, lambda v: f"must be finite and not negative, got {v}. Check the value and its sign."
    )


def not_whole(**arguments: Any) -> Row:
    return _row(
        arguments,
        lambda v: (
            f"must be a whole number, got {v!r}. "
            f"{'Round it to the one you mean' if type(v) is float else 'Pass an int such as 256'}."
        ),
    )


def no_share(**arguments: Any) -> Row:
    return _row(arguments, lambda v: f"must be a share up to 1, got {v}. Write 0.5 for 50 %.")


def other_dimension(unit: str, **arguments: Any) -> Row:
    """Of a quantity that counts something else than `unit` does."""
    return _row(arguments, lambda v: f"must be convertible to {unit}, got {v}. Check what it counts.")


def bare(unit: str, **arguments: Any) -> Row:
    """Of a number without a unit, for which `unit` is an example."""
    return _row(
        arguments,
        lambda v: f'needs a unit, got the bare {type(v).__name__} {v}. Write for example Q_({v}, "{unit}").',
    )


def no_rate(**arguments: Any) -> Row:
    return _row(
        arguments,
        lambda v: (
            f"must be a rate in samples or in bytes, got {v}. "
            'Write for example Q_("100 img/s") or Q_("250 MB/s").'
        ),
    )


def none_of(choices: str, **arguments: Any) -> Row:
    return _row(arguments, lambda v: f"must be one of {choices}, got {v!r}. Pass one of these.")


def no_entry(example: str, **arguments: Any) -> Row:
    """Of what is no entry of the group of `example`."""
    group = example.partition(".")[0]
    return _row(arguments, lambda v: f"must be an entry of {group}, got {v!r}. Pass for example {example}.")
