"""Figures in SVG, of explorers and of notebooks: bars, lines over the batch, and the lanes of a loader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...errors import InputError
from ...model.resources import ACCELERATOR, CPU, STORAGE, capitalized
from ...model.stages import STAGES, SingleNodeModel
from ...model.stages.single_node import SingleNodeResult
from ...model.step import Step, one_step
from ...tables import percent
from ...units import format_number, format_quantity
from .curves import lines_over_batch
from .drawing import (
    BAR,
    HATCHED,
    LEFT,
    WIDTH,
    Bar,
    bar_rows,
    fill,
    frame,
    hatching,
    line,
    of_one_step,
    reasons,
    rect,
    text,
)
from .figure import COLORS, PART_COLORS
from .lanes import loader_lanes

__all__ = [
    "cost_bars", "lines_over_batch", "loader_lanes", "noted_bars", "share_bars", "step_bars", "step_parts",
]  # fmt: skip


def _listed(times: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())


def _times(
    times: Mapping[str, float], whole: float, bars: Callable[[str, float], Bar], longest: float = 0.0
) -> tuple[str, int]:
    """A bar for each time, with a line where the step ends; also the y below the last of them."""
    longest = longest or max(whole, *times.values())
    drawn, y = bar_rows(bars(name, ms / longest) for name, ms in times.items())
    x = LEFT + BAR * whole / longest
    return drawn + line(x, 2, x, y - 6, stroke_dasharray="4 3"), y


# --- figures ----------------------------------------------------------------------------------------------


def share_bars(shares: Mapping[str, float], *, title: str) -> str:
    """One bar for each named share, within an outline that stands for the whole.

    More than the whole fills the outline, in another color. A name in which "accelerator" or "GPU" stands has
    the accelerator's color.
    """

    def color(name: str) -> str:
        of = ACCELERATOR if "accelerator" in name or "GPU" in name else CPU
        return (STORAGE if shares[name] > 1 else of).color

    notes = {name: percent(share) for name, share in shares.items()}
    rows = (Bar(name, min(share, 1), color(name), notes[name], 1) for name, share in shares.items())
    drawn, height = bar_rows(rows, left=170, length=380)
    each = ", ".join(f"{name} {note}" for name, note in notes.items())
    return frame(drawn, height=height, title=title, description=f"{each}.")


def cost_bars(costs: Mapping[str, float], adds: Mapping[str, float], *, title: str) -> str:
    """An outline for what each part costs, and a filled bar for what it adds, both by its name [ms]."""
    longest = max(costs.values())
    rows = (
        Bar(part, adds[part] / longest, (ACCELERATOR if part == "compute" else CPU).color,
            f"costs {cost:.1f}, adds {adds[part]:.1f} ms", cost / longest)
        for part, cost in costs.items()
    )  # fmt: skip
    drawn, height = bar_rows(rows, row=34)
    each = ", ".join(f"{part} costs {cost:.1f} ms" for part, cost in costs.items())
    return frame(drawn, height=height, title=title, description=f"{each}.")


def noted_bars(
    labels: Sequence[str], values: Sequence[float], notes: Sequence[str], *, title: str, description: str
) -> str:
    """A bar for each value with its label and its note, from a common zero; below it they are hatched."""
    left, right = (10 + round(8 * max(map(len, texts))) for texts in (labels, notes))
    low, high = min(0.0, *values), max(0.0, *values)
    span = high - low or 1.0
    rows = [
        Bar(label, abs(value) / span, (CPU if value >= 0 else STORAGE).color, note,
            start=(min(value, 0.0) - low) / span, hatched=max(-value, 0.0) / span)
        for label, value, note in zip(labels, values, notes, strict=True)
    ]  # fmt: skip
    length = max(120, WIDTH - left - right - 14)
    drawn, y = bar_rows(rows, left=left, length=length, row=34)
    zero = left - length * low / span
    drawn = hatching() + drawn + line(zero, 2, zero, y - 4)
    return frame(drawn, height=y, title=title, description=description)


def step_bars(step: Step, *, longest: float = 0.0) -> str:
    """One bar for each resource on a common scale, the step as a dashed line, and a gauge of utilization.

    What a resource spends on something else than its work is hatched: workers that wait, launches, other work
    of the accelerator. Figures with one `longest` [ms] compare.
    """
    one_step(step, "step_bars")
    whole, length = step.step_time.m_as("ms"), format_quantity(step.step_time)
    chip, busy = step.labels[ACCELERATOR.name], percent(step.utilization)
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    other = _other_work(step)
    notes = {name: f"({percent(ms / whole)})" for name, ms in times.items()}
    rule, bold, title = ": nothing overlaps, so it is their sum", "", "Nothing overlaps"
    if step.overlap:
        rule, bold, title = "", step.bottleneck, capitalized(step.labels.does(step.bottleneck, "bind"))
        notes[step.bottleneck] = "binds"

    def bar(name: str, share: float) -> Bar:
        return Bar(
            step.labels[name], share, COLORS[name], f"{format_number(times[name])} ms {notes[name]}",
            hollow=not step.feasible, bold=name == bold,
            hatched=share * sum(other.get(name, {}).values()) / times[name] if times[name] else 0.0,
        )  # fmt: skip

    drawn, y = _times(times, whole, bar, longest)
    named = {step.labels[name]: ms for name, ms in times.items()}
    hatched = [f"{capitalized(step.labels[name])}, hatched: {_listed(what)}." for name, what in other.items()]
    gauge, counted = _gauge(step, y, other)
    below = [
        f"A step takes {length} (dashed line){rule}.",
        *hatched,
        step.spoken_busy
        or f"Busy: the share of it in which the {chip} works{', its launches among them' * counted}.",
        *([f"{step.spoken_range}."] if step.spoken_range else []),
        *reasons("hollow", step.infeasible_reason),
    ]
    title = f"{title}; the {chip} is busy {busy}"
    drawn = hatching() * bool(other) + drawn + gauge
    about = f"Time for one batch: {_listed(named)}. A step takes {length}."
    return of_one_step(drawn, y + 54, below, below[1:], feasible=step.feasible, title=title, about=about)


def _other_work(step: Step) -> dict[str, dict[str, float]]:
    """By resource, what it does beside its own work, and for how long [ms]: waiting and launching, too."""
    other: dict[str, dict[str, float]] = {}
    if waits := step.waits.get(CPU.name):
        other[CPU.name] = {f"waiting for {step.labels.the(STORAGE.name)}": waits.m_as("ms")}
    names = {stage.NAME for stage in STAGES if stage.RESOURCE is ACCELERATOR} - {SingleNodeModel.NAME}
    on_chip = {name: time.m_as("ms") for name, time in step.stage_times.items() if name in names}
    if launches := step.waits.get(ACCELERATOR.name):
        on_chip["launches"] = launches.m_as("ms")
    return {**other, ACCELERATOR.name: on_chip} if on_chip else other


def _gauge(step: Step, y: int, other: Mapping[str, Mapping[str, float]]) -> tuple[str, bool]:
    """Draw how busy the accelerator is, and tell whether its launches, which are hatched, count as busy."""
    whole, taken = (time.m_as("ms") for time in (step.step_time, step.resource_times[ACCELERATOR.name]))
    launches = other.get(ACCELERATOR.name, {}).get("launches", 0.0)
    awaited = sum(step.stage_times[name].m_as("ms") for name in step.awaited)
    counted = launches > 0 and step.utilization * whole + awaited > taken * (1 - 1e-9)
    drawn = text(LEFT - 6, y + 25, "busy", text_anchor="end")
    drawn += rect(LEFT, y + 10, BAR, 20, fill="none", stroke="currentColor")
    color = fill(ACCELERATOR.color, hollow=not step.feasible)
    drawn += rect(LEFT, y + 10, BAR * step.utilization, 20, **color)
    if counted:
        drawn += rect(LEFT, y + 10, BAR * launches / whole, 20, **HATCHED)
    said = f"{percent(step.utilization)}, {format_quantity(step.throughput)}"
    return drawn + text(LEFT + BAR + 12, y + 25, said), counted


def step_parts(result: SingleNodeResult) -> str:
    """The parts of one step of the accelerator: arithmetic beside memory traffic, and overhead on top."""
    if not isinstance(result, SingleNodeResult) or np.ndim(result.latency.magnitude):
        came = "a sweep" if isinstance(result, SingleNodeResult) else type(result).__name__
        raise InputError(f"step_parts draws one result of SingleNodeModel, got {came}. Solve one batch size.")
    parts = result.compute_time, result.memory_time, result.overhead_time
    times = {name: part.m_as("ms") for name, part in zip(PART_COLORS, parts, strict=True)}
    whole, length = result.latency.m_as("ms"), format_quantity(result.latency)
    feasible = bool(result.feasible)

    def bar(name: str, share: float) -> Bar:
        note = f"{format_number(times[name])} ms ({percent(times[name] / whole)})"
        return Bar(name, share, PART_COLORS[name], note, hollow=not feasible, bold=name == result.cause)

    drawn, y = _times(times, whole, bar)
    measured = result.basis.startswith("measured")
    rule = ", as measured; the parts are the formula's" if measured else ": max(compute, memory) + overhead"
    below = [
        f"A step takes {length} (dashed line){rule}.",
        f"That makes {format_quantity(result.throughput)}.",
        *reasons("hollow", result.infeasible_reason),
    ]
    title = f"The largest part of the step is {result.cause}"
    about = f"Parts of one step: {_listed(times)}. The step takes {length}."
    return of_one_step(drawn, y + 18, below, below[2:], feasible=feasible, title=title, about=about)
