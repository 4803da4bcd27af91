"""The search of `starvelab-doctor --try`: one setting after the other, first what doctor names first.

It runs nothing itself: what compares two settings is given to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple, TypeAlias

from starvelab.measure.verdict import SLIGHT

from ..judging.model import PREFETCH

# Arguments of DataLoader.
Settings: TypeAlias = dict[str, int | bool]
Advised: TypeAlias = tuple[str, int | None]  # the name of a remedy, and the value of its setting
MAX_TRIALS = 6
CLEAR = 1.25  # times the throughput in one turn, which needs no more of them
WORTH = 1.03  # times the throughput, below which a setting is not kept
AHEAD = 4  # batches of each worker, where doctor names no number
MOST = 32  # workers


@dataclass(frozen=True)
class Pace:
    """The batches a second of a loop, the share of the time that it waits, and the seconds counted."""

    rate: float
    waits: float
    seconds: float


@dataclass(frozen=True)
class Setup:
    """The settings of a loader as the script has them, and what of it says what may be tried."""

    workers: int
    prefetch: int | None
    persistent: bool
    pinned: bool  # or there is no GPU to copy to
    stream: bool  # its workers share the items as its dataset says, and no number of them gives the same
    waits: float = 1.0
    short: bool = False  # its passes are short, so that the start of workers counts


@dataclass(frozen=True)
class Turns:
    """The batches a second with old and new settings, by turns, and the share that the loop still waits."""

    rates: tuple[tuple[float, float], ...] = ()
    waits: float = 0.0
    failed: str = ""  # why the new ones are not to be had

    @property
    def gain(self) -> tuple[float, float, float] | None:
        """Return the least, the median and the greatest of the gains of all turns; None without any."""
        gains = [new / old for old, new in self.rates]
        return (min(gains), median(gains), max(gains)) if gains else None

    @property
    def kept(self) -> bool:
        """True if each turn was better, and all of them together by as much as is worth it."""
        return self.gain is not None and self.gain[0] > 1 and self.gain[1] >= WORTH


class Trial(NamedTuple):
    """One trial: its settings, and how they did beside the best ones before them."""

    settings: Settings
    turns: Turns


@dataclass
class Ascent:
    """The settings that are best so far; `compare` runs old and new ones by turns."""

    setup: Setup
    compare: Callable[[Settings, Settings], Turns]
    room: Callable[[int], float]  # for workers, with so many batches ahead of each
    say: Callable[[str], object] = print  # told of each trial when it ended
    best: Settings = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waits = self.setup.waits

    @property
    def workers(self) -> int:
        """Of the best settings."""
        return self.best.get("num_workers", self.setup.workers)

    def _fit(self, workers: int) -> int:
        """Return so many workers, or as many as find room with the batches ahead of them."""
        ahead = self.best.get("prefetch_factor", self.setup.prefetch or PREFETCH)
        return int(min(workers, MOST, max(self.room(ahead), self.setup.workers)))

    def climb(self, advised: Sequence[Advised], *, cores: int) -> None:
        """Try what doctor advises, the first one first, and then what else settings can change."""
        steps: dict[str, Callable[[int | None], object]] = {
            "workers": lambda number: self._workers(number, cores),
            "packing": lambda _: self._workers(0, cores),
            "pinned": lambda _: self.setup.pinned or self._try(self.best | {"pin_memory": True}),
            "prefetch": self._ahead,
            "persistent": lambda _: self._persistent(),
        }
        settings = [(name, value) for name, value in advised if name in steps]
        names = {"packing", *dict(settings)}  # to do without workers is tried where it is advised
        others = [(name, None) for name in steps if name not in names]
        for name, value in dict.fromkeys([*settings, *others]):
            steps[name](value)

    def _try(self, settings: Settings) -> bool:
        """Try settings in place of the best ones, and keep them if they help; True if they did."""
        for trial in self.trials:
            if trial.settings == settings:
                return trial.turns.kept
        if len(self.trials) >= MAX_TRIALS:
            return False
        turns = self.compare(self.best, settings)
        self.trials.append(Trial(settings, turns))
        brought = f"{turns.gain[1]:.2f} times the batches a second" if turns.gain else turns.failed
        self.say(f"  {listed(settings)}: {brought}, {'kept' if turns.kept else 'not kept'}.")
        if turns.kept:
            self.best, self.waits = settings, turns.waits
        return turns.kept

    def _workers(self, number: int | None, cores: int) -> None:
        before = self.setup.workers
        if self.setup.stream or (number != 0 and self.waits < SLIGHT):
            return
        if number == 0:  # what they hand over takes longer than to prepare it
            if self.workers:
                self._try({"num_workers": 0})
            return
        # New workers for each short pass would cost more than they bring.
        beside: Settings = {"persistent_workers": True} if self.setup.short and not before else {}
        number = self._fit(number or (2 * before if 0 < before <= 2 * cores else cores))
        kept = number != before and self._try(self.best | {"num_workers": number} | beside)
        if not kept and (half := (before + number) // 2) > before:
            self._try(self.best | {"num_workers": half} | beside)
        # Two trials are left for what else there is.
        while kept and before < number and self.waits >= SLIGHT and len(self.trials) < MAX_TRIALS - 2:
            number = self._fit(2 * number)
            kept = number > self.workers and self._try(self.best | {"num_workers": number})

    def _ahead(self, batches: int | None) -> None:
        batches = batches or AHEAD
        worthwhile = self.waits >= SLIGHT and batches > (self.setup.prefetch or PREFETCH)
        if self.workers and worthwhile and self.room(batches) >= self.workers:
            self._try(self.best | {"prefetch_factor": batches})

    def _persistent(self) -> None:
        persists = self.best.get("persistent_workers", self.setup.persistent)
        if self.workers and self.setup.short and not persists:
            self._try(self.best | {"persistent_workers": True})


def listed(settings: Settings) -> str:
    """Return settings as the arguments of a call."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())
