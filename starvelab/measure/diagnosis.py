"""Diagnosis: which part of an input pipeline starves the accelerator, from the rungs of a caching ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

import numpy as np

from ..errors import InputError, UnknownNameError
from ..model.resources import Advice, levers_for
from ..tables import TableRepr, percent
from ..units import Q_, Quantity, as_quantity, format_quantity, has_dimension, positive
from .batches import PARTS
from .ladder import CACHED, Ladder, profile
from .quality import Quality
from .setup import RunSetup
from .simulated import SimulatedClock, clock_for
from .verdict import UNKNOWN, verdict_of

BUDGET, MAX_BUDGET = 8.0, 60.0  # seconds, where the caller gives none
TO_THREADS = "threads instead of processes"  # the lever for which workers have to be processes
MAX_LEVERS = 4  # levers that the short form names
EXPLAINED = 0.9  # of the time between batches: where costs are less, something else than the workers binds


@dataclass(frozen=True, repr=False)
class Finding(TableRepr):
    """The result of `diagnose`.

    Attributes
    ----------
    bottleneck : str
        The part that costs most: read, decode, transform, collate, copy; compute where nothing starves.
        Where rungs were left out, several parts together: "read + decode".
    runner_up : str
        The part that costs second most; empty if nothing else costs anything.
    evidence : mapping of str to quantity [time]
        What each part adds to the time between batches. Small negative differences are noise and count as 0.
    costs : mapping of str to quantity [time]
        How long each part keeps the workers, for one batch and shared by all of them; without the parts of
        which this is not known. A part may cost more than it adds: the accelerator hides the rest.
    stage : str
        The transform that costs most within the bottleneck, by its own name; empty where this
        is not known.
    stages : mapping of str to mapping
        For each part with more than one stage: what each of them costs [time], by its own name.
    periods : mapping of str to quantity [time]
        Time between batches, by what is cached.
    stall : float
        Share of the time in which the accelerator waits, with nothing cached.
    confident : bool
    reason : str
        Why it is not confident; empty if it is.
    levers : tuple of Advice
        What to try next.
    source : str
        "measured", "simulated" or "manual".
    step_known : bool
        Whether there was a training step; without one a loader was measured alone.
    disturbed : str
        What other programs did, if that may change the verdict; empty otherwise.
    """

    bottleneck: str
    runner_up: str
    evidence: Mapping[str, Quantity]
    periods: Mapping[str, Quantity]
    stall: float
    confident: bool
    reason: str
    levers: tuple[Advice, ...]
    source: str
    costs: Mapping[str, Quantity] = field(default_factory=dict)
    stage: str = ""
    stages: Mapping[str, Mapping[str, Quantity]] = field(default_factory=dict)
    step_known: bool = True
    disturbed: str = ""

    @property
    def headers(self) -> Sequence[str]:
        """The table's headers; what parts cost is left out where it is not known of any."""
        of_costs = ("costs", "repaired alone, saves") if self.costs else ()
        return ("part", *of_costs, "adds to each batch", "cached up to here", "time between batches")

    @property
    def repaired_alone(self) -> Mapping[str, Quantity]:
        """How much sooner a batch comes [time] if a part alone takes no time; empty if workers do not bind.

        What a part adds depends on what is cached. If only this part is repaired, it saves its cost, until
        the accelerator binds.
        """
        now, *_, compute = (period.m_as("ms") for period in self.periods.values())
        costs = {part: cost.m_as("ms") for part, cost in self.costs.items()}
        if sum(costs.values()) < EXPLAINED * now:
            return {}
        return _quantities({part: min(cost, max(now - compute, 0.0)) for part, cost in costs.items()})

    @property
    def verdict(self) -> str:
        """How much the input pipeline costs."""
        return verdict_of(self.stall) if self.step_known else UNKNOWN

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """One row for each part, in the order in which a sample meets them, and for each of its stages."""
        # A part comes in when what it makes is no longer cached: its row shows the rung before.
        rows: list[Sequence[object]] = []
        saved = self.repaired_alone
        for (part, added), (cached, period) in zip(self.evidence.items(), self.periods.items(), strict=True):
            of_costs = [self.costs.get(part, ""), saved.get(part, "")] if self.costs else []
            rows.append([part, *of_costs, added, cached, period])
            rows += [[f"  {name}", cost, "", "", "", ""] for name, cost in self.stages.get(part, {}).items()]
        return rows

    @property
    def summary(self) -> str:
        """What was found, in a few sentences."""
        stall = f"The GPU waits {percent(self.stall)} of the time: {self.verdict}."
        if not self.step_known:
            stall = (
                "Without a training step nobody can tell whether this starves it: pass "
                "Accelerator(device=train_step)."
            )
        cost = format_quantity(self.evidence[self.bottleneck])
        if self.bottleneck == "compute":
            named = f"It computes for {cost} of each batch, and nothing starves it."
        else:
            named = f"The largest step of the ladder is {self.bottleneck}, which adds {cost} to each batch"
            named += f"; next comes {self.runner_up}." if self.runner_up else "."
            named += f" Most of it is {self.stage!r}." if self.stage else ""
            named += self._costs_more()
        doubt = "" if self.confident else f" Not certain: {self.reason}."
        return f"{stall} {named}{doubt}"

    def _costs_more(self) -> str:
        """Return which part costs most, where that is not the largest step of the ladder."""
        own = self.costs.get(self.bottleneck)
        most = max(self.costs, key=lambda part: self.costs[part].m_as("ms"), default="")
        if own is None or self.costs[most] <= own:
            return ""
        costs, adds = self.costs[most], self.evidence.get(most)
        hidden = f", of which the ladder shows {format_quantity(adds)}" if adds is not None else ""
        if self.step_known and adds is not None and costs - adds <= self.evidence["compute"]:
            hidden = ", which the GPU hides in part"
        return f" The part that costs most is {most}: {format_quantity(costs)} of a batch{hidden}."

    @property
    def note(self) -> str:
        """What to try next, in one line."""
        return f"To try: {'; '.join(lever.name for lever in self.levers[:MAX_LEVERS])}."


def diagnose(rates: Mapping[str, Quantity | str]) -> Finding:
    """Find what starves an accelerator in a caching ladder that was measured by hand.

    `Pipeline.diagnose` measures one.

    Parameters
    ----------
    rates : mapping of str to quantity
        For each thing cached the steps in a second [1/time] or the time of a step [time].

    Raises
    ------
    InputError, UnknownNameError

    Examples
    --------
    >>> found = diagnose({"nothing": "0.89 / s", "raw sample": "1.72 / s", "processed sample": "3.23 / s",
    ...     "host batch": "3.33 / s", "device batch": "3.45 / s"})
    >>> found.bottleneck, found.runner_up
    ('read', 'decode + transform')
    """
    if not isinstance(rates, Mapping):
        raise InputError(
            f"diagnose takes a mapping of rates, got {type(rates).__name__}. A pipeline diagnoses itself: "
            "write pipeline.diagnose()."
        )
    return _conclude(_manual(rates), "manual")


def climb_ladder(
    setup: RunSetup,
    *,
    budget: Quantity | str | None = None,
    clock: SimulatedClock | None = None,
    progress: bool = True,
) -> Finding:
    """Find what starves the accelerator of a setup; `starvelab.Pipeline.diagnose` has the parameters."""
    seconds = BUDGET if budget is None else positive(as_quantity(budget, "s", "budget"), "s", "budget")
    longest = MAX_BUDGET if budget is None else seconds
    clock = clock or clock_for(setup, announced=progress)
    if clock is not None:
        return _conclude(_simulated(setup, clock, seconds), "simulated", setup)
    if progress:
        length = format_quantity(Q_(seconds, "s"))
        more = f", up to {format_quantity(Q_(longest, 's'))} if it is slow" if longest > seconds else ""
        print(f"Diagnosing {setup}: about {length}{more}.")
    ladder = profile(setup, seconds=seconds, longest=longest, progress=progress)
    return _conclude(ladder, "measured", setup)


def _conclude(ladder: Ladder, source: str, setup: RunSetup | None = None) -> Finding:
    bottleneck = ladder.order[0]
    reason = ladder.doubt if source == "measured" else ""
    stages = _stages(setup, ladder.stage_seconds)
    costs = {part: sum(stages[part].values()) for part in ladder.names if stages.get(part)}
    within = stages.get(bottleneck, {}) if ladder.starved and source == "measured" else {}
    return Finding(
        bottleneck=bottleneck,
        runner_up=ladder.runner_up,
        evidence=_quantities(ladder.evidence),
        periods=_quantities(dict(zip((CACHED[rung] for rung in ladder.rungs), ladder.medians, strict=True))),
        stall=ladder.stall,
        confident=not reason,
        reason=reason,
        disturbed=ladder.disturbed if source == "measured" else "",
        levers=_levers(bottleneck, setup is not None and setup.kind == "threads"),
        source=source,
        costs=_quantities(costs),
        stage=max(within, key=within.__getitem__) if len(within) > 1 else "",
        stages={part: _quantities(each) for part, each in stages.items() if len(each) > 1},
        step_known=setup is None or setup.step_known,
    )


def _quantities(times: Mapping[str, float]) -> dict[str, Quantity]:
    return {name: Q_(float(ms), "ms") for name, ms in times.items()}


def _stages(setup: RunSetup | None, seconds: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """For each part the milliseconds that its stages take for a batch, shared by all workers."""
    if setup is None or not seconds:
        return {}
    scale = 1e3 * setup.batch_size / max(setup.workers, 1)
    stages: dict[str, dict[str, float]] = {}
    for name, each in seconds.items():
        stages.setdefault(setup.stages.get(name, name), {})[name] = scale * each
    # Of several stages those that take no time at all did not occur, such as reading of what is in memory.
    return {part: {name: ms for name, ms in each.items() if ms} or each for part, each in stages.items()}


def _levers(part: str, has_threads: bool = False) -> tuple[Advice, ...]:
    # Of several parts together, the first of each before the second of any.
    in_turn = chain.from_iterable(zip_longest(*(levers_for(single) for single in part.split(" + "))))
    useless = TO_THREADS if has_threads else None
    return tuple(dict.fromkeys(lever for lever in in_turn if lever and lever.name != useless))


def _simulated(setup: RunSetup, clock: SimulatedClock, seconds: float) -> Ladder:
    periods = tuple(clock.periods(setup, rung) for rung in range(len(PARTS)))
    # What a simulated storage takes is no cost of the clock's: of reading only a part would be known.
    known = clock.costs.keys() - (() if setup.storage is None else {"read"})
    costs = {name: Q_(time).m_as("s") for name, time in clock.costs.items() if name in known}
    return Ladder(tuple(range(len(PARTS))), periods, Quality(0.0, 0.0, len(periods[0])), seconds, costs)


def _manual(rates: Mapping[str, Quantity | str]) -> Ladder:
    for name in rates:
        if name not in CACHED:
            raise UnknownNameError(f"No rung is called {name!r:.80}. There is: {', '.join(CACHED)}.")
    for name in (CACHED[0], CACHED[-1]):
        if name not in rates:
            raise InputError(
                f"A ladder needs its ends, with nothing cached and with a device batch, and {name!r} is "
                "missing. Measure that one too."
            )
    rungs = tuple(i for i, name in enumerate(CACHED) if name in rates)
    periods = tuple(np.array([_period(rates[CACHED[i]], CACHED[i])]) for i in rungs)
    return Ladder(rungs, periods, Quality(0.0, 0.0, 1), 0.0)


def _period(value: Quantity | str, name: str) -> float:
    """Milliseconds of a step, from its time or from steps in a second."""
    given = Q_(value) if isinstance(value, str) else value
    came = f"{given!r:.80}"
    if isinstance(given, Quantity):
        if has_dimension(given, "1/s"):
            return float(1e3 / positive(given, "1/s", name))
        if has_dimension(given, "s"):
            return float(positive(given, "ms", name))
        came = format_quantity(given)
    raise InputError(
        f"{name!r} must be steps in a second or the time of a step, got {came}. "
        'Write for example "0.89 / s" or "1.12 s".'
    )
