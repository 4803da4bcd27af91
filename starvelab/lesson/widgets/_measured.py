"""The switch from round numbers to measured ones: what it changes in a picture, and each change alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TypeAlias

import ipywidgets

from ...model.assumptions import PUBLISHED, TUTORIAL, Assumptions
from ...tables import cell

ROUND, MEASURED = "round numbers", "measured"
# What is said of a change, and its assumptions. In braces stand measured values, and round ones as "round_".
CHANGES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "{phase}, not a {round_phase} pass": ("phase",),
    "the GPU's measured rate, not half of its peak": (
        "macs_field", "flop_per_mac", "efficiency", "measured_rates", "extrapolated_time", "model_error",
    ),
    "launches of {overhead_per_layer} a layer beside the work, not {round_overhead_per_layer} on top of it": (
        "overhead_per_layer", "overhead_per_step", "overhead_overlaps", "launch_factor",
    ),
    "images of {sample_size}, not {round_sample_size}": ("sample_size", "dataset_of_model"),
    "{worker_rate} a worker, not {round_worker_rate}": ("worker_rate",),
    "workers share the host's cores": (
        "crowding", "second_thread", "host_cores", "workers_time", "workers_time_without_cores",
    ),
    "each worker reads one file after the other": ("open_requests",),
    "lists of arrays are pickled": ("pickling_bandwidth", "unpickling_bandwidth"),
    "the link's measured rate, not its datasheet's": ("link_rate",),
    "several GPUs take {accelerators_time} times as long as one": ("accelerators_time",),
})  # fmt: skip
Shown: TypeAlias = Callable[[Assumptions], object]


def mixed(changes: Collection[str]) -> Assumptions:
    """Return the round numbers with so many of the changes: all of them make `PUBLISHED`."""
    if len(changes) in (0, len(CHANGES)):
        return PUBLISHED if changes else TUTORIAL
    names = {name for change in changes for name in CHANGES[change]}
    return dataclasses.replace(
        TUTORIAL,
        name=f"round numbers, but for {', '.join(map(in_words, changes))}",
        facts={**TUTORIAL.facts, **{name: PUBLISHED.facts[name] for name in names}},
        **{name: getattr(PUBLISHED, name) for name in names},
    )


def in_words(change: str) -> str:
    """Say what a change is, with its values."""
    values = {name: cell(getattr(PUBLISHED, name)) for name in TUTORIAL.facts}
    return change.format_map(
        values | {f"round_{name}": cell(getattr(TUTORIAL, name)) for name in TUTORIAL.facts}
    )


def effective(shown: Shown) -> list[str]:
    """Return the changes that change what is shown, each made alone."""
    first = shown(TUTORIAL)
    return [change for change in CHANGES if shown(mixed([change])) != first]


class MeasuredSwitch:
    """A pair of `buttons`, and a row of `ticks` with one for each change that matters to a picture.

    A button sets all of the ticks. Where some are set, neither button is pressed.
    """

    def __init__(self, buttons: ipywidgets.ToggleButtons) -> None:
        self.buttons, self._is_setting = buttons, False
        self.ticks: dict[str, ipywidgets.Checkbox] = {}
        self.row = ipywidgets.Box(
            layout={"flex_flow": "row wrap", "align_items": "center", "display": "none"}
        )

    def offer(self, shown: Shown, changed: Callable[[], None]) -> None:
        """List what the button changes of what is shown; `changed` is called after each change."""
        layout = {"width": "auto", "max_width": "100%", "margin": "0 1.5em 0 0"}
        for change in effective(shown):
            self.ticks[change] = ipywidgets.Checkbox(
                value=self.buttons.value == MEASURED,
                description=in_words(change),
                indent=False,
                layout=layout,
            )
            self.ticks[change].observe(lambda _change: self._ticked(changed), names="value")
        self.buttons.observe(lambda _change: self._pressed(changed), names="value")
        label = ipywidgets.Label("Measured, each in its range:", layout={"margin": "0 0.5em 0 0"})
        self.row.children = (label, *self.ticks.values())
        self.row.layout.display = "flex" if self.ticks else "none"

    @property
    def assumptions(self) -> Assumptions:
        """The numbers that the ticks make; those of the pressed button before any is offered."""
        if self.buttons.value == MEASURED:
            return PUBLISHED
        return mixed([change for change, tick in self.ticks.items() if tick.value])

    def _pressed(self, changed: Callable[[], None]) -> None:
        if self._is_setting or self.buttons.value is None:
            return
        with self._setting():
            for tick in self.ticks.values():
                tick.value = self.buttons.value == MEASURED
        changed()

    def _ticked(self, changed: Callable[[], None]) -> None:
        """Press the button that says the same as the ticks, or none."""
        if self._is_setting:
            return
        values = {tick.value for tick in self.ticks.values()}
        with self._setting():
            self.buttons.value = None if len(values) > 1 else MEASURED if values == {True} else ROUND
        changed()

    @contextmanager
    def _setting(self) -> Iterator[None]:
        """Let buttons and ticks follow each other once."""
        self._is_setting = True
        try:
            yield
        finally:
            self._is_setting = False
